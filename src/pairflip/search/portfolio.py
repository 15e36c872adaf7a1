"""A search of several methods on one problem: the path, descents with kicks, and annealing where these do not agree.

The ends of all chains are judged by QR on the columns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.engines import RankTooSmall, Tick, WalkPlan, WalkResult, get_engine
from pairflip.engines.base import Descent, flip_nanoseconds, is_lower, reaches
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.philox import chain_keys
from pairflip.search.effort import Effort, Method, Wave, costly, first_wave, kick_nanoseconds, last_waves, second_wave
from pairflip.search.schedule import Schedule, greedy_scale
from pairflip.supports import distinct_supports

_FEW = 3
FEW_SUPPORTS = {"normal": 300, "thorough": 3000}
"""Where the energy is not quadratic, so many supports are all fitted: a search would fit as many."""
NO_FLIPS = np.zeros(0), np.zeros(0, dtype=np.int64)
_TINY = 1e-5  # of y'y: below it, TIE y'y is a visible part of an energy
_AFFORDABLE = 5_000  # flips, some 50 microseconds each


class Searched(NamedTuple):
    """What the chains of a search found."""

    supports: NDArray[np.int64]  # (chains, k), positions of candidates
    energies: Floats  # (chains,), by QR
    agree: int = 0  # chains of the last wave that ended at the lowest energy


def portfolio(
    form: Form,
    k: int,
    method: Method,
    effort: Effort,
    schedule: Schedule,
    seed: int,
    engine: Any,
    n_jobs: int = 1,
    tick: Tick | None = None,
) -> Iterator[Searched]:
    """Search a support of k columns until chains agree or the effort is spent; the state after each wave of them."""
    began = time.perf_counter()
    kick_ns = kick_nanoseconds(form, k)
    if form.quadratic:
        path, _ = engine.path(form, k, passes=effort.passes, tick=tick)
        start = np.sort(path[-1])
        if len(path) < k:
            raise RankTooSmall(k, len(path), form.what)
    elif comb(form.n_columns, k) <= FEW_SUPPORTS.get(effort.name, 0):
        yield _best_of_all(form, k)
        return
    else:
        effort, start = costly(effort, kick_ns), engine.forward(form, k, tick=tick)
        if start is None:
            raise RankTooSmall(k, form.rank(), form.what)
    if k >= form.n_columns:
        yield Searched(start[None, :], np.array([form.energy(start)]))
        return
    flips, spent = schedule.flips(form.n_columns), 0.0
    state = Searched(np.zeros((0, k), np.int64), np.zeros(0))

    def walk(wave: Wave) -> Searched:
        nonlocal spent, state
        walked = state.energies.size
        keys = chain_keys(seed, k, None, walked + np.arange(wave.chains))
        betas = NO_FLIPS
        if wave.anneal:
            betas = schedule.absolute_betas(greedy_scale(form, k) if schedule.unit == "greedy" else 1.0), flips
        descent = Descent(wave.kicks, 12 if wave.kicks < 400 else 24)
        pairs = [(form, WalkPlan(k, *betas, keys, descent=descent))]
        if walked == 0:  # the first chain begins at the end of the path, and the others at random
            pairs = [(form, WalkPlan(k, *betas, keys[:1], start[None, :], descent))]
            pairs += [(form, WalkPlan(k, *betas, keys[1:], None, descent))] * (wave.chains > 1)
        for result in engine.walk(pairs, n_jobs=n_jobs, tick=tick):
            supports, energies = settle(form, result)
            state = Searched(np.vstack([state.supports, supports]), np.append(state.energies, energies))
            spent += result.nanoseconds
        agree = reaches(state.energies[walked:], float(state.energies.min()), form.yy)
        state = state._replace(agree=int(np.count_nonzero(agree)))
        return state

    first = first_wave(effort, kick_ns)
    if effort.clock and first.chains * first.kicks * kick_ns > 3e8 * effort.seconds:
        first = Wave(1, int(2e8 * effort.seconds / kick_ns))  # from the path, as time allows
    yield walk(first)
    if effort.clock and time.perf_counter() - began > 0.5 * effort.seconds:
        return
    # Chains that agree are evidence; for more than a few columns, only longer ones.
    if effort.seconds == 0.0 or first.chains < effort.chains or (k <= _FEW and state.agree == first.chains):
        return
    # What kicks of this table take is known by then: where columns are nearly dependent, more than the model says.
    kick_ns = max(kick_ns, spent / (first.chains * (first.kicks + 1)))
    second = second_wave(effort, kick_ns, form.n_columns)
    yield walk(second)
    if state.agree == second.chains:
        return
    anneal_ns = None
    # Annealing wins where many columns matter about equally.
    if method == "auto" and form.dense and effort.anneals:
        anneal_ns = 0.5 * float(flips.sum()) * flip_nanoseconds(form, k)
    spent = max(spent, effort.chains * kick_ns * (effort.kicks + second.kicks))
    for wave in last_waves(effort, kick_ns, spent, anneal_ns, hard=state.agree < 2):
        yield walk(wave)
        if time.perf_counter() - began > 0.8 * effort.seconds if effort.clock else wave.chains == state.agree > 1:
            return


def _best_of_all(form: Any, k: int) -> Searched:
    """The lowest of all supports; the lowest few are fitted once more, to the last digit."""
    allowed = [s for s in combinations(range(form.n_columns), k) if form.rules.allow(np.array(s))]
    supports = np.array(allowed, dtype=np.int64)
    energies = form.fit_many(supports).energies if allowed else np.zeros(0)
    lowest = np.argsort(energies, kind="stable")[: 1 + _FEW]
    exact = np.array([form.energy(supports[at]) for at in lowest])
    if not np.isfinite(exact).any():
        raise RankTooSmall(k, form.rank(), form.what + " and rules" * form.rules.any)
    best = first_best(exact, form.yy)
    return Searched(supports[lowest[best : best + 1]], exact[best : best + 1])


def settle(form: Form, walked: WalkResult) -> tuple[NDArray[np.int64], Floats]:
    """The better of each chain's last and best support (chains, k), as candidate positions, and their energies."""
    ends = np.stack([walked.support, walked.best_support])  # (2, chains, k)
    supports, _, which, _ = distinct_supports(ends.reshape(-1, ends.shape[2]))
    energies = np.array([form.energy(support) for support in supports])[which].reshape(ends.shape[:2])
    best = is_lower(energies[1], energies[0], form.yy).astype(np.int64)
    chains = np.arange(best.size)
    return ends[best, chains], energies[best, chains]


