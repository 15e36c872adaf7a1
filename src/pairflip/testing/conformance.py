"""What every engine must do, as checks that a test class inherits.

.. code-block:: python

    class TestMyEngine(EngineConformance):
        def engine(self):
            return MyEngine()

Each check is also a plain function ``check_...(engine)`` that raises AssertionError, so that it can be
tried on an engine that is broken on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.engines.base import Engine, RankTooSmall, Refused, WalkPlan, WalkResult
from pairflip.engines.reference import ReferenceEngine
from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.philox import chain_keys
from pairflip.problem import SubsetProblem
from pairflip.testing.cases import Case, delicate_cases, enumerated_cases, random_cases
from pairflip.testing.enumeration import boltzmann
from pairflip.testing.transition import balance_error, states, stationarity_error, transition_matrix

_BETAS = (0.0, 2.0, 20.0)  # in units of 1 / y'y: the energies of a problem spread over at most y'y / 2


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def make_plan(gram: Gram, k: int, betas: ArrayLike, flips: ArrayLike, chains: int = 1, seed: int = 0) -> WalkPlan:
    """A plan with betas in units of 1 / y'y; one number for `flips` means as many at every beta."""
    scaled = np.atleast_1d(np.asarray(betas, dtype=np.float64)) / gram.yy
    counts = np.broadcast_to(np.asarray(flips, dtype=np.int64), scaled.shape).copy()
    return WalkPlan(k, scaled, counts, chain_keys(seed, k, None, np.arange(chains)))


def decisions_plan(case: Case) -> WalkPlan:
    """One flip a step, so that `accepted` is the sequence of decisions, from beta = 0 to frozen."""
    betas = np.concatenate([np.zeros(20), np.geomspace(0.5, 1e4, 280)])
    return make_plan(case.gram, case.k, betas, 1, chains=2)


def blocks_plan(case: Case) -> WalkPlan:
    """Several hundred flips a step."""
    return make_plan(case.gram, case.k, [0.0, 3.0, 30.0, 1e3], [250, 400, 300, 257], seed=1)


def long_plan(case: Case) -> WalkPlan:
    """Long enough to freeze, and then warm again: engines take short cuts in chains that do not move."""
    betas, flips = [0.0, 20.0, 1e5, 5.0, 300.0, 1e7], [1500, 1000, 2500, 600, 1000, 1400]
    return make_plan(case.gram, case.k, betas, flips, seed=2)


def cold_plan(case: Case) -> WalkPlan:
    """So cold at the end that differences of energy of 1e-13 y'y would count, if they were not rounding."""
    return make_plan(case.gram, case.k, [0.0, 30.0, 1e3, 1e6, 1e10, 1e14], 150, chains=2, seed=3)


_PLANS = {"decisions": decisions_plan, "blocks": blocks_plan, "long": long_plan, "cold": cold_plan}


def walk_one(engine: Engine, gram: Gram, plan: WalkPlan, **options: Any) -> WalkResult:
    """What the engine answers when it is asked to walk one pair; `options` are those of `Engine.walk`."""
    (walked,) = engine.walk([(gram, plan)], **options)
    return walked


@cache
def _reference_walk(case: Case, plan: str) -> WalkResult:
    return walk_one(ReferenceEngine(), case.gram, _PLANS[plan](case))


