"""What every engine must do, as checks that a test class inherits.

.. code-block:: python

    class TestMyEngine(EngineConformance):
        def engine(self):
            return MyEngine()

Each check is also a plain function ``check_...(engine)`` that raises AssertionError, so that it can be tried on an
engine that is broken on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.engines.base import Engine, RankTooSmall, WalkPlan, WalkResult
from pairflip.engines.reference import ReferenceEngine
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.philox import chain_keys
from pairflip.problem import SubsetProblem
from pairflip.testing.cases import Case, enumerated_cases, random_cases, well_conditioned
from pairflip.testing.exact import balance_error, boltzmann, states, stationarity_error, transition_matrix

_COMPARED = ("accepted", "support", "best_support", "energy", "final_energy")


def require(condition: bool, message: str) -> None:
    """Raise AssertionError with this message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def make_plan(form: Form, k: int, betas: ArrayLike, flips: ArrayLike, chains: int = 1, seed: int = 0) -> WalkPlan:
    """A plan for chains on all rows.

    Parameters
    ----------
    form : Form
        The problem.
    k : int
        Number of columns in a support.
    betas : float or (steps,)
        Inverse temperatures in units of 1 / y'y.
    flips : int or (steps,)
        Attempted flips at each beta; one number stands for every beta.
    chains, seed : int
        Number of chains, and the seed of their addresses.
    """
    scaled = np.atleast_1d(np.asarray(betas, dtype=np.float64)) / form.yy
    counts = np.broadcast_to(np.asarray(flips, dtype=np.int64), scaled.shape).copy()
    return WalkPlan(k, scaled, counts, chain_keys(seed, k, None, np.arange(chains)))


def _plan(case: Case, name: str) -> WalkPlan:
    """The plan of this name: "decisions" or "long"."""
    if name == "decisions":  # one flip per step, so that `accepted` is the sequence of decisions, until it is frozen
        betas = np.concatenate([np.zeros(20), np.geomspace(0.5, 1e4, 280)])
        return make_plan(case.form, case.k, betas, 1, chains=2)
    # Long enough to freeze, and then warm again: engines take short cuts in chains that do not move.
    warm_again, flips = [0.0, 20.0, 1e5, 5.0, 300.0, 1e7], [1500, 1000, 2500, 600, 1000, 1400]
    return make_plan(case.form, case.k, warm_again, flips, seed=2)


def walk_one(engine: Engine, form: Form, plan: WalkPlan, **options: Any) -> WalkResult:
    """What the engine answers when it is asked to walk one pair.

    Parameters
    ----------
    engine : Engine
        What walks.
    form, plan
        The pair.
    **options
        Those of `Engine.walk`.
    """
    (walked,) = engine.walk([(form, plan)], **options)
    return walked


@cache
def _reference_walk(case: Case, plan: str) -> WalkResult:
    return walk_one(ReferenceEngine(), case.form, _plan(case, plan))


def compare(engine: Engine, case: Case, plan: str) -> None:
    """Walk a case by the plan of this name, and require what the reference engine finds."""
    given, expected = walk_one(engine, case.form, _plan(case, plan)), _reference_walk(case, plan)
    same_walk(given, expected, case.form, f"{case.name}, {plan}")
    for c, support in enumerate(given.support):
        exact = case.form.energy(support)
        require(
            abs(float(given.final_energy[c]) - exact) <= 1e-8 * case.form.yy,
            f"{case.name}, {plan}: final_energy is {given.final_energy[c]}, but its support has {exact}",
        )


def same_walk(given: WalkResult, expected: WalkResult, form: Form, where: str) -> None:
    """Require equal decisions and supports, and energies that are equal to 1e-8 y'y."""
    for name in _COMPARED:
        a, b = getattr(given, name), getattr(expected, name)
        require(a.shape == b.shape, f"{where}: {name} has shape {a.shape}; expected {b.shape}")
        differ = np.argwhere(~(np.abs(a - b) <= (1e-8 * form.yy if "energy" in name else 0.0)))
        first = differ[:1].tolist()
        require(not first, f"{where}: {name} differs in {len(differ)} of {a.size} entries, first at {first}")


def check_protocol(engine: Engine) -> None:
    """The engine has every part of `Engine`, refuses in one sentence or not at all, and walks what it does not refuse.

    A plan without chains is asked about, too.
    """
    require(isinstance(engine, Engine), f"{engine!r} lacks a part of pairflip.engines.Engine")
    require(isinstance(engine.name, str) and bool(engine.name), f"name is {engine.name!r}; expected a word")
    require(isinstance(engine.prefers_many, bool), f"prefers_many is {engine.prefers_many!r}; expected True or False")
    for case in random_cases(1):
        plan = _plan(case, "long")
        reason = engine.refuses(case.form, plan)
        require(reason is None, f"{case.name}: a small problem is refused: {reason}")
        no_chains = WalkPlan(plan.k, np.zeros(0), plan.flips, plan.keys[:0])
        require(engine.refuses(case.form, no_chains) is None, f"{case.name}: refused without chains, not with them")


