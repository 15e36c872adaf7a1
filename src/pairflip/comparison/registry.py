"""Which methods there are, what they learn from, and how a user adds one.

A method is one of three kinds. It *finds* supports of given sizes, which are then fitted by least squares as ours are;
it *fits* a model that predicts by itself, without sizes; or it is ours. It may learn from the training rows of one fold
(or all rows), and from nothing of any other row. To add one for good: a function and its `Peer` in
`comparison/peers/`, and its place in the list of `comparison/peers/__init__.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.least_squares import Floats
from pairflip.problem import SubsetProblem
from pairflip.projection import Projected, project
from pairflip.selection.folds import Blocks, parse_cv
from pairflip.sparse import dense
from pairflip.supports import Ints

if TYPE_CHECKING:
    from pairflip.selection import Selection, SizeCurve

_INNER_FOLDS = 10  # of methods that choose something (a penalty, say) by a cross validation of their own


@dataclass(frozen=True)
class Model:
    """What a method predicts new rows with."""

    predict: Callable[[Floats], Floats]  # rows of the whole table (h, N) to predictions (h,)
    columns: Ints | None = None  # (c,), the columns it uses, where it does not use all of them
    detail: str = ""  # what it chose besides, in words, such as a number of components


@dataclass(frozen=True)
class Training:
    """Rows to learn from."""

    problem: SubsetProblem  # the whole table; a method looks at `rows` of it only
    rows: Ints  # (m,), all of a weight above zero
    seed: int = 0  # for methods that draw random numbers
    cv: Any = 10  # this and `groups`, as in `compare`: how rows belong together, for `splits`
    groups: NDArray[Any] | None = None

    @cached_property
    def projected(self) -> Projected:
        """Forced columns (the intercept among them) taken out, rows times root of weight, columns of unit norm."""
        always, in_fold = self.problem.always, self.problem.center == "fold"
        means = None if in_fold else (self.problem.means, self.problem.target_means)
        return project(self.X, self.y[:, None], self.weight, always=always, ridge=0.0, intercept=in_fold, means=means)

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

    def splits(self) -> list[tuple[Ints, Ints]]:
        """(training, test) positions among these rows, for choices by an inner cross validation.

        Groups stay together, and so do neighbours where the outer folds are blocks.
        """
        from sklearn.model_selection import GroupKFold, KFold

        count = min(_INNER_FOLDS, self.rows.size)
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
        projected, problem = self.projected, self.problem
        coef = np.zeros(problem.n_columns)
        coef[projected.candidates] = coefficients / projected.scale
        y_mean, means, always = float(projected.target_means[0]), projected.means, problem.always
        unexplained = np.sqrt(self.weight) * (self.y - y_mean - (self.X - means) @ coef)
        z = np.linalg.lstsq(projected.forced, unexplained, rcond=None)[0]

        def predict(X: ArrayLike) -> Floats:
            centred = np.asarray(X, dtype=np.float64) - means
            forced = centred[:, always] / projected.powers[always]
            if problem.center == "fold":
                forced = np.hstack([np.ones((len(centred), 1)), forced])
            return np.asarray(y_mean + centred @ coef + forced @ z)

        return Model(predict, np.flatnonzero(coef))


Supports = Mapping[int, Ints]
Find = Callable[[Floats, Floats, Sequence[int]], Supports]
Fit = Callable[[Training], Model]
Search = Callable[["SubsetProblem", "Selection", "ArrayLike | None"], "tuple[SizeCurve, float]"]


class PeerFailed(ValueError):
    """A method cannot do this table, in a sentence that the comparison shows: it diverged, or needs more rows."""


@dataclass(frozen=True)
class Peer:
    """A method to compare with; one of `find`, `fit` and `search` is given."""

    name: str  # in ``methods=`` and ``--methods``
    title: str  # in tables and figures
    about: str  # what it does, in one sentence
    find: Find | None = None  # (columns, target, sizes) to positions among the columns, by size; one may be missing
    fit: Fit | None = None
    search: Search | None = None  # ours: (problem, selection, groups) to a curve and the CPU seconds of the search
    path: bool = True  # whether `find` gets all sizes in one call; otherwise it is called, and timed, for each
    needs: str = ""  # a package that may not be installed

    def lacking(self) -> str:
        """What to install; empty if nothing is missing."""
        installed = not self.needs or find_spec(self.needs)
        return "" if installed else f"{self.needs} is not installed (pip install {self.needs})"


OURS = "normal"
"""The method of ours that others stand beside where no other is named."""
PEERS: dict[str, Peer] = {}
"""All methods by name, in the order in which they are run."""


def register_peer(name: str, peer: Any) -> None:
    """Have every comparison from now on run one more method.

    Parameters
    ----------
    name
        What ``methods=`` and ``--methods`` call it.
    peer
        A scikit-learn estimator, or a function (columns, target, sizes) that returns positions among the columns by
        size.
    """
    PEERS[name] = as_peer(name, peer)


def as_peer(name: str, given: Any) -> Peer:
    """A method from what a user gives: an estimator, a function that finds supports, or a `Peer`."""
    if isinstance(given, Peer):
        return given
    if isinstance(given, type):
        raise TypeError(f"the method {name!r} is the class {given.__name__}; expected an instance of it, with ().")
    if callable(getattr(given, "fit", None)) and callable(getattr(given, "predict", None)):
        return _from_estimator(name, given)
    if callable(given):
        return Peer(name, name, "A function of the user's.", find=given)
    raise TypeError(
        f"the method {name!r} is a {type(given).__name__}; expected a scikit-learn estimator, or a function of "
        "(columns, target, sizes)."
    )


def _from_estimator(name: str, estimator: Any) -> Peer:
    """An estimator as a method: a clone on one thread is fitted to the training rows of every fold, as they are."""

    def fit(training: Training) -> Model:
        from sklearn.base import clone
        from sklearn.utils.validation import has_fit_parameter

        model, weight = clone(estimator), training.weight
        jobs = [key for key in model.get_params(deep=True) if key == "n_jobs" or key.endswith("__n_jobs")]
        if jobs:  # on one thread, so that seconds can be compared
            model.set_params(**dict.fromkeys(jobs, 1))
        if np.all(weight == weight[0]):
            model.fit(training.X, training.y)
        elif has_fit_parameter(model, "sample_weight"):
            model.fit(training.X, training.y, sample_weight=weight)
        else:
            raise PeerFailed("takes no row weights")
        coef = np.ravel(getattr(model, "coef_", np.empty(0)))
        used = np.flatnonzero(coef) if coef.size == training.problem.n_columns else None
        return Model(lambda X: np.asarray(model.predict(X), dtype=np.float64).reshape(-1), used)

    text = " ".join(str(estimator).split())
    return Peer(name, name, f"The user's estimator: {text[:200]}.", fit=fit)


def chosen_peers(
    methods: Iterable[str] | str | None, more: Mapping[str, Any] | Sequence[Any] | str | None
) -> list[Peer]:
    """The methods to run, in the order of the registry, then the user's own."""
    given, named = _given_peers(more)
    users = {name: as_peer(name, each) for name, each in given.items()}
    every = PEERS | users
    if methods is None and not named:
        return list(every.values())
    names = [*_names([OURS] if methods is None else methods), *named]
    for name in names:
        if name not in every:
            near = get_close_matches(str(name), every, n=1)
            hint = f"perhaps {near[0]!r}, of " if near else ""
            raise ValueError(f"{name!r} is not a method (--methods); expected {hint}{', '.join(every)}.")
    if not names and not users:
        raise ValueError(f"no method is named (--methods); expected some of {', '.join(every)}.")
    return [peer for name, peer in every.items() if name in names or name in users]


def _given_peers(more: Mapping[str, Any] | Sequence[Any] | str | None) -> tuple[dict[str, Any], list[str]]:
    """Methods of the user's by name, those of a list called after their class or function; and names of others."""
    if isinstance(more, Mapping):
        return dict(more), []
    if more is None or isinstance(more, str):
        return {}, _names(more or "")
    if not isinstance(more, (list, tuple)):
        raise TypeError(f"peers is a {type(more).__name__}; expected methods in a list, or {{'name': method}}.")
    users: dict[str, Any] = {}
    times: Counter[str] = Counter()
    for each in (each for each in more if not isinstance(each, str)):
        name = getattr(each, "name" if isinstance(each, Peer) else "__name__", type(each).__name__)
        times[name] += 1
        users[name if times[name] == 1 else f"{name} {times[name]}"] = each
    return users, [each for each in more if isinstance(each, str)]


def _names(given: Iterable[str] | str) -> list[str]:
    """Names in a list, or in a text that separates them by commas."""
    return [name.strip() for name in given.split(",") if name.strip()] if isinstance(given, str) else list(given)
