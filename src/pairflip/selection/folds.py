"""Folds: which rows are left out together."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.problem import SubsetProblem
from pairflip.supports import Ints
from pairflip.text import numbered

Rows = Ints


@dataclass(frozen=True)
class Folds:
    """The rows predicted in each fold, those it does not learn from (the same, mostly), and how they were made."""

    rows: tuple[Rows, ...]
    left_out: tuple[Rows, ...]
    how: str
    by_row: bool
    """Whether rows are independent of each other, so that errors vary from row to row; otherwise from fold to fold."""
    block: Rows | None = None
    """The block of each row of the table (M,) where errors vary from block to block."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def row(self) -> Rows:
        """Predicted rows of all folds, one after the other (P,)."""
        return np.concatenate(self.rows)

    @property
    def fold(self) -> Ints:
        """Fold of each of them (P,)."""
        return np.repeat(np.arange(len(self.rows)), [r.size for r in self.rows])

    @cached_property
    def places(self) -> list[slice]:
        """Where the predicted rows of each fold stand among all of them."""
        ends = np.cumsum([rows.size for rows in self.rows])
        return [slice(int(end) - rows.size, int(end)) for end, rows in zip(ends, self.rows, strict=True)]

    @property
    def unit(self) -> Ints:
        """The independent unit, from 0 on, that each of them belongs to (P,): its row, or its fold."""
        if self.block is not None:
            return np.unique(self.block[self.row], return_inverse=True)[1]
        return np.cumsum(np.bincount(self.row) > 0)[self.row] - 1 if self.by_row else self.fold

    @property
    def hash(self) -> str:
        """Digest of all folds."""
        digest = hashlib.sha256()
        for rows, left_out in zip(self.rows, self.left_out, strict=True):
            for part in (rows, left_out):
                digest.update(np.int64(part.size).tobytes() + part.astype("<i8").tobytes())
        return digest.hexdigest()

    def some(self, folds: Iterable[int]) -> Folds:
        """Some of the folds, in this order."""
        rows, left_out = zip(*((self.rows[f], self.left_out[f]) for f in folds), strict=True)
        return Folds(rows, left_out, self.how, self.by_row, self.block)


def as_folds(cv: Any, problem: SubsetProblem, groups: ArrayLike | None = None, seed: int = 0) -> Folds:
    """Folds from "loo", "5x10", "blocks:5", a number of folds, a scikit-learn splitter, or (train, test) splits.

    Rows that are in neither part of a split (a gap in time, say) are left out and not predicted. The rows of given
    splits are Python's indices, from 0, or masks. Where rows stand for blocks of others, blocks are left out.
    """
    folds = _folds(cv, problem, blocks_as_groups(problem, cv, groups), seed)
    return folds if problem.condensed is None else replace(folds, block=problem.condensed.block)


def blocks_as_groups(problem: SubsetProblem, cv: Any, groups: Any) -> Any:
    """The blocks that rows stand for, as groups of rows; the groups themselves for an ordinary table."""
    if problem.condensed is None:
        return groups
    block = problem.condensed.block
    if groups is not None and groups is not block:
        raise ValueError(
            "groups are given for rows of which only moments are kept; expected none: put the rows of a group into "
            "one fold of Moments (from_moments), or use a table that fits into memory."
        )
    blocks = np.unique(block).size
    if blocks < 2:
        raise ValueError(
            "the moments are those of one block of rows, which cannot be left out; expected moments of at least two "
            "folds (select_size needs them; best_subset, prove and posterior do not)."
        )
    cv = parse_cv(cv)
    if isinstance(cv, Blocks) or not (cv in (None, "loo", DEFAULT_CV) or isinstance(cv, Repeats)):
        raise ValueError(f"cv is {str(cv)!r} for random blocks of rows; expected 'loo', or folds such as 10 or '5x10'.")
    if isinstance(cv, Repeats) and cv.folds > blocks:
        raise ValueError(
            f"cv is {cv.folds} folds, but moments are kept of {blocks} blocks of rows; expected at most that."
        )
    return block


