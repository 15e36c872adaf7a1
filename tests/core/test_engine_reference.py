"""The reference engine passes the suite, and engines broken on purpose do not."""

from dataclasses import replace

import numpy as np
import pytest

import pairflip.testing as suite
from pairflip.engines.base import WalkResult
from pairflip.engines.reference import ReferenceEngine
from pairflip.least_squares import SINGULAR
from pairflip.philox import flip_draws

FEW = suite.random_cases()[::9]


def check_fewer_visits(engine):
    """The reference engine is slow; its transition matrix is checked exactly."""
    suite.check_visits(engine, chains=200, flips=20)


class TestReference(suite.EngineConformance):
    def engine(self):
        return ReferenceEngine()

    # With itself the reference engine need not be compared at length.
    def test_decisions(self):
        suite.check_decisions(self.engine(), FEW)

    def test_long_walks(self):
        suite.check_long_walks(self.engine(), FEW[:1])

    def test_visits(self):
        check_fewer_visits(self.engine())


class MaxForMin(ReferenceEngine):
    """The paper's misprint. (It balances, too: only the negative diagonal of P gives it away.)"""

    def acceptance(self, beta, delta):
        return float(max(1.0, np.exp(min(-beta * delta, 700.0)))) if np.isfinite(delta) else 0.0


class NoHalf(ReferenceEngine):
    def energy(self, form, support):
        return 2.0 * super().energy(form, support)


class BetaTwice(ReferenceEngine):
    def acceptance(self, beta, delta):
        return super().acceptance(2.0 * beta, delta)


class SingularAllowed(ReferenceEngine):
    def energy(self, form, support):
        design = np.vstack([form.columns[support].T, np.diag(np.sqrt(form.penalty[support]))])
        target = np.concatenate([form.target, np.zeros(len(support))])
        x = np.linalg.lstsq(design, target, rcond=SINGULAR)[0]
        return 0.5 * float(np.sum((target - design @ x) ** 2))


class OneWaySwap(ReferenceEngine):
    """The column that leaves is forgotten: the one that entered stays among those outside."""

    def walk(self, pairs, *, n_jobs=1, tick=None):
        return [self._forgetful(form, plan) for form, plan in pairs]

    def _forgetful(self, form, plan):
        shape = plan.chains, plan.betas.size
        energy, accepted = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        support = np.zeros((plan.chains, plan.k), dtype=np.int64)
        best_support, final = support.copy(), np.zeros(plan.chains)
        for c, key in enumerate(plan.keys):
            order = self.start(form, plan.k, key)
            ones, zeros = order[: plan.k], order[plan.k :]
            now = best = self.energy(form, ones)
            best_support[c] = np.sort(ones)
            steps = np.repeat(np.arange(shape[1]), plan.flips)
            draws = flip_draws(key, 0, steps.size, plan.k, zeros.size)
            for a, i, j, u in zip(steps, *draws, strict=True):
                flipped = ones.copy()
                flipped[i] = zeros[j]
                then = self.energy(form, flipped)
                if u <= self.acceptance(plan.betas[a], then - now):
                    ones[i], now = zeros[j], then
                    accepted[c, a] += 1
                    if now < best:
                        best, best_support[c] = now, np.sort(ones)
                energy[c, a] += now / plan.flips[a]
            final[c], support[c] = now, np.sort(ones)
        return WalkResult(energy, accepted, support, best_support, final, np.zeros(plan.chains, dtype=np.int64))


class WrongTemperature(ReferenceEngine):
    def walk(self, pairs, **options):
        return super().walk([(form, replace(plan, betas=1.01 * plan.betas)) for form, plan in pairs], **options)


class WrongAddress(ReferenceEngine):
    def walk(self, pairs, **options):
        return super().walk([(form, replace(plan, keys=plan.keys[:, ::-1].copy())) for form, plan in pairs], **options)


class Disordered(ReferenceEngine):
    """Gives the results of many pairs in another order."""

    def walk(self, pairs, **options):
        return super().walk(pairs, **options)[::-1]


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Disordered, suite.check_many),
        (WrongTemperature, suite.check_decisions),
        (WrongAddress, suite.check_decisions),
        (MaxForMin, suite.check_acceptance),
        (MaxForMin, suite.check_stationarity),
        (MaxForMin, suite.check_decisions),
        (MaxForMin, check_fewer_visits),
        (NoHalf, suite.check_flip_energies),
        (NoHalf, suite.check_stationarity),
        (NoHalf, suite.check_detailed_balance),
        (NoHalf, suite.check_decisions),
        (BetaTwice, suite.check_acceptance),
        (BetaTwice, suite.check_stationarity),
        (BetaTwice, suite.check_detailed_balance),
        (BetaTwice, suite.check_decisions),
        (BetaTwice, check_fewer_visits),
        (OneWaySwap, suite.check_decisions),
        (OneWaySwap, check_fewer_visits),
        (SingularAllowed, suite.check_stationarity),
        (SingularAllowed, suite.check_flip_energies),
        (SingularAllowed, check_fewer_visits),
        (SingularAllowed, suite.check_rank),
    ],
    ids=lambda value: value.__name__,
)
def test_a_broken_engine_fails(broken, check):
    with pytest.raises(AssertionError):
        check(broken())


def test_the_misprint_balances():
    """Why `check_stationarity` also looks at the signs: pi P = pi holds for max in place of min."""
    case = suite.enumerated_cases()[0]
    beta = 20.0 / case.form.yy
    pi = suite.boltzmann(suite.states(case.form, case.k)[1], beta)
    P = suite.transition_matrix(MaxForMin(), case.form, case.k, beta)
    assert suite.stationarity_error(pi, P) < 1e-12
    assert suite.balance_error(pi, P) < 1e-12
    assert P.min() < 0


def test_annealing_finds_the_enumerated_optimum():
    case = suite.enumerated_cases()[0]
    plan = suite.make_plan(case.form, case.k, np.geomspace(0.1, 1e3, 20), 40, chains=3)
    walk = suite.walk_one(ReferenceEngine(), case.form, plan)
    supports, energies = suite.states(case.form, case.k)
    assert (walk.best_support == supports[np.argmin(energies)]).all()
    assert walk.energy[:, -1] == pytest.approx(energies.min(), rel=1e-2)
