"""Ours: the search of `select_size` at each effort, timed alone, then its curve; and averages over models."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache, partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairflip.comparison.registry import Model, Peer, Training
from pairflip.problem import SubsetProblem
from pairflip.search.posterior import posterior
from pairflip.selection import Selection, SizeCurve, run_shard, select_size

_ALONE: dict[str, Any] = {"engine": "numba", "n_jobs": 1, "progress": False}
_SWEEPS = 100, 1000
_MOVES = 400_000  # attempted moves of a walk among models, within these numbers of sweeps


@cache
def compile_first(method: str) -> None:
    """Have the kernels of one of our methods compiled, or loaded, before anything is timed."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(16, 8)), rng.normal(size=16)
    if method == "averaged":
        posterior(SubsetProblem(X[:, :5], y), method="enumerate")
        posterior(SubsetProblem(X[:, :5], y), method="sample", sweeps=20)
        return
    for columns in (X, X[:, :1] + 1e-4 * X):  # the second has kernels for nearly dependent columns at work
        select_size(SubsetProblem(columns, y), [1, 2], 4, effort=method, prove=False, **_ALONE)


def search(
    effort: str, problem: SubsetProblem, selection: Selection, groups: ArrayLike | None
) -> tuple[SizeCurve, float]:
    """What `select_size` returns, and the CPU seconds in which its folds and final fits were searched.

    The search is done into a journal first, so that scoring and facts about the table are not in the time.
    """
    compile_first(effort)
    chosen = replace(selection, effort=effort)  # type: ignore[arg-type]
    with TemporaryDirectory() as folder:
        began = time.process_time()
        run_shard(problem, chosen, journal=folder, shard=(1, 1), groups=groups, **_ALONE)
        seconds = time.process_time() - began
        return select_size(problem, chosen, journal=folder, groups=groups, **_ALONE), seconds


def averaged(training: Training) -> Model:
    """Predictions of all models together, each as much as it is probable; a walk is as long as its table allows."""
    compile_first("averaged")
    whole, rows = training.problem, training.rows
    center: Any = None if whole.center is None else "fold"
    options: dict[str, Any] = {"sample_weight": whole.sample_weight[rows], "always": whole.always, "center": center}
    problem = SubsetProblem(whole.X[rows], whole.y[rows], **options)
    sweeps = int(np.clip(_MOVES / problem.n_columns, *_SWEEPS))
    return Model(posterior(problem, sweeps=sweeps, seed=training.seed).predict)


QUICK, NORMAL, THOROUGH = (
    Peer(effort, f"pairflip, {effort}", about, search=partial(search, effort))
    for effort, about in (
        ("quick", "A path over all sizes with a descent at each."),
        ("normal", "The path, descents and kicks."),
        ("thorough", "More chains, more kicks."),
    )
)
AVERAGED = Peer(
    "averaged", "pairflip, averaged", "Predictions averaged over models, each as much as it is probable.", fit=averaged
)