def first_best(energies: Floats, yy: float | Floats) -> Any:
    """The first chain with the lowest of the energies (..., chains); rounding does not decide between equal ones."""
    lowest = energies.min(axis=-1, keepdims=True)
    return np.argmax(reaches(energies, lowest, np.asarray(yy)[..., None]), axis=-1)


def descended(form: Form, support: NDArray[np.int64]) -> NDArray[np.int64]:
    """The support that the best flips reach from another (sorted candidate positions)."""
    plan = WalkPlan(support.size, *NO_FLIPS, np.zeros((1, 2), np.uint32), support[None], Descent())
    reached = get_engine("numba").walk([(form, plan)])[0].support[0]
    return reached if is_lower(form.energy(reached), form.energy(support), form.yy) else support


def refine(form: Form, support: NDArray[np.int64]) -> NDArray[np.int64]:
    """The best of all single flips by QR until none lowers the energy, where a support explains nearly all of y.

    While searching, energies within TIE y'y are equal. Where the energy itself is not much more than that, this decides
    between them; it is done if all flips are few enough to be looked at one by one.
    """
    outside, energy = np.setdiff1d(np.arange(form.n_columns), support), form.energy(support)
    while energy < _TINY * form.yy and support.size * outside.size <= _AFFORDABLE:
        flipped = [np.sort(np.append(np.delete(support, i), j)) for i in range(support.size) for j in outside]
        energies = np.array([form.energy(other) for other in flipped])
        best = first_best(energies, form.yy)
        if not is_lower(energies[best], energy, form.yy):
            break
        support, energy = flipped[best], float(energies[best])
        outside = np.setdiff1d(np.arange(form.n_columns), support)
    return support