def check_protocol(engine: Engine) -> None:
    """The engine has every part of `Engine`, refuses in one sentence or not at all, and walks what it does not refuse.

    The leave-one-out error and a plan without chains are asked about, too.
    """
    _require(isinstance(engine, Engine), f"{engine!r} lacks a part of pairflip.engines.Engine")
    _require(isinstance(engine.name, str) and bool(engine.name), f"name is {engine.name!r}; expected a word")
    _require(isinstance(engine.prefers_many, bool), f"prefers_many is {engine.prefers_many!r}; expected True or False")
    for case in random_cases(1):
        plan = blocks_plan(case)
        reason = engine.refuses(case.gram, plan)
        _require(reason is None, f"{case.name}: a small problem is refused: {reason}")
        no_chains = WalkPlan(plan.k, np.zeros(0), plan.flips, plan.keys[:0])
        _require(engine.refuses(case.gram, no_chains) is None, f"{case.name}: refused without chains, not with them")
    rng = np.random.default_rng(8)
    X = rng.normal(size=(14, 6))
    loo = SubsetProblem(X, X[:, 0] + rng.normal(size=14)).loo_gram
    _check_refusal(engine, loo, make_plan(loo, 2, [1.0, 30.0], [20, 20], chains=2))


def _check_refusal(engine: Engine, gram: Gram, plan: WalkPlan) -> None:
    """What is refused has one sentence as its reason and cannot be walked; what is not is walked rightly."""
    reason = engine.refuses(gram, plan)
    if reason is None:
        expected = walk_one(ReferenceEngine(), gram, plan)
        _same_walk(walk_one(engine, gram, plan), expected, gram, f"objective {gram.objective}")
        return
    _require(isinstance(reason, str) and reason.endswith(".") and "\n" not in reason, f"{reason!r} is not a sentence")
    try:
        walk_one(engine, gram, plan)
    except Refused as error:
        _require(error.reason == reason, f"walk says {error.reason!r}, refuses says {reason!r}")
    else:
        raise AssertionError(f"what is refused is walked all the same: {reason}")


def check_many(engine: Engine) -> None:
    """Many pairs in one call give, in their order, what each gives alone; no pairs give nothing."""
    _require(engine.walk([]) == [], "walking no pairs gives something")
    cases = random_cases(1)
    pairs = [
        (case.gram, make_plan(case.gram, case.k, [1.0, 50.0], [90, 60], 1 + n % 3)) for n, case in enumerate(cases)
    ]
    heard: list[int] = []
    together = engine.walk(pairs, tick=heard.append)
    planned = sum(plan.chains * int(plan.flips.sum()) for _, plan in pairs)
    _require(sum(heard) == planned, f"tick heard of {sum(heard)} flips; expected {planned}")
    _require(len(together) == len(pairs), f"{len(together)} results of {len(pairs)} pairs")
    for case, (gram, plan), given in zip(cases, pairs, together, strict=True):
        _same_walk(given, walk_one(engine, gram, plan), gram, f"{case.name}, among others")


def check_acceptance(engine: Engine) -> None:
    r"""`acceptance` is :math:`\min(1, e^{-\beta \Delta E})`, and 0 for a refused flip even at beta = 0."""
    for beta in (0.0, 0.1, 3.0, 1e6):
        for delta in (-2.0, -1e-9, 0.0, 1e-9, 0.3, 5.0, 1e4, np.inf):
            expected = 0.0 if delta == np.inf else min(1.0, float(np.exp(min(0.0, -beta * max(delta, 0.0)))))
            given = engine.acceptance(beta, delta)
            _require(
                abs(given - expected) <= 1e-15,
                f"acceptance(beta={beta}, delta={delta}) is {given}; expected {expected}",
            )


def _chain(engine: Engine, case: Case, beta: float) -> tuple[Floats, Floats]:
    """Boltzmann's distribution of the QR energies and the engine's transition matrix; beta in 1 / y'y."""
    gram, scaled = case.gram, beta / case.gram.yy
    return boltzmann(states(gram, case.k)[1], scaled), transition_matrix(engine, gram, case.k, scaled)


def check_stationarity(engine: Engine) -> None:
    r"""P is a transition matrix (no negative entry) and :math:`\pi P = \pi` to 1e-12.

    The first half matters: :math:`\max(1, e^{-\beta \Delta E})`, as the paper prints it, also balances.
    """
    for case in enumerated_cases():
        for beta in _BETAS:
            pi, P = _chain(engine, case, beta)
            _require(bool(P.min() >= -1e-15), f"{case.name}, beta={beta}: P has an entry {P.min()} < 0")
            error = stationarity_error(pi, P)
            _require(error <= 1e-12, f"{case.name}, beta={beta}: |pi P - pi| reaches {error}; expected 1e-12")


