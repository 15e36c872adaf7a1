"""Folds that leave out one row, as whole arrays: not a bit differs from one problem and one support at a time."""

import numpy as np
import pytest

from pairflip import SubsetProblem, datasets
from pairflip.losses import fold_fits
from pairflip.losses.held_out import HeldOutErrors
from pairflip.losses.one_row_out import OneRowOut, leaves_one_out
from pairflip.selection.folds import as_folds

CASES = [
    dict(center=None),
    dict(center="global"),
    dict(),
    dict(ridge=0.3, sample_weight=True),
    dict(always=[0, 3]),
    dict(center=None, always=[2], ridge=0.1),
]


def problem_of(case, seed=0, N=40):
    data = datasets.make_planted(N=N, alpha=0.6, seed=seed)
    options = dict(case)
    if options.pop("sample_weight", False):
        options["sample_weight"] = np.random.default_rng(seed).uniform(0.5, 2.0, data.y.size)
    X, y = data.X.copy(), data.y.copy()
    X[3] *= 30.0  # one row that few supports leave anything to
    return SubsetProblem(X, y, **options)


@pytest.mark.parametrize("case", CASES)
def test_problems_without_one_row_are_the_same_to_the_bit(case):
    problem = problem_of(case)
    assert leaves_one_out(problem)
    together = OneRowOut.of(problem, np.arange(problem.n_rows))
    for row in range(problem.n_rows):
        alone = together.gram(row)
        for name in ("b", "unit"):
            assert getattr(together, name)[row].tobytes() == getattr(alone, name).tobytes(), (row, name)
        assert together.left_out[row].tobytes() == alone.left_out[0].tobytes()
        assert (together.yy[row], together.trust[row]) == (alone.yy, alone.trust)


@pytest.mark.parametrize("k", [1, 2, 5, 11])
@pytest.mark.parametrize("case", CASES)
def test_coefficients_of_many_supports_are_the_same_to_the_bit(case, k, monkeypatch):
    problem = problem_of(case, seed=k)
    rng, folds = np.random.default_rng(k), as_folds("loo", problem)
    pool = np.array([np.sort(rng.choice(problem.candidates, k, replace=False)) for _ in range(9)])
    supports = pool[rng.integers(0, len(pool), len(folds))]
    together = fold_fits.fold_coefficients(problem, folds, supports)
    monkeypatch.setattr(fold_fits, "coefficients_without_one", lambda *_, **__: iter(()))
    alone = fold_fits.fold_coefficients(problem, folds, supports)
    for name in ("coefs", "always_coefs", "intercepts"):
        assert getattr(together, name).tobytes() == getattr(alone, name).tobytes(), name


@pytest.mark.parametrize("case", CASES)
def test_residuals_without_columns_are_the_same_to_the_bit(case):
    problem = problem_of(case)
    errors = HeldOutErrors(problem, as_folds("loo", problem))
    nothing, root = np.empty(0, dtype=np.int64), np.sqrt(problem.sample_weight)
    alone = [errors._refit(nothing, np.array([row]))[0] / root[row] for row in range(problem.n_rows)]
    assert errors.without_columns().tobytes() == np.array(alone).tobytes()
    assert errors.yy.tolist() == [problem.held_out([row]).yy for row in range(problem.n_rows)]
