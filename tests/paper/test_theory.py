"""The replica theory: the paper's numbers, closed forms, thermodynamics, other parameters, bad input, speed."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from _errors import sentence_of
from pairflip import theory

MODEL = theory.Planted()  # the paper's parameters

# rho; epsilon, epsilon_g, TPR, s at infinite beta; T, epsilon, epsilon_g, s, TPR at AT; T, epsilon, epsilon_g at s = 0
TABLE = """
0.0200 0.195814 0.259231 0.1997 -0.00115 0.136456 0.196171 0.258786 0.00146 0.1998 0.060376 0.195883 0.258920
0.0300 0.133492 0.188859 0.2992 -0.00141 0.095030 0.133798 0.188412 0.00180 0.2993 0.041889 0.133551 0.188531
0.0400 0.094353 0.140582 0.3978 -0.00149 0.062519 0.094565 0.140156 0.00190 0.3980 0.027585 0.094394 0.140262
0.0500 0.069518 0.109824 0.4926 -0.00164 0.041477 0.069672 0.109274 0.00207 0.4931 0.018415 0.069548 0.109421
0.0600 0.053828 0.096388 0.5707 -0.00279 0.033881 0.054041 0.094989 0.00344 0.5728 0.015302 0.053870 0.095433
0.0625 0.050862 0.095956 0.5847 -0.00348 0.033940 0.051128 0.094023 0.00429 0.5876 0.015452 0.050915 0.094666
0.0650 0.048167 0.096622 0.5960 -0.00443 0.034487 0.048513 0.093927 0.00544 0.6002 0.015862 0.048236 0.094862
0.0700 0.043411 0.100834 0.6113 -0.00721 0.036282 0.044014 0.095669 0.00887 0.6190 0.017134 0.043534 0.097578
0.0800 0.035580 0.119001 0.6200 -0.01686 0.039639 0.037192 0.102945 0.02088 0.6403 0.020007 0.035921 0.108985
0.1000 0.023231 0.223413 0.5706 -0.06234 0.041821 0.028507 0.119832 0.05842 0.6578 0.023284 0.024724 0.144369
0.1200 0.005526 13.314058 0.1500 -0.50273 0.040808 0.022760 0.136314 0.09921 0.6659 0.022944 0.016656 0.190586
0.1500 0.000000 0.818823 0.4568 -inf 0.036676 0.016385 0.161868 0.15412 0.6729 0.017905 0.008504 0.262354
0.2000 0.000000 0.379126 0.6185 -inf 0.025259 0.008403 0.212755 0.21671 0.6788 0.007042 0.002237 0.312924
"""
ROWS = [[float(word) for word in line.split()] for line in TABLE.strip().splitlines()]
DIGITS = (6, 6, 4, 5, 6, 6, 6, 5, 4, 6, 6, 6)


@pytest.mark.parametrize("row", ROWS, ids=[f"rho-{row[0]}" for row in ROWS])
def test_reference_table(row):
    ground = theory.solve(math.inf, row[0], MODEL)
    at, zero = theory.at_point(row[0], MODEL), theory.zero_entropy_point(row[0], MODEL)
    computed = [ground.epsilon, ground.epsilon_g, ground.true_positive_rate, ground.entropy]
    computed += [at.temperature, at.state.epsilon, at.state.epsilon_g, at.state.entropy, at.state.true_positive_rate]
    computed += [zero.temperature, zero.state.epsilon, zero.state.epsilon_g]
    for value, printed, digits in zip(computed, row[1:], DIGITS, strict=True):
        assert value == pytest.approx(printed, abs=0.51 * 10.0**-digits)
    assert at.state.at_stability == pytest.approx(1, abs=1e-10)
    assert zero.state.entropy == pytest.approx(0, abs=1e-10)
    assert ground.zero_energy == (row[0] > theory.critical_rho(MODEL.alpha))


@pytest.mark.parametrize(("at", "rho", "error"), [("inf", 0.06220, 0.095948), ("at", 0.06404, 0.093871)])
def test_best_size_is_about_0_063(at, rho, error):
    best = theory.optimal_rho(MODEL, at=at)
    assert best.exists
    assert best.rho == pytest.approx(rho, abs=1e-5)
    assert best.epsilon_g == pytest.approx(error, abs=1e-6)
    assert abs(best.rho - 0.063) < 0.0015


def test_error_at_the_at_point_never_exceeds_that_at_infinity():
    rhos = np.linspace(0.01, 0.24, 24)
    at, ground = theory.curve_over_rho(rhos, MODEL, at="at"), theory.curve_over_rho(rhos, MODEL, at="inf")
    assert at.exists.all()
    assert (at.epsilon_g <= ground.epsilon_g).all()


@pytest.mark.parametrize(
    ("alpha", "rho", "ground", "at"), [(0.49, 0.06, 0.09855, 0.09680), (0.495, 0.1, 0.24464, 0.12135)]
)
def test_leave_one_out_has_one_row_less(alpha, rho, ground, at):
    model = theory.Planted(alpha=alpha)
    assert theory.solve(math.inf, rho, model).epsilon_g == pytest.approx(ground, abs=6e-6)
    assert theory.at_point(rho, model).state.epsilon_g == pytest.approx(at, abs=6e-6)


MODELS = [
    MODEL,
    theory.Planted(alpha=0.9, rho0=0.3, var_x=2.0, var_noise=1.0),
    theory.Planted(alpha=0.2, rho0=0.02, var_x=10.0, var_noise=0.0),
]


def expected(rho, model):
    V = (1 - rho) * model.rho0 * model.var_x + model.var_noise
    entropy = -rho * math.log(rho) - (1 - rho) * math.log(1 - rho)
    return (1 - rho / model.alpha) * V / 2, V / (2 * (1 - rho / model.alpha)), entropy


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("part", [0.01, 0.3, 0.9])
@pytest.mark.parametrize(("beta", "tolerance"), [(0.0, 1e-14), (1e-13, 1e-11)])
def test_infinite_temperature(model, part, beta, tolerance):
    rho = part * model.alpha
    state = theory.solve(beta, rho, model)
    assert state.exists
    assert state.stable
    assert (state.epsilon, state.epsilon_g, state.entropy) == pytest.approx(expected(rho, model), rel=tolerance)
    assert state.true_positive_rate == pytest.approx(rho, rel=1e-11)
    assert state.precision == pytest.approx(model.rho0, rel=1e-11)
    assert state.at_stability == pytest.approx(rho**2 / model.alpha, rel=1e-10)


@pytest.mark.parametrize("rho", [0.03, 0.05, 0.0625, 0.1])
def test_large_beta_tends_to_the_ground_state(rho):
    """epsilon differs by beta^-2, epsilon_g and the entropy by 1 / beta: ten times colder, ten times closer."""
    ground = theory.solve(math.inf, rho, MODEL)
    cold, colder = (theory.solve(beta, rho, MODEL) for beta in (1e6, 1e7))
    assert cold.epsilon == pytest.approx(ground.epsilon, rel=1e-7)
    for name in ("epsilon_g", "entropy", "tau2", "threshold"):
        limit = getattr(ground, name)
        ratio = (getattr(cold, name) - limit) / (getattr(colder, name) - limit)
        assert ratio == pytest.approx(10, rel=1e-2)


def test_critical_size():
    assert theory.critical_rho(0.5) == pytest.approx(0.12401, abs=5e-6)
    assert theory.critical_rho(1.0) == math.inf


def test_zero_energy_beyond_the_critical_size():
    state = theory.solve(math.inf, 0.15, MODEL)
    assert state.exists
    assert state.zero_energy
    assert state.epsilon == 0
    assert state.epsilon_g == pytest.approx(0.818823, abs=5e-7)
    assert state.entropy == -math.inf
    assert "zero-energy" in state.note
    cold = theory.solve(1e8, 0.15, MODEL)
    assert not cold.zero_energy
    assert cold.epsilon == pytest.approx(0.35 / (2 * 0.5) * 1e-8, rel=1e-6)
    assert cold.epsilon_g == pytest.approx(state.epsilon_g, rel=1e-6)


def test_without_noise_the_signal_is_recovered():
    model = theory.Planted(var_noise=0.0)
    state = theory.solve(math.inf, 0.15, model)
    assert (state.epsilon, state.epsilon_g, state.true_positive_rate) == (0, 0, 1)
    assert state.others == len(theory.solve_all(math.inf, 0.15, model)) - 1 > 0
    cold = theory.solve(1e9, 0.15, model)
    assert cold.epsilon_g < 1e-12
    assert cold.entropy == pytest.approx(state.entropy, rel=1e-3)


CASES = [
    (MODEL, 0.05),
    (MODEL, 0.1),
    (MODEL, 0.2),
    (theory.Planted(0.9, 0.3, 10.0, 1.0), 0.6),
    (theory.Planted(0.2, 0.02, 10.0, 0.01), 0.05),
    (theory.Planted(0.5, 0.1, 10.0, 0.0), 0.08),
]


@pytest.mark.parametrize(("model", "rho"), CASES)
@pytest.mark.parametrize("beta", [0.01, 1.0, 20.0, 1000.0])
def test_slope_of_the_free_entropy_is_minus_the_energy(model, rho, beta):
    h = 1e-3
    phi = [theory.solve(beta * (1 + step * h), rho, model).free_entropy for step in (-2, -1, 1, 2)]
    slope = (phi[0] - 8 * phi[1] + 8 * phi[2] - phi[3]) / (12 * h * beta)
    state = theory.solve(beta, rho, model)
    assert slope == pytest.approx(-model.alpha * state.epsilon, rel=1e-7)
    assert state.free_entropy == pytest.approx(state.entropy - beta * model.alpha * state.epsilon, rel=1e-11)
    assert state.free_energy == pytest.approx(-state.free_entropy / beta, rel=1e-14)


@pytest.mark.parametrize(("model", "rho"), CASES)
@pytest.mark.parametrize("beta", [0.1, 5.0, 50.0])
def test_equations_hold_by_another_quadrature(model, rho, beta):
    s = theory.solve(beta, rho, model)
    assert s.b == pytest.approx(beta * s.a, rel=1e-13)

    def mean(values, variance):
        edges = [0, *sorted({s.threshold, variance**0.5, s.tau2**0.5}), 12 * variance**0.5]
        density = norm(scale=variance**0.5).pdf
        parts = [
            quad(
                lambda r: 2 * density(r) * values(r, expit(0.5 * s.b * r * r - s.kappa)), a, b, epsabs=1e-13, limit=200
            )
            for a, b in itertools.pairwise(edges)
            if b > a and a < 12 * variance**0.5
        ]
        return sum(part[0] for part in parts)

    def average(values):
        null, true = mean(values, s.tau2), mean(values, s.tau2 + model.var_x)
        return (1 - model.rho0) * null + model.rho0 * true

    tol = {"rel": 1e-9, "abs": 1e-11}
    assert average(lambda r, p: p) == pytest.approx(rho, **tol)
    variance = average(lambda r, p: p * (1 - p) * r * r)
    assert pytest.approx(variance, **tol) == s.V
    assert s.a == pytest.approx(model.alpha - rho - s.b * variance, rel=1e-8)
    q = average(lambda r, p: p * p * r * r)
    m = model.rho0 * model.var_x / (model.var_x + s.tau2) * mean(lambda r, p: p * r * r, s.tau2 + model.var_x)
    assert (s.q, s.m) == pytest.approx((q, m), **tol)
    power = model.var_noise + model.rho0 * model.var_x - 2 * m + q
    assert model.alpha * s.tau2 == pytest.approx(power, rel=1e-8, abs=1e-11)
    response = average(lambda r, p: (p + s.b * p * (1 - p) * r * r) ** 2)
    assert s.at_stability == pytest.approx(response / model.alpha, **tol)
    assert s.true_positive_rate == pytest.approx(mean(lambda r, p: p, s.tau2 + model.var_x), **tol)


def test_entropy_is_the_integral_of_the_energy():
    """s(beta) = s(0) + beta alpha epsilon(beta) - alpha int epsilon, by Gauss-Legendre."""
    model, rho, beta = MODEL, 0.1, 8.0
    nodes, weights = np.polynomial.legendre.leggauss(40)
    area = 0.0
    for low, high in itertools.pairwise((0.0, 0.2, 1.0, 3.0, beta)):
        curve = theory.curve_over_beta(low + 0.5 * (high - low) * (nodes + 1), rho, model)
        area += 0.5 * (high - low) * weights @ curve.epsilon
    state = theory.solve(beta, rho, model)
    expected = theory.solve(0, rho, model).entropy + model.alpha * (beta * state.epsilon - area)
    assert state.entropy == pytest.approx(expected, rel=1e-8)


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
    state = theory.solve(1.0, 0.5, MODEL)
    assert not state.exists
    assert math.isnan(state.epsilon)
    assert "fits all rows exactly" in state.note
    assert theory.solve_all(1.0, 0.6, MODEL) == []
    assert not theory.at_point(0.5, MODEL).exists
    curve = theory.curve_over_rho([0.1, 0.6], MODEL, at=10.0)
    assert curve.exists.tolist() == [True, False]


def test_no_at_line_where_the_stability_stays_below_one():
    model = theory.Planted(alpha=0.3)
    point = theory.at_point(0.2, model)
    assert not point.exists
    assert "never meets the AT instability" in point.note
    assert theory.solve(math.inf, 0.2, model).at_stability < 1
    assert theory.zero_entropy_point(0.2, model).exists


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


BAD = {
    "alpha": (ValueError, lambda: theory.Planted(alpha=0), "alpha is 0"),
    "rho0": (ValueError, lambda: theory.Planted(rho0=1.5), "rho0 is 1.5"),
    "var_noise": (ValueError, lambda: theory.Planted(var_noise=-1), "var_noise is -1"),
    "not a number": (TypeError, lambda: theory.Planted(alpha="half"), "alpha is 'half'"),
    "beta": (ValueError, lambda: theory.solve(-1, 0.1, MODEL), "beta is -1"),
    "rho": (ValueError, lambda: theory.solve(1, 0, MODEL), "rho is 0"),
    "model": (TypeError, lambda: theory.solve(1, 0.1, 0.5), "model is 0.5"),
    "at": (ValueError, lambda: theory.curve_over_rho([0.1], MODEL, at="cold"), "at is 'cold'"),
    "empty": (ValueError, lambda: theory.curve_over_beta([], 0.1, MODEL), "betas is empty"),
}


@pytest.mark.parametrize(("kind", "call", "named"), BAD.values(), ids=BAD)
def test_bad_input_is_one_sentence(kind, call, named):
    assert named in sentence_of(kind, call)
