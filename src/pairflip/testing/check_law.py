"""Checks of the law that an engine samples: acceptance, the whole transition matrix, flip energies, visits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import Engine
from pairflip.engines.reference import ReferenceEngine
from pairflip.least_squares import Floats
from pairflip.philox import chain_keys
from pairflip.testing.cases import Case, enumerated_cases, random_cases
from pairflip.testing.exact import balance_error, boltzmann, states, stationarity_error, transition_matrix
from pairflip.testing.walks import make_plan, require, walk_one

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
        order = _regular_order(case)
        expected = ReferenceEngine().flip_energies(case.form, order, case.k)
        given = engine.flip_energies(case.form, order.copy(), case.k)
        require(given.shape == expected.shape, f"{case.name}: {given.shape}; expected {expected.shape}")
        refused = np.isinf(expected)
        require(
            bool(np.array_equal(np.isinf(given), refused)),
            f"{case.name}: {np.isinf(given).sum()} flips are refused; expected {refused.sum()}",
        )
        error = float(np.max(np.abs(given[~refused] - expected[~refused]), initial=0.0)) / case.form.yy
        require(error <= 1e-9, f"{case.name}: flip energies are off by {error} y'y; expected 1e-9")


def _regular_order(case: Case) -> NDArray[np.int64]:
    """An order of the columns in which the first k are independent."""
    return ReferenceEngine().start(case.form, case.k, chain_keys(5, case.k, None, 0)[0])


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
