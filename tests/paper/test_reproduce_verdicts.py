"""Verdicts hold for the right reason: a broken sampler, a wrong theory or a leaking fold turns one false."""

from dataclasses import replace

import numpy as np
import pytest

from pairflip.engines.numba import NumbaEngine
from pairflip.paper.reproduce import fig1, over_size, section3
from pairflip.paper.reproduce.finite_sample import factors, solve_equations, truth_of_model
from pairflip.paper.reproduce.over_size import Levels, SizePoints, points_of
from pairflip.paper.reproduce.problems import MODEL, anneal_all, draw_all
from pairflip.paper.reproduce.scales import PAPER, QUICK, SHOWN, annealing_cost, sizes_of
from pairflip.theory import at_point, solve

STUDY = ((100, 30), (300, 20))


class Broken(NumbaEngine):
    """The fast engine with other temperatures than it was told."""

    name = "broken"

    def __init__(self, wrong):
        super().__init__()
        self.wrong = wrong

    def walk(self, pairs, **options):
        return super().walk([(g, replace(plan, betas=self.wrong(plan.betas))) for g, plan in pairs], **options)


def study(engine):
    return [anneal_all(draw_all(N, n, 0), sizes_of(SHOWN, N), engine, 2) for N, n in STUDY]


def judged(walks):
    points = [points_of(each, "epsilon") for each in walks]
    claims = (fig1.agreement(fig1.collect(walks)), over_size.above_bound(points), over_size.close_to_bound(points))
    return {claim.name: claim.holds for claim in claims}


@pytest.fixture(scope="module")
def sound():
    return study("numba")


def test_a_sound_sampler_and_theory_pass(sound):
    assert judged(sound) == dict.fromkeys(
        ("agreement_above_at", "energies_above_bound", "energies_close_to_bound"), True
    )


@pytest.mark.parametrize(
    ("wrong", "turned_false"),
    [
        (lambda betas: 0.0 * betas, {"agreement_above_at", "energies_close_to_bound"}),  # accepts always
        (lambda betas: 2.0 * betas, {"agreement_above_at"}),  # exp(-2 beta Delta E)
        (lambda betas: 0.5 * betas, {"agreement_above_at"}),  # E without its 1/2, divided
        (lambda betas: np.minimum(betas, 3.0), {"agreement_above_at", "energies_close_to_bound"}),  # stops early
    ],
    ids=["accepts-always", "twice-beta", "half-beta", "stops-early"],
)
@pytest.mark.slow
def test_a_broken_sampler_turns_a_verdict_false(wrong, turned_false):
    verdict = judged(study(Broken(wrong)))
    assert {name for name, holds in verdict.items() if not holds} >= turned_false


def scaled(level, factor):
    return replace(level, epsilon_inf=factor * level.epsilon_inf, epsilon_at=factor * level.epsilon_at)


def test_a_theory_with_a_wrong_factor_turns_a_verdict_false(sound, monkeypatch):
    cooling, theory_at = over_size.cooling, over_size.theory_at
    for factor in (0.9, 1.1, 2.0):
        monkeypatch.setattr(over_size, "cooling", lambda *a, f=factor: f * cooling(*a))
        monkeypatch.setattr(over_size, "theory_at", lambda *a, f=factor: scaled(theory_at(*a), f))
        assert not judged(sound)["agreement_above_at"], factor
    assert not judged(sound)["energies_above_bound"]


MORE = pytest.mark.slow
WRONG = ({"var_x": 12.0}, {"var_x": 8.0}, {"alpha": 0.6}, {"alpha": 0.4})


@pytest.mark.parametrize("wrong", [{"rho0": 0.12}, *(pytest.param(each, marks=MORE) for each in WRONG)])
def test_a_theory_of_another_model_turns_a_verdict_false(sound, monkeypatch, wrong):
    model = replace(MODEL, **wrong)
    monkeypatch.setattr(over_size, "model_at", lambda alpha: replace(model, alpha=alpha * model.alpha / MODEL.alpha))
    assert not judged(sound)["agreement_above_at"]


def synthetic(N, curve, noise=0.02, n=40, at=0.1, ground=0.1):
    """LOO errors that follow a curve of rho, with noise common to the sizes of a problem."""
    rng = np.random.default_rng(N)
    sizes = tuple(sizes_of(PAPER.loo_rhos, N))
    rhos = np.array(sizes) / N
    values = curve(rhos) * (1 + noise * rng.normal(size=(n, 1))) + 1e-4 * rng.normal(size=(n, rhos.size))
    theory = tuple(Levels(0.01, ground, 0.01, float(curve(r)) if at is None else at, 24.0, False) for r in rhos)
    return SizePoints(N, sizes, values, values, theory)


