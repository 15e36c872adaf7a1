"""What a method may learn from: the training rows of one fold (or all rows), and nothing of any other row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.least_squares import Floats
from pairflip.problem import SubsetProblem
from pairflip.projection import Projected, project
from pairflip.selection.folds import Blocks, parse_cv
from pairflip.sparse import dense

INNER_FOLDS = 10
"""Of methods that choose something (a penalty, a number of components) by a cross validation of their own."""


@dataclass(frozen=True)
class Model:
    """What a method predicts new rows with."""

    predict: Callable[[Floats], Floats]  # rows of the whole table (h, N) to predictions (h,)
    columns: NDArray[np.int64] | None = None  # (c,), the columns it uses, where it does not use all of them
    detail: str = ""  # what it chose besides, in words, such as a number of components


@dataclass(frozen=True)
class Training:
    """Rows to learn from."""

    problem: SubsetProblem  # the whole table; a method looks at `rows` of it only
    rows: NDArray[np.int64]  # (m,), all of a weight above zero
    seed: int = 0  # for methods that draw random numbers
    cv: Any = 10  # this and `groups`, as in `compare`: how rows belong together, for `splits`
    groups: NDArray[Any] | None = None

    @cached_property
    def projected(self) -> Projected:
        """Forced columns (the intercept among them) taken out, rows times root of weight, columns of unit norm."""
        problem = self.problem
        means = None if problem.center == "fold" else (problem.means, problem.target_means)
        inside, fold = problem.always, problem.center == "fold"
        return project(self.X, self.y[:, None], self.weight, always=inside, ridge=0.0, intercept=fold, means=means)

    @property
    def columns(self) -> Floats:
        """Candidates (m, n) of these rows, without what is always in the model, each of unit norm."""
        return self.projected.columns.T

    @property
    def target(self) -> Floats:
        """The target (m,) of these rows, without what is always in the model."""
        return self.projected.targets[:, 0]

    @cached_property
    def X(self) -> Floats:
        """These rows of the table as they are (m, N)."""
        return np.asarray(dense(self.problem.X[self.rows]), dtype=np.float64)

    @property
    def y(self) -> Floats:
        """Their targets as they are (m,)."""
        return np.asarray(self.problem.y[self.rows])

    @property
    def weight(self) -> Floats:
        """Their weights (m,)."""
        return np.asarray(self.problem.sample_weight[self.rows])

    def splits(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """(training, test) positions among these rows, for choices by an inner cross validation.

        Groups stay together, and so do neighbours where the outer folds are blocks.
        """
        from sklearn.model_selection import GroupKFold, KFold

        count = min(INNER_FOLDS, self.rows.size)
        if self.groups is not None:
            labels = self.groups[self.rows]
            different = np.unique(labels).size
            if different > 1:
                return list(GroupKFold(min(count, different)).split(self.rows, None, labels))
        if isinstance(parse_cv(self.cv), Blocks):
            return list(KFold(count).split(self.rows))
        return list(KFold(count, shuffle=True, random_state=self.seed % 2**32).split(self.rows))

    def linear(self, coefficients: Floats) -> Model:
        r"""The model with these coefficients (n,) of the scaled columns.

        What is always in the model is fitted to what they leave of the target, on these rows:
        :math:`\hat y = \bar y + (X - \bar X) x + Z z`.
        """
        inside, problem = self.projected, self.problem
        coef = np.zeros(problem.n_columns)
        coef[inside.candidates] = coefficients / inside.scale
        middle, means, always = float(inside.target_means[0]), inside.means, problem.always
        root = np.sqrt(self.weight)
        rest = root * (self.y - middle - (self.X - means) @ coef)
        powers = inside.powers[always]
        z = np.linalg.lstsq(inside.forced, rest, rcond=None)[0]

        def predict(X: ArrayLike) -> Floats:
            away = np.asarray(X, dtype=np.float64) - means
            forced = away[:, always] / powers
            if problem.center == "fold":
                forced = np.hstack([np.ones((len(away), 1)), forced])
            return np.asarray(middle + away @ coef + forced @ z)

        return Model(predict, np.flatnonzero(coef))