def check_detailed_balance(engine: Engine) -> None:
    r""":math:`\pi_a P_{ab} = \pi_b P_{ba}` to 1e-13."""
    for case in enumerated_cases():
        for beta in _BETAS:
            error = balance_error(*_chain(engine, case, beta))
            _require(error <= 1e-13, f"{case.name}, beta={beta}: balance is off by {error}; expected 1e-13")


def check_irreducible(engine: Engine) -> None:
    """Every non-singular support can be reached from every other."""
    for case in enumerated_cases():
        _, P = _chain(engine, case, 2.0)
        reached = np.eye(len(P), dtype=bool)
        for _ in range(case.k):  # exchanging up to k columns one at a time is enough (bases of a matroid)
            reached |= (reached.astype(float) @ (P > 0)) > 0
        _require(bool(reached.all()), f"{case.name}: some supports are out of reach of others")


def check_flip_energies(engine: Engine) -> None:
    """`flip_energies` are differences of QR energies (to 1e-9 y'y), infinite where a flip is singular."""
    for case in random_cases():
        order = _regular_order(case)
        expected = ReferenceEngine().flip_energies(case.gram, order, case.k)
        given = engine.flip_energies(case.gram, order.copy(), case.k)
        _require(given.shape == expected.shape, f"{case.name}: {given.shape}; expected {expected.shape}")
        refused = np.isinf(expected)
        _require(
            bool(np.array_equal(np.isinf(given), refused)),
            f"{case.name}: {np.isinf(given).sum()} flips are refused; expected {refused.sum()}",
        )
        error = float(np.max(np.abs(given[~refused] - expected[~refused]), initial=0.0)) / case.gram.yy
        _require(error <= 1e-9, f"{case.name}: flip energies are off by {error} y'y; expected 1e-9")


def _regular_order(case: Case) -> NDArray[np.int64]:
    """An order of the columns of which the first k are independent."""
    return ReferenceEngine().start(case.gram, case.k, chain_keys(5, case.k, None, 0)[0])


