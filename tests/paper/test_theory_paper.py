"""The paper's parameters: a table of reference values computed elsewhere, and what the paper says of them."""

import math

import numpy as np
import pytest

from pairflip import theory

MODEL = theory.Planted(alpha=0.5, rho0=0.1, var_x=10.0, var_noise=0.1)

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


def test_broken_lines_of_the_first_figure():
    betas = [theory.at_point(rho, MODEL).beta for rho in (0.05, 0.10, 0.15)]
    assert betas == pytest.approx([24.110, 23.912, 27.266], abs=6e-4)


@pytest.mark.parametrize(
    ("alpha", "rho", "ground", "at"), [(0.49, 0.06, 0.09855, 0.09680), (0.495, 0.1, 0.24464, 0.12135)]
)
def test_leave_one_out_has_one_row_less(alpha, rho, ground, at):
    model = theory.Planted(alpha=alpha)
    assert theory.solve(math.inf, rho, model).epsilon_g == pytest.approx(ground, abs=6e-6)
    assert theory.at_point(rho, model).state.epsilon_g == pytest.approx(at, abs=6e-6)


def test_one_branch_from_hot_to_cold():
    for beta in np.geomspace(1e-3, 1e8, 12):
        assert len(theory.solve_all(beta, 0.1, MODEL)) == 1