def _folds(cv: Any, problem: SubsetProblem, groups: Any, seed: int) -> Folds:
    """Folds of rows, or of groups of rows."""
    present = np.flatnonzero(problem.sample_weight > 0)
    if groups is not None:
        groups = check_groups(problem, groups)[present]
    cv = parse_cv("loo" if cv is None else cv)
    if cv == "loo":
        return _leave_one_out(problem, present, groups)
    if isinstance(cv, Repeats):
        return _repeated(cv, problem, present, groups, seed)
    if isinstance(cv, Blocks):
        if groups is not None:
            raise ValueError(f"cv is {str(cv)!r} and groups are given; expected one or the other.")
        if not 2 <= cv.folds <= present.size:
            raise ValueError(f"cv is {str(cv)!r}; expected 2 to {present.size} blocks (the number of rows).")
        blocks = np.array_split(present, cv.folds)
        splits = [(np.setdiff1d(present, block), block) for block in blocks]
        return _checked(splits, f"{cv.folds} blocks of neighbouring rows", problem, by_row=False)
    if hasattr(cv, "split"):
        return _checked(_split(cv, problem, present, groups), " ".join(repr(cv).split()), problem)
    if isinstance(cv, Iterable):
        try:
            splits = [(_numbers(train), _numbers(test)) for train, test in cv]
        except (TypeError, ValueError):
            raise ValueError("cv is an iterable, but not of (training rows, held-out rows) pairs.") from None
        return _checked(splits, "given splits", problem)
    raise TypeError(f"cv is {cv!r}; expected {EXPECTED_CV}, a scikit-learn splitter, or splits.")


def check_groups(problem: SubsetProblem, groups: ArrayLike) -> NDArray[Any]:
    """Labels of the rows as an array, one for each row."""
    labels = np.asarray(groups)
    if labels.shape[:1] != (problem.n_rows,):
        raise ValueError(f"groups has shape {labels.shape}; expected one label for each of {problem.n_rows} rows.")
    return labels


def check_learnable(problem: SubsetProblem, folds: Folds) -> None:
    """Refuse folds whose training rows lack a class, or all counts above 0."""
    everything = np.arange(problem.n_rows)
    for f, left_out in enumerate(folds.left_out):
        why = problem.loss.lacking(problem, np.setdiff1d(everything, left_out))
        if why is not None:
            raise ValueError(
                f"the training rows of {numbered('fold', f)} have {why}; expected folds that leave rows of both kinds "
                "to learn from: fewer folds, or more rows."
            )


DEFAULT_CV = "auto"
"""Ten folds, repeated so often that the answer hardly depends on how they are drawn, see `selection.tasks`."""
EXPECTED_CV = "'auto', 'loo', a number of folds such as 10, repeats of them such as '5x10', or 'blocks:5'"


@dataclass(frozen=True)
class Repeats:
    """k-fold cross validation, several times with other random folds."""

    times: int
    folds: int

    def __str__(self) -> str:
        return f"{self.times}x{self.folds}" if self.times > 1 else str(self.folds)


@dataclass(frozen=True)
class Blocks:
    """Folds of neighbouring rows, for tables in the order of time or place."""

    folds: int

    def __str__(self) -> str:
        return f"blocks:{self.folds}"


def parse_cv(cv: Any) -> Any:
    """What a text or a number means: "loo", `Repeats` or `Blocks`; anything else is returned unchanged."""
    if isinstance(cv, (bool, np.bool_)):
        raise ValueError(f"cv is {cv}; expected {EXPECTED_CV}.")
    if isinstance(cv, (int, np.integer)):
        return Repeats(1, int(cv))
    if not isinstance(cv, str) or cv in ("loo", DEFAULT_CV):
        return cv
    repeats = re.fullmatch(r"(?:(\d{1,4})x)?(\d{1,7})", cv.strip())
    blocks = re.fullmatch(r"blocks:(\d{1,7})", cv.strip())
    if repeats and int(repeats[1] or 1) > 0:
        return Repeats(int(repeats[1] or 1), int(repeats[2]))
    if blocks:
        return Blocks(int(blocks[1]))
    raise ValueError(f"cv is {cv!r}; expected {EXPECTED_CV}.")


def _leave_one_out(problem: SubsetProblem, present: Rows, groups: Any) -> Folds:
    if groups is not None:
        from sklearn.model_selection import LeaveOneGroupOut

        return _checked(_split(LeaveOneGroupOut(), problem, present, groups), "leave one group out", problem)
    if present.size < 3:
        raise ValueError(f"cv is 'loo', but there are {present.size} rows; expected at least three.")
    single = tuple(present[:, None])
    return Folds(single, single, "loo", by_row=True)