def bowl(rho, lowest=0.063):
    return 0.1 + 5.0 * (rho - lowest) ** 2


def test_loo_minimum_is_found_with_its_error():
    points = [synthetic(N, bowl) for N in (100, 200)]
    claim = over_size.lowest_near_rho_star(points)
    assert claim.holds
    assert claim.numbers["minima"][-1]["rho"] == pytest.approx(0.063, abs=0.002)
    assert 0 < claim.numbers["minima"][-1]["bar"] < 0.005
    elsewhere = [synthetic(N, lambda rho: bowl(rho, 0.11)) for N in (100, 200)]
    assert not over_size.lowest_near_rho_star(elsewhere).holds


def test_loo_errors_that_know_their_row_turn_all_verdicts_false():
    """A fold that leaks gives training errors: they fall with the size and lie far below epsilon_g."""
    leaking = [synthetic(N, lambda rho: 0.1 * np.exp(-15 * rho), at=0.12, ground=0.2) for N in (100, 200)]
    assert not over_size.lowest_near_rho_star(leaking).holds
    assert not over_size.follows_at_point(leaking).holds


def test_loo_errors_follow_and_are_no_worse():
    good = [synthetic(N, bowl, at=None, ground=0.3) for N in (100, 200)]
    assert over_size.follows_at_point(good).holds
    assert over_size.no_worse_than_zero_temperature(good).holds
    worse = [synthetic(N, bowl, at=None, ground=0.05) for N in (100, 200)]
    assert not over_size.no_worse_than_zero_temperature(worse).holds


@pytest.mark.parametrize("lowest", [0.031, 0.063, 0.1234])
def test_parabola_minimum_is_exact_for_a_parabola(lowest):
    rhos = np.array([0.01, 0.03, 0.04, 0.07, 0.1, 0.15, 0.2])
    assert over_size.parabola_minimum(rhos, (rhos - lowest) ** 2) == pytest.approx(lowest)
    assert over_size.parabola_minimum(rhos, rhos) == rhos[0]


def test_fixed_support_verdict_fails_where_the_error_finds_the_truth():
    truth = np.full(3, 10.0)
    falls = np.tile([0.3, 0.1, 0.05], (3, 1))
    args = {"at_truth": np.full(3, 0.08), "true_share": np.full(3, 0.7)}
    bad = section3.FixedSupport(0.5, 100, (5, 10, 20), truth, falls, **args)
    assert section3.no_clue([bad]).holds
    assert not section3.no_clue([replace(bad, true_share=np.ones(3))]).holds
    rises = np.tile([0.3, 0.05, 0.1], (3, 1))
    assert not section3.no_clue([replace(bad, loo_error=rises, true_sizes=truth)]).holds


def test_own_equations_are_those_of_the_theory():
    for rho in (0.02, 0.05, 0.15):
        for beta in (0.5, 5.0, at_point(rho, MODEL).beta):
            state = solve(beta, rho, MODEL)
            start = np.array([[state.kappa + 0.3, np.log(state.tau2) - 0.2, np.log(state.a) + 0.1]])
            epsilon, epsilon_g, _ = solve_equations(truth_of_model(), beta, rho, MODEL.alpha, start)
            assert epsilon[0] == pytest.approx(state.epsilon, rel=1e-3)
            assert epsilon_g[0] == pytest.approx(state.epsilon_g, rel=1e-3)


def test_own_factors_tend_to_one():
    spread = {}
    for N in (100, 1600):
        found = factors(tuple(draw_all(N, 12, 0)), (1.0, 5.0), 0.1, 0.5)
        assert np.isfinite(found.epsilon).all()
        spread[N] = np.std(found.epsilon, axis=0)
    assert np.all(spread[1600] < 0.5 * spread[100])


def test_scales_are_those_of_the_paper():
    assert PAPER.annealed == PAPER.crossvalidated == ((100, 100), (200, 100), (400, 100))
    for N in (100, 200, 400):
        assert sizes_of(PAPER.rhos, N) == [round(N * i / 100) for i in range(1, 21)]
        assert set(sizes_of(SHOWN, N)) <= set(sizes_of(PAPER.rhos, N))
    assert annealing_cost(100, [1, 2], 3).flips == 3 * 2 * 50_000
    assert QUICK.annealed != PAPER.annealed
