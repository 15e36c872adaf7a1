"""Ours, averaged: predictions of all models together, each as much as it is probable (`posterior`).

No set of columns is chosen, so there are no sizes. A walk among models is as long as its table allows: a few seconds
in a fold of thousands of columns.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from pairflip.comparison.registry import Peer
from pairflip.comparison.training import Model, Training
from pairflip.problem import SubsetProblem
from pairflip.search.posterior import posterior

_SWEEPS = 100, 1000
_MOVES = 400_000
"""Attempted moves of a walk, within these numbers of sweeps."""


@cache
def _compile_first() -> None:
    """Have the kernels compiled, or loaded, before anything is timed."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(16, 5)), rng.normal(size=16)
    posterior(SubsetProblem(X, y), method="enumerate")
    posterior(SubsetProblem(X, y), method="sample", sweeps=20)


def _fit(training: Training) -> Model:
    _compile_first()
    whole, rows = training.problem, training.rows
    inside = SubsetProblem(
        whole.X[rows], whole.y[rows], sample_weight=whole.sample_weight[rows], always=whole.always,
        center=None if whole.center is None else "fold",
    )  # fmt: skip
    sweeps = int(np.clip(_MOVES / inside.n_columns, *_SWEEPS))
    return Model(posterior(inside, sweeps=sweeps, seed=training.seed).predict)


AVERAGED = Peer(
    "averaged", "pairflip, averaged", "Predictions averaged over models, each as much as it is probable.",
    fit=_fit,
)  # fmt: skip
