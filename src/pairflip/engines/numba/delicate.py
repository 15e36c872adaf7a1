"""Delicate flips: how a chain decides from the columns, and how it gets there and back.

The Gram matrix decides a flip only where rounding cannot: when Delta E less its error is accepted, but Delta E plus its error
is not, or when the inflation would exceed DELICATE, the walk stops before that flip (JUDGED), and it is decided here, as
the reference engine would. A chain stays here until its support is calm again.
"""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import BETTER, TIE
from pairflip.engines.numba.algebra import DELICATE, accepts
from pairflip.engines.numba.clock import CHAIN, ENERGY, FACTORED, INFLATED, JUDGED, STALE, book
from pairflip.engines.numba.compile import kernel
from pairflip.engines.numba.orthogonal import (
    TILT,
    energy_of,
    factorize,
    inflation_of,
    start_basis,
    stays_regular,
    take,
    weigh,
)

CALM = DELICATE / 4.0


@kernel
def accepts_change(u, beta, delta, tie):
    """Whether u accepts a flip of that Delta E; a tie costs nothing."""
    return delta <= tie or accepts(u, beta * delta)


@kernel
def start_from_columns(system, chain, clock, random_order):
    """First support by the columns; returns how many independent ones there are, and leaves the chain judged."""
    exact, basis = system.exact, chain.basis
    found = start_basis(exact, basis, random_order, chain.order)
    clock.count[JUDGED], clock.count[FACTORED], clock.count[STALE] = 1, 0, 1
    return found


@kernel
def exact_energy(system, chain, clock):
    """Energy of the chain's support from its columns; the basis is that of the support then."""
    if clock.count[FACTORED]:
        return energy_of(system.exact, chain.basis)
    clock.count[FACTORED] = 1
    return factorize(system.exact, chain.basis, chain.order)


@kernel
def walk_delicate(system, chain, clock, output, t, n, beta):
    """Flips t, ..., t + n - 1 (drawn into the chain's block) from the columns, until the support is calm.

    Returns how many were done.
    """
    exact, basis, order, best = system.exact, chain.basis, chain.order, chain.best
    slot, position, uniform = chain.slot, chain.position, chain.uniform
    count, value, energy, accepted = clock.count, clock.value, output.energy, output.accepted
    k, better, tie = chain.x.size, BETTER * system.yy, TIE * system.yy
    if not count[FACTORED]:
        exact_energy(system, chain, clock)
    for f in range(n):
        i, place = slot[f], position[f]
        j = order[k + place]
        delta, alpha, s = weigh(exact, basis, i, j, value[ENERGY])
        yes = delta < np.inf and accepts_change(uniform[f], beta, delta, tie)
        if yes and stays_regular(basis, i, j, alpha, s):
            take(exact, basis, i, j)
            order[i], order[k + place] = j, order[i]
            new_energy = value[ENERGY] + delta
            if basis.tilted[0] >= TILT:
                output.refreshes[count[CHAIN]] += 1
                new_energy = factorize(exact, basis, order)
            book(count, value, energy, accepted, best, order, better, t + f, new_energy)
            value[INFLATED] = inflation_of(basis)
            count[STALE] = 1
        if value[INFLATED] <= CALM:
            count[JUDGED] = 0
            return f + 1
    return n
