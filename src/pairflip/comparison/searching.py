"""A method at work: in every fold and on all rows, each time with its training rows alone, timed."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.comparison.registry import Peer, PeerFailed
from pairflip.comparison.training import Model, Training, all_rows
from pairflip.least_squares import Floats, qr_energy
from pairflip.problem import SubsetProblem
from pairflip.selection.folds import Folds
from pairflip.text import numbered, one_line, shorten

Supports = NDArray[np.int64]


@dataclass(frozen=True)
class CommonGround:
    """What all methods are compared on: table, folds, sizes; `cv`, `groups` and `seed` as in `compare`."""

    problem: SubsetProblem
    folds: Folds
    sizes: tuple[int, ...]
    seed: int = 0
    cv: Any = 10
    groups: ArrayLike | None = None

    def training(self, fold: int) -> Training:
        """The rows that a fold learns from; after the last fold, all rows."""
        rows = all_rows(self.problem)
        if fold < len(self.folds):
            rows = np.setdiff1d(rows, self.folds.left_out[fold])
        groups = None if self.groups is None else np.asarray(self.groups)
        return Training(self.problem, rows, self.seed, self.cv, groups)


@dataclass(frozen=True)
class FoundSupports:
    """Supports of a method in columns of the table, by size.

    `folds` has those of the folds (F, k), `final` that of all rows (k,), `lacking` why there are none, and `seconds`
    the CPU seconds of each size (of all sizes, where they come from one path).
    """

    folds: dict[int, Supports]
    final: dict[int, Supports]
    lacking: dict[int, str]
    seconds: dict[int, float]


@dataclass(frozen=True)
class FoundModels:
    """What a method without sizes found: residuals (P,) of held-out rows and all else as in `FoundSupports`."""

    residuals: Floats
    energy_per_row: float
    energy: float
    final: Model
    seconds: float


def reason(error: Exception) -> str:
    """Why a method failed, on one line."""
    if isinstance(error, PeerFailed):
        return shorten(one_line(str(error)), 200)
    if isinstance(error, MemoryError):
        return "failed: not enough memory"
    text = one_line(str(error)) or "without a message"
    return shorten(f"failed: {type(error).__name__}: {text}", 200)


def find_supports(peer: Peer, ground: CommonGround) -> FoundSupports:
    """Supports of all sizes in every fold and on all rows.

    A fold in which the method fails ends it, with `PeerFailed`; a size that a fold lacks is lacking as a whole.
    """
    assert peer.find is not None
    sizes, count = ground.sizes, len(ground.folds)
    per_fold: dict[int, list[Supports]] = {size: [] for size in sizes}
    lacking: dict[int, str] = {}
    seconds = dict.fromkeys(sizes, 0.0)
    for fold in range(count + 1):
        where = numbered("fold", fold) if fold < count else "all rows"
        training = ground.training(fold)
        try:
            began = time.process_time()
            inside = training.projected
            shared = time.process_time() - began
            found: dict[int, Supports] = {}
            for part in [sizes] if peer.path else [(size,) for size in sizes]:
                began = time.process_time()
                found.update(peer.find(training, part))
                took = time.process_time() - began
                for size in part:
                    seconds[size] += shared + took
        except Exception as error:
            raise PeerFailed(f"{reason(error)} ({where})") from error
        for size in sizes:
            support, wrong = _checked(found.get(size), size, training)
            if support is None:
                lacking.setdefault(size, f"{wrong} ({where})")
            else:
                per_fold[size].append(inside.candidates[support])
    there = [size for size in sizes if size not in lacking]
    return FoundSupports(
        {size: np.stack(per_fold[size][:-1]) for size in there},
        {size: per_fold[size][-1] for size in there},
        lacking,
        seconds,
    )


def _checked(found: Any, size: int, training: Training) -> tuple[Supports | None, str]:
    """Sorted positions, or None and what is wrong with what was found."""
    if found is None:
        return None, f"found no {size} columns"
    support = np.unique(np.asarray(found))
    if support.size != size or not np.issubdtype(support.dtype, np.integer):
        return None, f"returned {support.size} different columns for size {size}"
    if support[0] < 0 or support[-1] >= training.columns.shape[1]:
        return None, f"returned positions that are not columns for size {size}"
    if not np.isfinite(qr_energy(training.columns[:, support], training.target, np.zeros(size))):
        return None, f"chose {size} columns that depend on each other"
    return support.astype(np.int64), ""


def fit_models(peer: Peer, ground: CommonGround) -> FoundModels:
    """Fit the training rows of every fold and predict the rows it holds out; then fit all rows."""
    assert peer.fit is not None
    problem, folds = ground.problem, ground.folds
    residuals, training_errors, seconds = np.empty(folds.row.size), [], 0.0
    for fold in range(len(folds) + 1):
        where = numbered("fold", fold) if fold < len(folds) else "all rows"
        training = ground.training(fold)
        try:
            began = time.process_time()
            model = peer.fit(training)
            seconds += time.process_time() - began
            own = _predicted(model, training.X)
            energy = 0.5 * float(training.weight @ (training.y - own) ** 2)
            if fold < len(folds):
                rows = folds.rows[fold]
                new = np.asarray(problem.X[rows], dtype=np.float64)
                residuals[folds.places[fold]] = problem.y[rows] - _predicted(model, new)
                training_errors.append(energy / training.rows.size)
        except Exception as error:
            raise PeerFailed(f"{reason(error)} ({where})") from error
    return FoundModels(residuals, float(np.mean(training_errors)), energy, model, seconds)


def _predicted(model: Model, X: Floats) -> Floats:
    values = np.asarray(model.predict(X), dtype=np.float64)
    if values.shape != (len(X),):
        raise PeerFailed(f"predicted an array of shape {values.shape} for {len(X)} rows")
    if not np.isfinite(values).all():
        raise PeerFailed("predicted something that is not a finite number")
    return values


def warm_up(peer: Peer) -> None:
    """Run it once on a small table, so that nothing that is timed has to be imported or compiled."""
    with suppress(Exception):  # what is wrong with it is said where it matters
        training = _small()
        if peer.find is not None:
            peer.find(training, (1, 2))
        elif peer.fit is not None:
            peer.fit(training)


@cache
def _small() -> Training:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 6))
    return Training(SubsetProblem(X, X[:, 0] + 0.1 * rng.normal(size=24)), np.arange(24))
