"""Small problems on which engines are compared: easy ones, and every kind on which something can go wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.problem import SubsetProblem

Recipe = Callable[[np.random.Generator], tuple[Form, int]]


@dataclass(frozen=True, eq=False)
class Case:
    """A problem as engines see it, and the size of its supports."""

    name: str
    form: Form
    k: int


def _table(rng: np.random.Generator, M: int, N: int, correlation: float = 0.0) -> tuple[Floats, Floats]:
    """AR(1) columns X (M, N) and a target that three of them predict."""
    X = rng.normal(size=(M, N))
    for j in range(1, N):
        X[:, j] = correlation * X[:, j - 1] + (1 - correlation**2) ** 0.5 * X[:, j]
    chosen = X[:, rng.choice(N, size=min(3, N), replace=False)]
    y = chosen @ rng.normal(size=chosen.shape[1]) + 0.5 * rng.normal(size=M)
    return X, y


def _problem(rng: np.random.Generator, M: int, N: int, correlation: float = 0.0, **options: Any) -> SubsetProblem:
    return SubsetProblem(*_table(rng, M, N, correlation), **options)


def _plain(rng: np.random.Generator) -> tuple[Form, int]:
    N = int(rng.integers(6, 25))
    return _problem(rng, 18, N).form, int(rng.integers(2, min(N, 8)))


def _global_center(rng: np.random.Generator) -> tuple[Form, int]:
    X, y = _table(rng, 15, 14)
    return SubsetProblem(X + 3.0, y - 2.0, center="global").held_out([4]), 4


def _weighted(rng: np.random.Generator) -> tuple[Form, int]:
    weights = rng.exponential(size=20)
    weights[[3, 11]] = 0.0
    return _problem(rng, 20, 15, sample_weight=weights).form, 4


def _all_but_one(rng: np.random.Generator) -> tuple[Form, int]:
    N = int(rng.integers(2, 12))
    return _problem(rng, 20, N).form, N - 1


def _duplicated(rng: np.random.Generator) -> tuple[Form, int]:
    X, y = _table(rng, 18, 10)
    return SubsetProblem(np.hstack([X, X[:, [0, 3]], -2.0 * X[:, [3]]]), y).form, int(rng.integers(2, 8))


def _dependent(rng: np.random.Generator) -> tuple[Form, int]:
    X, y = _table(rng, 18, 8)
    return SubsetProblem(np.hstack([X, X[:, :4] @ rng.normal(size=(4, 3))]), y).form, 5


def _constant(rng: np.random.Generator) -> tuple[Form, int]:
    X, y = _table(rng, 14, 12)
    X[:, 2], X[:, 7] = 5.0, 0.0
    X[:, 9] = 0.0
    X[6, 9] = 1.0  # varies in one row only, so it is constant in the fold without that row
    return SubsetProblem(X, y).held_out([6]), 4


def _rows_out(rng: np.random.Generator) -> tuple[Form, int]:
    X, y = _table(rng, 20, 14, 0.5)
    return SubsetProblem(X, y, always=[2, 5], sample_weight=rng.exponential(size=20)).held_out([0, 7, 8, 19]), 4


_RECIPES: dict[str, Recipe] = {
    "plain": _plain,
    "no intercept": lambda rng: (_problem(rng, 15, 14, center=None).form, 5),
    "centred once, one row out": _global_center,
    "correlated 0.9": lambda rng: (_problem(rng, 25, 20, 0.9).form, int(rng.integers(3, 9))),
    "nearly collinear 0.9999": lambda rng: (_problem(rng, 25, 18, 0.9999).form, int(rng.integers(2, 7))),
    "weighted": _weighted,
    "ridge": lambda rng: (SubsetProblem(*_table(rng, 16, 15, 0.5), ridge=float(rng.exponential())).form, 6),
    "ridge, k > M": lambda rng: (_problem(rng, 8, 20, ridge=0.3).form, 11),
    "k = 1": lambda rng: (_problem(rng, 12, 20).form, 1),
    "k = N - 1": _all_but_one,
    "N > M": lambda rng: (_problem(rng, 10, 25).form, int(rng.integers(2, 9))),
    "duplicated columns": _duplicated,
    "linearly dependent columns": _dependent,
    "constant columns": _constant,
    "one row out": lambda rng: (_problem(rng, 16, 14).held_out([int(rng.integers(16))]), 4),
    "four rows out, forced columns": _rows_out,
    "from the columns": lambda rng: (
        _problem(rng, 12, 20, 0.5, ridge=0.1, memory_budget=0).form, int(rng.integers(2, 8)),
    ),
    "from the columns, two rows out": lambda rng: (_problem(rng, 16, 18, memory_budget=0).held_out([3, 5]), 5),
}  # fmt: skip


def _spectra(rng: np.random.Generator, M: int, N: int, noise: float) -> tuple[Floats, Floats]:
    """Columns (M, N) that five components explain but for `noise`, and a target that the components predict."""
    parts, shapes = rng.normal(size=(M, 5)), np.cumsum(rng.normal(size=(5, N)), axis=1)
    return parts @ shapes + noise * rng.normal(size=(M, N)), parts @ rng.normal(size=5) + 0.3 * rng.normal(size=M)


def _twins(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Columns, and for each a twin that differs by 1e-3 to 1e-7: inflations of 1e6 to 1e14, around the limit."""
    X, y = _table(rng, 25, 9)
    return np.hstack([X, X + 10.0 ** rng.uniform(-7, -3, size=9) * rng.normal(size=X.shape)]), y