def _repeated(cv: Repeats, problem: SubsetProblem, present: Rows, groups: Any, seed: int) -> Folds:
    """Rows are shuffled, because tables are often sorted; each repetition has random numbers of its own from `seed`.

    Of classes (and of rows with and without the event) each is shuffled by itself, so that folds keep their shares.
    Where repeats are asked for and there are no more rows (or groups) than folds, one is left out at a time: all
    repeats would be the same.
    """
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    how = f"{cv.folds} folds" + (f", {cv.times} times" if cv.times > 1 else "")
    if cv.times > 1 and cv.folds >= (present.size if groups is None else np.unique(groups).size):
        return _leave_one_out(problem, present, groups)
    splitter: Any = KFold
    if groups is not None:
        splitter, how = GroupKFold, f"{how}, of groups"
    elif not 2 <= cv.folds <= present.size:
        raise ValueError(f"cv is {cv.folds} folds; expected 2 to {present.size} (the number of rows).")
    else:
        strata = problem.loss.strata(problem.y[present])
        if strata is not None and cv.folds <= np.unique(strata, return_counts=True)[1].max():
            kind = "class" if problem.classes is not None else "event"
            splitter, how = StratifiedKFold, f"{how}, {kind} shares kept"
    splits: list[tuple[Rows, Rows]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class may have fewer rows than there are folds
        for repetition in range(cv.times):
            random = splitter(cv.folds, shuffle=True, random_state=(1_000_003 * seed + repetition) % 2**32)
            splits += _split(random, problem, present, groups)
    return _checked(splits, how, problem, by_row=True if groups is None else None)


def _numbers(rows: Any) -> Rows:
    """Row indices from indices or from a mask."""
    given = np.asarray(rows)
    return np.flatnonzero(given) if given.dtype == bool else given


def _split(splitter: Any, problem: SubsetProblem, present: Rows, groups: Any) -> Iterator[tuple[Rows, Rows]]:
    X = problem.X if present.size == problem.n_rows else problem.X[present]  # a wide table is not copied
    kinds = problem.loss.strata(problem.y[present])
    splits = splitter.split(X, problem.y[present] if kinds is None else kinds, groups)
    return ((present[train], present[test]) for train, test in splits)


def _checked(
    splits: Iterable[tuple[Rows, Rows]], how: str, problem: SubsetProblem, by_row: bool | None = None
) -> Folds:
    """Folds of splits that make sense; `by_row` None: errors vary by row where a row is predicted more than once."""
    weight = problem.sample_weight
    present = np.asarray(weight > 0)
    rows, left_out = [], []
    for f, (train, test) in enumerate(splits):
        fold = numbered("fold", f)
        if test.size == 0 or not np.issubdtype(test.dtype, np.integer):
            raise ValueError(f"{fold} holds out no row indices; expected at least one in every fold.")
        if train.size and not np.issubdtype(train.dtype, np.integer):
            raise ValueError(f"{fold} learns from {train.dtype} values; expected row indices.")
        for part in (train, test):
            if part.size and (part.min() < 0 or part.max() >= problem.n_rows):
                bad = numbered("row", part.min() if part.min() < 0 else part.max(), given=True)
                raise ValueError(f"{fold} names {bad}; expected row indices from 0 to {problem.n_rows - 1}.")
        learned, tested = np.zeros(problem.n_rows, dtype=bool), np.zeros(problem.n_rows, dtype=bool)
        learned[train.astype(np.int64)], tested[test.astype(np.int64)] = True, True
        if np.count_nonzero(learned) < train.size:
            raise ValueError(f"{fold} learns from a row twice; expected every row once (sample_weight counts rows).")
        if (learned & tested).any():
            row = numbered("row", int(np.argmax(learned & tested)), given=True)
            raise ValueError(f"{fold} learns from {row} and is tested on it; expected one or the other.")
        tested &= present
        if not tested.any():
            raise ValueError(f"{fold} holds out rows of weight zero only; expected rows that count.")
        if np.count_nonzero(weight[learned]) < 2:
            raise ValueError(f"{fold} leaves fewer than two rows to learn from; hold out fewer rows.")
        rows.append(np.flatnonzero(tested))
        left_out.append(np.flatnonzero(present & ~learned))
    if len(rows) < 2:
        raise ValueError(f"cv gives {len(rows)} fold{'s' * (len(rows) != 1)}; expected at least two.")
    if by_row is None:
        by_row = bool(np.any(np.bincount(np.concatenate(rows)) > 1))
    return Folds(tuple(rows), tuple(left_out), how, by_row)
