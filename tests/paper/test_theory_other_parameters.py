"""Other parameters than the paper's: a solution, or a record that says why there is none."""

import itertools
import math

import numpy as np
import pytest

from pairflip import theory

ALPHAS, RHO0S, NOISES, PARTS = (0.2, 0.5, 0.9), (0.02, 0.3), (0.0, 1.0), (0.05, 0.4, 0.9)
BETAS = np.concatenate([[0], np.geomspace(1e-6, 1e8, 15), [np.inf]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("alpha", "rho0"), list(itertools.product(ALPHAS, RHO0S)))
def test_every_record_is_a_solution_or_says_why_not(alpha, rho0):
    for var_noise, part in itertools.product(NOISES, PARTS):
        model, rho = theory.Planted(alpha, rho0, 10.0, var_noise), part * alpha
        curve = theory.curve_over_beta(BETAS, rho, model)
        assert curve.exists.all()
        assert np.isfinite([curve.epsilon, curve.epsilon_g]).all()
        assert (curve.epsilon_g >= curve.epsilon).all()
        assert (np.diff(curve.epsilon) <= 1e-12 * curve.epsilon[:-1]).all()  # dominant states: energy falls with T
        assert ((curve.true_positive_rate > 0) & (curve.true_positive_rate <= 1)).all()
        assert (curve.precision <= 1 + 1e-12).all()
        for point in (theory.at_point(rho, model), theory.zero_entropy_point(rho, model)):
            assert point.exists == math.isfinite(point.beta) == point.state.exists
            assert point.exists or point.note
        slope = [theory.solve(b, rho, model).free_entropy for b in (0.999, 1.001)]
        assert (slope[1] - slope[0]) / 0.002 == pytest.approx(-alpha * theory.solve(1.0, rho, model).epsilon, rel=1e-5)


def test_rows_fewer_than_selected_columns():
    state = theory.solve(1.0, 0.5, theory.Planted(alpha=0.5))
    assert not state.exists
    assert math.isnan(state.epsilon)
    assert "fits all rows exactly" in state.note
    assert theory.solve_all(1.0, 0.6, theory.Planted(alpha=0.5)) == []
    assert not theory.at_point(0.5, theory.Planted(alpha=0.5)).exists
    curve = theory.curve_over_rho([0.1, 0.6], theory.Planted(), at=10.0)
    assert curve.exists.tolist() == [True, False]


def test_no_at_line_where_the_stability_stays_below_one():
    point = theory.at_point(0.2, theory.Planted(alpha=0.3))
    assert not point.exists
    assert "never meets the AT instability" in point.note
    assert theory.solve(math.inf, 0.2, theory.Planted(alpha=0.3)).at_stability < 1
    assert theory.zero_entropy_point(0.2, theory.Planted(alpha=0.3)).exists


def test_several_branches_are_all_returned_and_ranked():
    model = theory.Planted(var_noise=1e-3)
    branches = theory.solve_all(1e4, 0.15, model)
    assert len(branches) == 3
    phi = [branch.free_entropy for branch in branches]
    assert phi == sorted(phi, reverse=True)
    assert [branch.dominant for branch in branches] == [True, False, False]
    assert all(branch.others == 2 and "one of 3 solutions" in branch.note for branch in branches)
    assert theory.solve(1e4, 0.15, model) == branches[0]
    for k, branch in enumerate(branches):  # each is a solution of its own: the identity holds along each
        low, high = (theory.solve_all(1e4 * (1 + step), 0.15, model)[k] for step in (-1e-3, 1e-3))
        assert (high.free_entropy - low.free_entropy) / 20 == pytest.approx(-0.5 * branch.epsilon, rel=1e-5)


def test_a_branch_that_ends_before_the_at_line_says_so():
    point = theory.at_point(0.3, theory.Planted(alpha=0.5, rho0=0.3, var_noise=0.0))
    assert not point.exists
    assert point.first_order
    assert "first-order" in point.note


def test_best_size_without_noise():
    best = theory.optimal_rho(theory.Planted(var_noise=0.0))
    assert (best.rho, best.epsilon_g) == (0.1, 0)
    assert "without noise" in best.note


def test_units_of_the_signal_do_not_matter():
    one, other = theory.Planted(), theory.Planted(var_x=10e6, var_noise=0.1e6)
    a, b = theory.solve(10.0, 0.1, one), theory.solve(10e-6, 0.1, other)
    assert b.epsilon_g == pytest.approx(1e6 * a.epsilon_g, rel=1e-10)
    assert b.entropy == pytest.approx(a.entropy, rel=1e-10)