def _sums(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Columns, twins of some, and sums of others: supports that span the same space have the same energy."""
    X, y = _table(rng, 25, 8)
    twins = X[:, :3] + 1e-4 * rng.normal(size=(25, 3))
    return np.hstack([X, twins, X[:, [1]] + X[:, [4]], X[:, [2]] - X[:, [5]], 2.0 * X[:, [6]]]), y


_DELICATE: dict[str, Recipe] = {
    "spectra": lambda rng: (SubsetProblem(*_spectra(rng, 30, 16, 1e-3)).form, 8),
    "spectra, less noise": lambda rng: (SubsetProblem(*_spectra(rng, 30, 16, 2e-4)).form, 9),
    "spectra, weights, forced column": lambda rng: (
        SubsetProblem(*_spectra(rng, 30, 16, 1e-3), sample_weight=rng.exponential(size=30), always=[3]).form,
        7,
    ),
    "spectra, little ridge": lambda rng: (SubsetProblem(*_spectra(rng, 30, 16, 1e-3), ridge=1e-6).form, 8),
    "spectra, two rows out": lambda rng: (SubsetProblem(*_spectra(rng, 30, 16, 1e-3)).held_out([2, 9]), 8),
    "spectra from the columns": lambda rng: (SubsetProblem(*_spectra(rng, 30, 16, 1e-3), memory_budget=0).form, 8),
    "spectra, many rows": lambda rng: (SubsetProblem(*_spectra(rng, 90, 16, 1e-3)).form, 8),
    "twins": lambda rng: (SubsetProblem(*_twins(rng)).form, 6),
    "sums": lambda rng: (SubsetProblem(*_sums(rng)).form, 6),
}


def _cases(recipes: dict[str, Recipe], year: int, each: int) -> tuple[Case, ...]:
    return tuple(
        Case(f"{name} #{seed}", *recipe(np.random.default_rng([year, number, seed])))
        for number, (name, recipe) in enumerate(recipes.items())
        for seed in range(each)
    )


@cache
def delicate_cases() -> tuple[Case, ...]:
    """Problems so collinear that the Gram matrix alone cannot decide flips, and problems with equal energies."""
    return _cases(_DELICATE, 2018, 2)


@cache
def random_cases(each: int = 3) -> tuple[Case, ...]:
    """`each` random problems of every kind, always the same ones."""
    return _cases(_RECIPES, 2016, each)


def well_conditioned(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """Those in which no two columns, and no few together, are nearly dependent."""
    return tuple(case for case in cases if not case.name.startswith(("nearly", "linearly")))


@cache
def enumerated_cases() -> tuple[Case, ...]:
    """Problems with so few supports (at most 70) that the whole transition matrix can be written down."""
    rng = np.random.default_rng(2016)
    X, y = _table(rng, 12, 7)
    weights = rng.exponential(size=12)
    weights[5] = 0.0
    wide, target = _table(rng, 6, 8)
    correlated = _table(rng, 12, 8, 0.8)
    twice = np.hstack([X[:, :4], X[:, [0, 2]]])
    return (
        Case("centred", SubsetProblem(X, y).form, 3),
        Case("no intercept", SubsetProblem(X, y, center=None).form, 2),
        Case("correlated", SubsetProblem(*correlated).form, 4),
        Case("weighted, forced column", SubsetProblem(X, y, sample_weight=weights, always=[6]).form, 3),
        Case("ridge", SubsetProblem(X[:, :6], y, ridge=2.0).form, 4),
        Case("duplicated columns", SubsetProblem(twice, y).form, 3),
        Case("N > M", SubsetProblem(wide, target, center=None).form, 4),
        Case("one row out", SubsetProblem(X, y).held_out([3]), 2),
        Case("three rows out, forced column", SubsetProblem(X, y, always=[0]).held_out([1, 2, 9]), 3),
        Case("from the columns", SubsetProblem(X, y, memory_budget=0).form, 5),
        Case("k = 1", SubsetProblem(X, y).form, 1),
    )