def check_decisions(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """Flip for flip the decisions of the reference engine, on every random problem."""
    for case in random_cases() if cases is None else cases:
        _compare(engine, case, "decisions")


def check_steps(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """Steps of several hundred flips give the supports, counts and mean energies of the reference engine."""
    for case in random_cases() if cases is None else cases:
        _compare(engine, case, "blocks")


def check_long_walks(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """Thousands of flips, freezing and warming up again, are those of the reference engine."""
    for case in random_cases()[::7] if cases is None else cases:
        _compare(engine, case, "long")


def check_delicate(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """Flip for flip the reference engine also where supports are nearly singular, and where energies are equal.

    For engines that decide delicate flips from the columns (see decision 018); `EngineConformance` does not ask it.
    """
    for case in delicate_cases() if cases is None else cases:
        _compare(engine, case, "decisions")
        _compare(engine, case, "cold")


def check_singular(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """`flip_energies` are infinite where an inflation is clearly (10 times) above the limit, finite where below."""
    for case in delicate_cases() if cases is None else cases:
        order = _regular_order(case)
        given = engine.flip_energies(case.gram, order.copy(), case.k)
        for i in range(case.k):
            for j, column in enumerate(order[case.k :]):
                flipped = order[: case.k].copy()
                flipped[i] = column
                worst = _largest_inflation(case.gram, flipped)
                where = f"{case.name}: a flip to inflation {worst:.1e} has Delta E {given[i, j]}"
                _require(worst < 1e11 or given[i, j] == np.inf, where)
                _require(worst > 1e9 or bool(np.isfinite(given[i, j])), where)


def _largest_inflation(gram: Gram, support: NDArray[np.int64]) -> float:
    """Largest variance inflation factor, by singular values."""
    penalty = np.diag(np.sqrt(gram.penalty[support]))
    _, s, vt = np.linalg.svd(np.vstack([gram.columns[support].T, penalty]), full_matrices=False)
    with np.errstate(divide="ignore"):
        return float(np.max(np.sum((vt.T / s) ** 2, axis=1)))


def _compare(engine: Engine, case: Case, plan: str) -> None:
    given, expected = walk_one(engine, case.gram, _PLANS[plan](case)), _reference_walk(case, plan)
    _same_walk(given, expected, case.gram, f"{case.name}, {plan}")
    for c, support in enumerate(given.support):
        exact = case.gram.energy(support)
        _require(
            abs(float(given.final_energy[c]) - exact) <= 1e-8 * case.gram.yy,
            f"{case.name}, {plan}: final_energy is {given.final_energy[c]}, but its support has {exact}",
        )


def _same_walk(given: WalkResult, expected: WalkResult, gram: Gram, where: str) -> None:
    """Equal decisions and supports; energies equal to 1e-8 y'y."""
    for field in ("accepted", "support", "best_support"):
        a, b = getattr(given, field), getattr(expected, field)
        _require(a.shape == b.shape, f"{where}: {field} has shape {a.shape}; expected {b.shape}")
        differ = np.argwhere(a != b)
        _require(
            differ.size == 0,
            f"{where}: {field} differs in {len(differ)} of {a.size} entries, first at {differ[:1].tolist()}",
        )
    for field in ("energy", "final_energy"):
        a, b = getattr(given, field), getattr(expected, field)
        _require(a.shape == b.shape, f"{where}: {field} has shape {a.shape}; expected {b.shape}")
        error = float(np.max(np.abs(a - b))) / gram.yy
        _require(error <= 1e-8, f"{where}: {field} is off by {error} y'y; expected 1e-8")


def check_visits(engine: Engine, chains: int = 600, flips: int = 25) -> None:
    """Where many independent chains end is distributed as Boltzmann says (chi-square, p > 1e-4)."""
    for name, k, beta in (("centred", 3, 4.0), ("duplicated columns", 3, 4.0), ("one row out", 2, 8.0)):
        case = next(case for case in enumerated_cases() if case.name == name and case.k == k)
        plan = make_plan(case.gram, k, [beta], [flips], chains=chains, seed=7)
        ended = walk_one(engine, case.gram, plan).support
        supports, energies = states(case.gram, k)
        number = {tuple(support): a for a, support in enumerate(supports.tolist())}
        singular = [support for support in ended.tolist() if tuple(support) not in number]
        _require(not singular, f"{name}: {len(singular)} chains ended at a singular support")
        visits = np.bincount([number[tuple(s)] for s in ended.tolist()], minlength=len(supports))
        p = _chi_square_p(visits, chains * boltzmann(energies, beta / case.gram.yy))
        _require(p > 1e-4, f"{name}: visits differ from the Boltzmann distribution, p = {p}")


def _chi_square_p(visits: NDArray[np.int64], expected: Floats) -> float:
    """P-value of `visits` given their expectations, those below 5 pooled."""
    from scipy.stats import chisquare

    rare = expected < 5
    observed = np.append(visits[~rare], visits[rare].sum())
    means = np.append(expected[~rare], expected[rare].sum())
    if means[-1] == 0:
        observed, means = observed[:-1], means[:-1]
    return float(chisquare(observed, means).pvalue)


def check_rank(engine: Engine) -> None:
    """Asking for more columns than are independent raises RankTooSmall, which says how many there are."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, 4)), rng.normal(size=12)
    doubled = SubsetProblem(np.hstack([X, 2.0 * X]), y).gram
    wide = SubsetProblem(rng.normal(size=(6, 10)), rng.normal(size=6)).gram
    for gram, rank in ((doubled, 4), (wide, 5)):
        walk_one(engine, gram, make_plan(gram, rank, [1.0], [20]))
        try:
            walk_one(engine, gram, make_plan(gram, rank + 1, [1.0], [20]))
        except RankTooSmall as error:
            _require(f"k <= {rank}" in str(error), f"expected k <= {rank} in the message: {error}")
        else:
            raise AssertionError(f"walked with k = {rank + 1}, but only {rank} columns are independent")


def check_workers(engine: Engine) -> None:
    """Any number of workers gives the same chains, and so does walking them one by one."""
    for case in random_cases()[::11]:
        plan = make_plan(case.gram, case.k, [1.0, 50.0], [150, 150], chains=5)
        together = walk_one(engine, case.gram, plan, n_jobs=1)
        _same_walk(walk_one(engine, case.gram, plan, n_jobs=2), together, case.gram, f"{case.name}, n_jobs=2")
        for c in range(plan.chains):
            own = WalkPlan(plan.k, plan.betas, plan.flips, plan.keys[c : c + 1])
            _same_walk(
                walk_one(engine, case.gram, own), _one_chain(together, c), case.gram, f"{case.name}, chain {c} alone"
            )


def _one_chain(result: WalkResult, c: int) -> WalkResult:
    only = slice(c, c + 1)
    return WalkResult(
        result.energy[only],
        result.accepted[only],
        result.support[only],
        result.best_support[only],
        result.final_energy[only],
        result.refreshes[only],
    )


def check_tick(engine: Engine) -> None:
    """`tick` hears of every planned flip once, also of those a frozen chain need not try."""
    case = random_cases()[0]
    plan = make_plan(case.gram, case.k, [0.0, 1.0, 1e6], [100, 300, 1500], chains=3)
    for n_jobs in (1, 2):
        heard: list[int] = []
        walk_one(engine, case.gram, plan, n_jobs=n_jobs, tick=heard.append)
        total, planned = sum(heard), plan.chains * int(plan.flips.sum())
        _require(total == planned, f"n_jobs={n_jobs}: tick heard of {total} flips; expected {planned}")


class EngineConformance:
    """Inherit, return an engine from `engine`, and pytest runs every check on it."""

    def engine(self) -> Engine:
        """The engine to check."""
        raise NotImplementedError("return an engine: def engine(self): return MyEngine()")

    def test_protocol(self) -> None:
        """See `check_protocol`."""
        check_protocol(self.engine())

    def test_many(self) -> None:
        """See `check_many`."""
        check_many(self.engine())

    def test_acceptance(self) -> None:
        """See `check_acceptance`."""
        check_acceptance(self.engine())

    def test_stationarity(self) -> None:
        """See `check_stationarity`."""
        check_stationarity(self.engine())

    def test_detailed_balance(self) -> None:
        """See `check_detailed_balance`."""
        check_detailed_balance(self.engine())

    def test_irreducible(self) -> None:
        """See `check_irreducible`."""
        check_irreducible(self.engine())

    def test_flip_energies(self) -> None:
        """See `check_flip_energies`."""
        check_flip_energies(self.engine())

    def test_decisions(self) -> None:
        """See `check_decisions`."""
        check_decisions(self.engine())

    def test_steps(self) -> None:
        """See `check_steps`."""
        check_steps(self.engine())

    def test_long_walks(self) -> None:
        """See `check_long_walks`."""
        check_long_walks(self.engine())

    def test_visits(self) -> None:
        """See `check_visits`."""
        check_visits(self.engine())

    def test_rank(self) -> None:
        """See `check_rank`."""
        check_rank(self.engine())

    def test_workers(self) -> None:
        """See `check_workers`."""
        check_workers(self.engine())

    def test_tick(self) -> None:
        """See `check_tick`."""
        check_tick(self.engine())
