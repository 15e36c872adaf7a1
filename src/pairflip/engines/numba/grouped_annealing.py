"""Simulated annealing in whole groups of columns, chain by chain: what kernels cannot decide is judged by QR.

The chains are those of the reference engine: same key, same supports.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import TIE, RankTooSmall, Tick, WalkPlan, WalkResult
from pairflip.engines.numba.grouped import Grouped
from pairflip.engines.numba.grouped_chain import (
    AT_END,
    BEST,
    BLOCK,
    CLOCK,
    DRAWN,
    GO_ON,
    NOW,
    REFRESHES,
    STEP,
    TO_BE_JUDGED,
    GroupedChain,
    advance,
    begin,
    go_on_from,
    new_chain,
    survey,
)
from pairflip.losses.grouped import GroupedForm
from pairflip.philox import start_order

_SLICE = 20_000  # flips of one call, so that Ctrl-C is heard


def kernel_form(form: GroupedForm) -> Grouped:
    """The form as kernels see it."""
    return Grouped(form.matrix, form.b, form.start, form.yy)


def anneal_grouped(
    form: GroupedForm, plan: WalkPlan, tick: Tick, in_threads: Callable[[Callable[[int, int], None]], None]
) -> WalkResult:
    """The annealing of one plan: the chains of the reference engine.

    Parameters
    ----------
    form : GroupedForm
        What is walked on.
    plan : WalkPlan
        Chains and their temperatures.
    tick : callable
        Hears of flips as they are done.
    in_threads : callable
        Calls a function with (first, last) for parts of all chains.
    """
    kernels, ends = kernel_form(form), np.cumsum(plan.flips)
    shape = plan.chains, plan.betas.size
    energy, accepted = np.zeros(shape), np.zeros(shape, np.int64)
    support, best = np.zeros((plan.chains, plan.k), np.int64), np.zeros((plan.chains, plan.k), np.int64)
    final, refreshes = np.zeros(plan.chains), np.zeros(plan.chains, np.int64)

    def work(first: int, last: int) -> None:
        for c in range(first, last):
            chain = new_chain(kernels, plan.k)
            chain.ones[:], chain.zeros[:] = _start(form, plan.k, plan.keys[c])
            known: dict[tuple[int, ...], float] = {}
            begin(kernels, chain)
            chain.real[NOW] = chain.real[BEST] = form.energy(chain.ones)
            chain.best[:] = chain.ones
            status = GO_ON
            while status != AT_END:
                before = int(chain.whole[CLOCK])
                status = advance(kernels, chain, plan.keys[c], plan.betas, ends, energy[c], accepted[c], _SLICE)
                if status == TO_BE_JUDGED:
                    _judge(form, kernels, chain, plan.betas, energy[c], accepted[c], known)
                tick(int(chain.whole[CLOCK]) - before)
            energy[c] /= plan.flips
            support[c], best[c] = np.sort(chain.ones), np.sort(chain.best)
            final[c], refreshes[c] = chain.real[NOW], chain.whole[REFRESHES]

    in_threads(work)
    return WalkResult(energy, accepted, support, best, final, refreshes)


def grouped_flip_energies(form: GroupedForm, order: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Delta E (k, U - k) of every flip from the support order[:k] as a chain sees it; infinite where it is refused.

    Parameters
    ----------
    form : GroupedForm
        What is walked on.
    order : (U,)
        Units, those of the support first.
    k : int
        How many these are.
    """
    kernels = kernel_form(form)
    chain = new_chain(kernels, k)
    chain.ones[:], chain.zeros[:] = order[:k], order[k:]
    delta, hard = np.zeros((k, order.size - k)), np.zeros((k, order.size - k), dtype=bool)
    survey(kernels, chain, delta, hard)
    now = form.energy(np.sort(order[:k]))
    for i, j in zip(*np.nonzero(hard), strict=True):
        flipped = order[:k].copy()
        flipped[i] = order[k + j]
        delta[i, j] = _change(form, now, form.energy(np.sort(flipped)))
    return delta


def _change(form: GroupedForm, now: float, then: float) -> float:
    """Delta E, zero when the two energies are equal but for rounding."""
    return 0.0 if abs(then - now) <= TIE * form.yy else then - now


def _start(form: GroupedForm, k: int, key: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first units of the random order of a key that stay independent (the narrowest where these are too few)."""
    ones: list[int] = []
    order = start_order(key, form.n_columns)
    for unit in order.tolist():
        if len(ones) < k and np.isfinite(form.energy(np.array([*ones, unit]))):
            ones.append(unit)
    if len(ones) < k:
        found = form.regular(k)
        if found is None:
            raise RankTooSmall(k, form.rank(), form.objective)
        ones = found.tolist()
    return np.array(ones), order[~np.isin(order, ones)]


def _judge(
    form: GroupedForm, kernels: Grouped, chain: GroupedChain, betas: NDArray[np.float64], energy: NDArray[np.float64],
    accepted: NDArray[np.int64], known: dict[tuple[int, ...], float],
) -> None:  # fmt: skip
    """Decide the next flip as the reference engine does, by QR on the columns."""

    def of(units: NDArray[np.int64]) -> float:
        own = np.sort(units)
        key = tuple(own.tolist())
        if key not in known:
            known[key] = form.energy(own)
        return known[key]

    at, step = int(chain.whole[CLOCK] - chain.whole[DRAWN]) + BLOCK, int(chain.whole[STEP])
    i, j = int(chain.slot[at]), int(chain.position[at])
    flipped = chain.ones.copy()
    flipped[i] = chain.zeros[j]
    now, then = of(chain.ones), of(flipped)
    delta = _change(form, now, then)
    accept = bool(np.isfinite(then)) and (delta <= 0.0 or chain.uniform[at] <= float(np.exp(-betas[step] * delta)))
    if accept:
        chain.ones[i], chain.zeros[j] = chain.zeros[j], chain.ones[i]
        accepted[step] += 1
    go_on_from(kernels, chain, then if accept else now, accept)
    energy[step] += chain.real[NOW]
    chain.whole[CLOCK] += 1
