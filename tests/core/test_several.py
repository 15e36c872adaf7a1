"""Several targets, one set of columns: energies, fits and searches against literal computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from _cases import squares
from pairflip import SubsetProblem, best_subset, select_size

RNG = np.random.default_rng(2)
X = RNG.normal(size=(20, 7))
Y = (X @ RNG.normal(size=(7, 3)) + RNG.normal(size=(20, 3))) * [1.0, 100.0, 0.01]


def test_coefficients_are_those_of_each_target_alone() -> None:
    for seed in (0, 1, 4, 7, 8, 13):
        problem = squares(seed, 3).problem
        support = problem.candidates[[0, 3, 5]]
        fit = problem.fit(support)
        given: dict[str, Any] = {
            "always": problem.always, "sample_weight": problem.sample_weight, "ridge": problem.ridge,
            "center": problem.center,
        }  # fmt: skip
        for t, y in enumerate(problem.targets.T):
            alone = SubsetProblem(problem.X, y, **given).with_shrinkage(problem.shrinkage).fit(support)
            np.testing.assert_allclose(fit.coef[:, t], alone.coef, rtol=1e-6)
            np.testing.assert_allclose(fit.intercept[t], alone.intercept, rtol=1e-6, atol=1e-8 * np.abs(y).max())
            np.testing.assert_allclose(fit.always_coef[:, t], alone.always_coef, rtol=1e-6, atol=1e-9)
        assert fit.energy == pytest.approx(problem.energy(support))


def test_names_scales_and_a_single_column() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(Y, columns=["t0", "t1", "t2"])
    problem, tenfold = SubsetProblem(X, frame), SubsetProblem(X, frame * 10.0)
    assert problem.target_names == list(frame.columns)
    assert problem.form.yy == pytest.approx(Y.size)  # unit variance: each target adds its rows
    assert tenfold.energy([0, 2]) == pytest.approx(problem.energy([0, 2]))
    one, ten = (SubsetProblem(X, Y * factor, scale_targets=False).energy([0, 2]) for factor in (1.0, 10.0))
    assert ten == pytest.approx(100.0 * one)
    assert SubsetProblem(X, Y[:, :1]).energy([0, 2]) == SubsetProblem(X, Y[:, 0]).energy([0, 2])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda Y: Y[:-1], "one row of targets per row"),
        (lambda Y: np.where(np.arange(Y.shape[1]) == 1, np.nan, Y), "target 'y1': y contains NaN"),
        (lambda Y: np.where(np.arange(Y.shape[1]) == 1, 2.0, Y), "'y1' is constant"),
        (lambda Y: Y.astype(complex) * 1j, "complex"),
    ],
)
def test_bad_targets_are_refused_in_one_sentence(change: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        SubsetProblem(X, change(Y))


def test_what_there_is_not_for_several_targets_is_refused() -> None:
    with pytest.raises(ValueError, match="several targets"):
        best_subset(SubsetProblem(X, Y), 2, engine="cuda")
    with pytest.raises(ValueError, match="memory_budget"):
        SubsetProblem(X, Y, memory_budget=100)


def test_the_reference_engine_leaves_searches_to_the_other() -> None:
    problem = SubsetProblem(X, Y)
    found = [best_subset(problem, 3, effort="quick", engine=engine, prove=False) for engine in ("reference", "numba")]
    assert [trace.engine for trace in found] == ["numba", "numba"]
    assert "walks annealing chains only" in found[0].note
    assert found[0].best_energy == pytest.approx(found[1].best_energy, rel=1e-9)


def test_a_ridge_is_chosen_for_several_targets_and_under_rules() -> None:
    for y, more in ((Y, {}), (Y[:, 0], {"min_distance": 2}), (Y, {"min_distance": 2})):
        problem = SubsetProblem(X, y, **more)
        curve = select_size(problem, [1, 2], cv=4, ridge="auto", effort="quick", progress=False)
        alone = select_size(problem.with_shrinkage(0.1), [1, 2], cv=4, effort="quick", progress=False)
        assert curve.ridge_surface is not None
        np.testing.assert_allclose(curve.ridge_surface.errors[1], alone.cv_error, rtol=1e-9)