def check_many(engine: Engine) -> None:
    """Many pairs in one call give, in their order, what each gives alone; no pairs give nothing."""
    require(engine.walk([]) == [], "walking no pairs gives something")
    cases = random_cases(1)
    pairs = [
        (case.form, make_plan(case.form, case.k, [1.0, 50.0], [90, 60], 1 + n % 3)) for n, case in enumerate(cases)
    ]
    heard: list[int] = []
    together = engine.walk(pairs, tick=heard.append)
    planned = sum(plan.chains * int(plan.flips.sum()) for _, plan in pairs)
    require(sum(heard) == planned, f"tick heard of {sum(heard)} flips; expected {planned}")
    require(len(together) == len(pairs), f"{len(together)} results of {len(pairs)} pairs")
    for case, (form, plan), given in zip(cases, pairs, together, strict=True):
        same_walk(given, walk_one(engine, form, plan), form, f"{case.name}, among others")


def check_decisions(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """Flip for flip the decisions of the reference engine, on problems in which rounding decides nothing."""
    for case in well_conditioned(random_cases()) if cases is None else cases:
        compare(engine, case, "decisions")


def check_long_walks(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """Thousands of flips, freezing and warming up again, are those of the reference engine."""
    for case in well_conditioned(random_cases())[::7] if cases is None else cases:
        compare(engine, case, "long")


def check_rank(engine: Engine) -> None:
    """Asking for more columns than are independent raises RankTooSmall, which says how many there are."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, 4)), rng.normal(size=12)
    doubled = SubsetProblem(np.hstack([X, 2.0 * X]), y).form
    wide = SubsetProblem(rng.normal(size=(6, 10)), rng.normal(size=6)).form
    for form, rank in ((doubled, 4), (wide, 5)):
        walk_one(engine, form, make_plan(form, rank, [1.0], [20]))
        try:
            walk_one(engine, form, make_plan(form, rank + 1, [1.0], [20]))
        except RankTooSmall as error:
            require(f"k <= {rank}" in str(error), f"expected k <= {rank} in the message: {error}")
        else:
            raise AssertionError(f"walked with k = {rank + 1}, but only {rank} columns are independent")


def check_workers(engine: Engine) -> None:
    """Any number of workers gives the same chains, and so does walking them one by one."""
    for case in random_cases()[::11]:
        plan = make_plan(case.form, case.k, [1.0, 50.0], [150, 150], chains=5)
        together = walk_one(engine, case.form, plan, n_jobs=1)
        same_walk(walk_one(engine, case.form, plan, n_jobs=2), together, case.form, f"{case.name}, n_jobs=2")
        for c in range(plan.chains):
            only = slice(c, c + 1)
            alone = walk_one(engine, case.form, WalkPlan(plan.k, plan.betas, plan.flips, plan.keys[only]))
            expected = replace(together, **{name: getattr(together, name)[only] for name in _COMPARED})
            same_walk(alone, expected, case.form, f"{case.name}, chain {c} alone")


def check_tick(engine: Engine) -> None:
    """`tick` hears of every planned flip once, also of those a frozen chain need not try."""
    case = random_cases()[0]
    plan = make_plan(case.form, case.k, [0.0, 1.0, 1e6], [100, 300, 1500], chains=3)
    for n_jobs in (1, 2):
        heard: list[int] = []
        walk_one(engine, case.form, plan, n_jobs=n_jobs, tick=heard.append)
        total, planned = sum(heard), plan.chains * int(plan.flips.sum())
        require(total == planned, f"n_jobs={n_jobs}: tick heard of {total} flips; expected {planned}")


_BETAS = (0.0, 2.0, 20.0)  # in units of 1 / y'y: the energies of a problem spread over at most y'y / 2


def check_acceptance(engine: Any) -> None:
    r"""`acceptance` is :math:`\min(1, e^{-\beta \Delta E})`, and 0 for a refused flip even at beta = 0."""
    for beta in (0.0, 0.1, 3.0, 1e6):
        for delta in (-2.0, -1e-9, 0.0, 1e-9, 0.3, 5.0, 1e4, np.inf):
            expected = 0.0 if delta == np.inf else min(1.0, float(np.exp(min(0.0, -beta * max(delta, 0.0)))))
            given = engine.acceptance(beta, delta)
            require(
                abs(given - expected) <= 1e-15,
                f"acceptance(beta={beta}, delta={delta}) is {given}; expected {expected}",
            )


def _chain(engine: Engine, case: Case, beta: float) -> tuple[Floats, Floats]:
    """Boltzmann's distribution of the QR energies and the engine's transition matrix; beta in 1 / y'y."""
    form, scaled = case.form, beta / case.form.yy
    return boltzmann(states(form, case.k)[1], scaled), transition_matrix(engine, form, case.k, scaled)


def check_stationarity(engine: Engine) -> None:
    r"""P is a transition matrix (no negative entry) and :math:`\pi P = \pi` to 1e-12.

    The first half matters: :math:`\max(1, e^{-\beta \Delta E})`, as the paper prints it, also balances.
    """
    for case in enumerated_cases():
        for beta in _BETAS:
            pi, P = _chain(engine, case, beta)
            require(bool(P.min() >= -1e-15), f"{case.name}, beta={beta}: P has an entry {P.min()} < 0")
            error = stationarity_error(pi, P)
            require(error <= 1e-12, f"{case.name}, beta={beta}: |pi P - pi| reaches {error}; expected 1e-12")


def check_detailed_balance(engine: Engine) -> None:
    r""":math:`\pi_a P_{ab} = \pi_b P_{ba}` to 1e-13."""
    for case in enumerated_cases():
        for beta in _BETAS:
            error = balance_error(*_chain(engine, case, beta))
            require(error <= 1e-13, f"{case.name}, beta={beta}: balance is off by {error}; expected 1e-13")


def check_irreducible(engine: Engine) -> None:
    """Every non-singular support can be reached from every other."""
    for case in enumerated_cases():
        _, P = _chain(engine, case, 2.0)
        reached = np.eye(len(P), dtype=bool)
        for _ in range(case.k):  # exchanging up to k columns one at a time is enough (bases of a matroid)
            reached |= (reached.astype(float) @ (P > 0)) > 0
        require(bool(reached.all()), f"{case.name}: some supports are out of reach of others")


def check_flip_energies(engine: Any) -> None:
    """`flip_energies` are differences of QR energies (to 1e-9 y'y), infinite where a flip is singular."""
    for case in random_cases():
        reference = ReferenceEngine()
        order = reference.start(case.form, case.k, chain_keys(5, case.k, None, 0)[0])  # the first k are independent
        expected = reference.flip_energies(case.form, order, case.k)
        given = engine.flip_energies(case.form, order.copy(), case.k)
        require(given.shape == expected.shape, f"{case.name}: {given.shape}; expected {expected.shape}")
        refused = np.isinf(expected)
        require(
            bool(np.array_equal(np.isinf(given), refused)),
            f"{case.name}: {np.isinf(given).sum()} flips are refused; expected {refused.sum()}",
        )
        error = float(np.max(np.abs(given[~refused] - expected[~refused]), initial=0.0)) / case.form.yy
        require(error <= 1e-9, f"{case.name}: flip energies are off by {error} y'y; expected 1e-9")


def check_visits(engine: Engine, chains: int = 600, flips: int = 25) -> None:
    """Where many independent chains end is distributed as Boltzmann says (chi-square, p > 1e-4).

    Parameters
    ----------
    engine : Engine
        What is checked.
    chains, flips : int
        How many chains, and how far each of them walks.
    """
    for name, k, beta in (("centred", 3, 4.0), ("duplicated columns", 3, 4.0), ("one row out", 2, 8.0)):
        case = next(case for case in enumerated_cases() if case.name == name and case.k == k)
        plan = make_plan(case.form, k, [beta], [flips], chains=chains, seed=7)
        ended = walk_one(engine, case.form, plan).support
        supports, energies = states(case.form, k)
        number = {tuple(support): a for a, support in enumerate(supports.tolist())}
        singular = [support for support in ended.tolist() if tuple(support) not in number]
        require(not singular, f"{name}: {len(singular)} chains ended at a singular support")
        visits = np.bincount([number[tuple(s)] for s in ended.tolist()], minlength=len(supports))
        p = _chi_square_p(visits, chains * boltzmann(energies, beta / case.form.yy))
        require(p > 1e-4, f"{name}: visits differ from the Boltzmann distribution, p = {p}")


def _chi_square_p(visits: NDArray[np.int64], expected: Floats) -> float:
    """P-value of `visits` given their expectations, those below 5 pooled."""
    from scipy.stats import chisquare

    rare = expected < 5
    observed = np.append(visits[~rare], visits[rare].sum())
    means = np.append(expected[~rare], expected[rare].sum())
    if means[-1] == 0:
        observed, means = observed[:-1], means[:-1]
    return float(chisquare(observed, means).pvalue)


def _test(check: Callable[[Any], None]) -> Callable[[EngineConformance], None]:
    """A check as a method that pytest runs."""

    def run(self: EngineConformance) -> None:
        check(self.engine())

    run.__doc__ = check.__doc__
    return run


class EngineConformance:
    """Inherit, return an engine from `engine`, and pytest runs every check on it."""

    def engine(self) -> Engine:
        """The engine to check."""
        raise NotImplementedError("return an engine: def engine(self): return MyEngine()")

    test_protocol = _test(check_protocol)
    test_many = _test(check_many)
    test_acceptance = _test(check_acceptance)
    test_stationarity = _test(check_stationarity)
    test_detailed_balance = _test(check_detailed_balance)
    test_irreducible = _test(check_irreducible)
    test_flip_energies = _test(check_flip_energies)
    test_decisions = _test(check_decisions)
    test_long_walks = _test(check_long_walks)
    test_visits = _test(check_visits)
    test_rank = _test(check_rank)
    test_workers = _test(check_workers)
    test_tick = _test(check_tick)
