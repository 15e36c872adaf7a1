"""Folds: which rows are left out together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.problem import SubsetProblem

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Folds:
    """The rows predicted in each fold, those it does not learn from (the same, mostly), and how they were made."""

    rows: tuple[Rows, ...]
    left_out: tuple[Rows, ...]
    how: str

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def row(self) -> Rows:
        """Predicted rows of all folds, one after the other (P,)."""
        return np.concatenate(self.rows)

    @property
    def fold(self) -> NDArray[np.int64]:
        """Fold of each of them (P,)."""
        return np.repeat(np.arange(len(self.rows)), [r.size for r in self.rows])

    @property
    def hash(self) -> str:
        """Digest of all folds."""
        digest = hashlib.sha256()
        for rows, left_out in zip(self.rows, self.left_out, strict=True):
            for part in (rows, left_out):
                digest.update(np.int64(part.size).tobytes() + part.astype("<i8").tobytes())
        return digest.hexdigest()

    def only(self, fold: int) -> Folds:
        """One fold alone."""
        return Folds((self.rows[fold],), (self.left_out[fold],), self.how)


def as_folds(cv: Any, problem: SubsetProblem, groups: ArrayLike | None = None) -> Folds:
    """Folds from "loo", a number of folds, a scikit-learn splitter, or (train, test) splits.

    Rows of weight zero are absent: they are never held out, and splitters do not see them. Rows that are in neither
    part of a split (a gap in time, say) are left out and not predicted.
    """
    present = np.flatnonzero(problem.sample_weight > 0)
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape[:1] != (problem.n_rows,):
            raise ValueError(f"groups has shape {groups.shape}; expected one label for each of {problem.n_rows} rows.")
        groups = groups[present]
    if cv is None or (isinstance(cv, str) and cv == "loo"):
        if groups is not None:
            from sklearn.model_selection import LeaveOneGroupOut

            return _checked(_split(LeaveOneGroupOut(), problem, present, groups), "leave one group out", problem)
        if present.size < 3:
            raise ValueError(f"cv is 'loo', but there are {present.size} rows; expected at least three.")
        single = tuple(present[:, None])
        return Folds(single, single, "loo")
    if isinstance(cv, (str, bool)):
        raise ValueError(f"cv is {cv!r}; expected 'loo', a number of folds, a scikit-learn splitter, or splits.")
    if isinstance(cv, (int, np.integer)):
        from sklearn.model_selection import GroupKFold, KFold

        if not 2 <= cv <= present.size:
            raise ValueError(f"cv is {cv} folds; expected 2 to {present.size} (the number of rows).")
        # Shuffled, because tables are often sorted; with a fixed seed, so that a curve does not depend on the day.
        splitter = KFold(int(cv), shuffle=True, random_state=0) if groups is None else GroupKFold(int(cv))
        return _checked(_split(splitter, problem, present, groups), f"{cv} folds", problem)
    if hasattr(cv, "split"):
        return _checked(_split(cv, problem, present, groups), " ".join(repr(cv).split()), problem)
    if isinstance(cv, Iterable):
        try:
            splits = [(_numbers(train), _numbers(test)) for train, test in cv]
        except (TypeError, ValueError):
            raise ValueError("cv is an iterable, but not of (training rows, held-out rows) pairs.") from None
        return _checked(splits, "given splits", problem)
    raise TypeError(f"cv is {cv!r}; expected 'loo', a number of folds, a scikit-learn splitter, or splits.")


def _numbers(rows: Any) -> Rows:
    """Row numbers from numbers or from a mask."""
    given = np.asarray(rows)
    return np.flatnonzero(given) if given.dtype == bool else given


def _split(splitter: Any, problem: SubsetProblem, present: Rows, groups: Any) -> Iterator[tuple[Rows, Rows]]:
    splits = splitter.split(problem.X[present], problem.y[present], groups)
    return ((present[train], present[test]) for train, test in splits)


def _checked(splits: Iterable[tuple[Rows, Rows]], how: str, problem: SubsetProblem) -> Folds:
    weight = problem.sample_weight
    present = np.flatnonzero(weight > 0)
    rows, left_out = [], []
    for f, (train, test) in enumerate(splits):
        if test.size == 0 or not np.issubdtype(test.dtype, np.integer):
            raise ValueError(f"fold {f} holds out no row numbers; expected at least one in every fold.")
        if train.size and not np.issubdtype(train.dtype, np.integer):
            raise ValueError(f"fold {f} learns from {train.dtype} values; expected row numbers.")
        for part in (train, test):
            if part.size and (part.min() < 0 or part.max() >= problem.n_rows):
                bad = part.min() if part.min() < 0 else part.max()
                raise ValueError(f"fold {f} names row {bad}; expected row numbers from 0 to {problem.n_rows - 1}.")
        learned, unique = np.unique(train.astype(np.int64)), np.unique(test.astype(np.int64))
        if learned.size < train.size:
            raise ValueError(f"fold {f} learns from a row twice; expected every row once (sample_weight counts rows).")
        both = np.intersect1d(learned, unique)
        if both.size:
            raise ValueError(f"fold {f} learns from row {both[0]} and is tested on it; expected one or the other.")
        unique = unique[weight[unique] > 0]
        if unique.size == 0:
            raise ValueError(f"fold {f} holds out rows of weight zero only; expected rows that count.")
        if np.count_nonzero(weight[learned]) < 2:
            raise ValueError(f"fold {f} leaves fewer than two rows to learn from; hold out fewer rows.")
        rows.append(unique)
        left_out.append(np.setdiff1d(present, learned))
    if len(rows) < 2:
        raise ValueError(f"cv gives {len(rows)} fold{'s' * (len(rows) != 1)}; expected at least two.")
    return Folds(tuple(rows), tuple(left_out), how)
