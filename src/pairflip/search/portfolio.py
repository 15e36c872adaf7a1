"""A search of several methods on one problem: the path, descents with kicks, and annealing where these do not agree."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines import Engine, Pair, RankTooSmall, Tick, WalkPlan, WalkResult
from pairflip.engines.base import Descent, flip_nanoseconds, reaches
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.philox import chain_keys
from pairflip.search.effort import Effort, Method, Wave, costly, first_wave, kick_nanoseconds, last_waves, second_wave
from pairflip.search.forward import greedy_scale
from pairflip.search.schedule import Schedule
from pairflip.search.settle import first_best, settle

_FEW = 3
FEW_SUPPORTS = {"normal": 300, "thorough": 3000}
"""Where the energy is not quadratic, so many supports are all fitted: a search would fit as many."""
NO_FLIPS = np.zeros(0), np.zeros(0, dtype=np.int64)


@dataclass
class Searched:
    """What the chains of a portfolio found: supports (chains, k) as candidate positions, their energies by QR.

    `agree` says how many chains of the last wave ended at the lowest energy, and of how many; `yy` is y'y.
    """

    supports: NDArray[np.int64]
    energies: Floats
    agree: tuple[int, int]
    yy: float

    @property
    def best(self) -> NDArray[np.int64]:
        """The first of the lowest supports; rounding does not decide between equal ones."""
        return np.asarray(self.supports[first_best(self.energies, self.yy)])


def portfolio(
    form: Form,
    k: int,
    *,
    method: Method,
    effort: Effort,
    schedule: Schedule,
    seed: int,
    engine: Any,
    n_jobs: int = 1,
    tick: Tick | None = None,
    heard: Callable[[Searched], None] | None = None,
) -> Searched:
    """Search a support of k columns until chains agree or the effort is spent."""
    began = time.perf_counter()
    kick_ns = kick_nanoseconds(form, k)
    if form.quadratic:
        path, _ = engine.path(form, k, passes=effort.passes, tick=tick)
        start = np.sort(path[-1])
        if len(path) < k:
            raise RankTooSmall(k, len(path), form.what)
    elif comb(form.n_columns, k) <= FEW_SUPPORTS.get(effort.name, 0):
        return _best_of_all(form, k)
    else:
        effort, start = costly(effort, kick_ns), engine.forward(form, k, tick=tick)
        if start is None:
            raise RankTooSmall(k, form.rank(), form.what)
    if k >= form.n_columns:
        return Searched(start[None, :], np.array([form.energy(start)]), (1, 1), form.yy)
    flips, walked, spent = schedule.flips(form.n_columns), 0, 0.0
    supports: list[NDArray[np.int64]] = []
    energies: list[Floats] = []

    def go(wave: Wave) -> Searched:
        nonlocal walked, spent
        keys = chain_keys(seed, k, None, walked + np.arange(wave.chains))
        betas = NO_FLIPS
        if wave.anneal:
            betas = schedule.absolute_betas(greedy_scale(form, k) if schedule.unit == "greedy" else 1.0), flips
        plan = WalkPlan(k, *betas, keys, descent=Descent(wave.kicks, 12 if wave.kicks < 400 else 24))
        for result in _walk(engine, form, plan, None if walked else start, n_jobs, tick):
            own, low = settle(form, result)
            supports.append(own)
            energies.append(low)
            spent += result.nanoseconds
        walked += wave.chains
        every = np.concatenate(energies)
        agree = int(np.count_nonzero(reaches(every[-wave.chains :], float(every.min()), form.yy)))
        now = Searched(np.vstack(supports), every, (agree, wave.chains), form.yy)
        if heard is not None:
            heard(now)
        return now

    first = first_wave(effort, kick_ns)
    if effort.clock and first.chains * first.kicks * kick_ns > 3e8 * effort.seconds:
        first = Wave(1, int(2e8 * effort.seconds / kick_ns))  # from the path, as time allows
    found = go(first)
    if effort.clock and time.perf_counter() - began > 0.5 * effort.seconds:
        return found
    # Chains that agree are evidence; for more than a few columns, only longer ones.
    if effort.seconds == 0.0 or first.chains < effort.chains or (k <= _FEW and found.agree[0] == found.agree[1]):
        return found
    # What kicks of this table take is known now: where columns are nearly dependent, more than the model says.
    kick_ns = max(kick_ns, spent / (first.chains * (first.kicks + 1)))
    second = second_wave(effort, kick_ns, form.n_columns)
    found = go(second)
    if found.agree[0] == found.agree[1]:
        return found
    anneal_ns = None
    # Annealing wins where many columns matter about equally.
    if method == "auto" and form.dense and effort.anneals:
        anneal_ns = 0.5 * float(flips.sum()) * flip_nanoseconds(form, k)
    spent = max(spent, effort.chains * kick_ns * (effort.kicks + second.kicks))
    for wave in last_waves(effort, kick_ns, spent, anneal_ns, hard=found.agree[0] < 2):
        found = go(wave)
        if time.perf_counter() - began > 0.8 * effort.seconds if effort.clock else wave.chains == found.agree[0] > 1:
            break
    return found


def _best_of_all(form: Any, k: int) -> Searched:
    """The lowest of all supports; the lowest few are fitted once more, to the last digit."""
    every = np.array([s for s in combinations(range(form.n_columns), k) if form.rules.allow(np.array(s))], np.int64)
    energies = form.fit_many(every).energies if every.size else np.zeros(0)
    lowest = np.argsort(energies, kind="stable")[: 1 + _FEW]
    exact = np.array([form.energy(every[at]) for at in lowest])
    if not np.isfinite(exact).any():
        raise RankTooSmall(k, form.rank(), form.what + " and rules" * form.rules.any)
    best = first_best(exact, form.yy)
    return Searched(every[lowest[best : best + 1]], exact[best : best + 1], (1, 1), form.yy)


def _walk(
    engine: Engine, form: Form, plan: WalkPlan, start: NDArray[np.int64] | None, n_jobs: int, tick: Tick | None
) -> list[WalkResult]:
    """The chains of a wave; with `start`, the first of them begins there and the others at random."""
    if start is None:
        pairs: list[Pair] = [(form, plan)]
    else:
        given = WalkPlan(plan.k, *NO_FLIPS, plan.keys[:1], start[None, :], plan.descent)
        pairs = [(form, given)]
        if plan.chains > 1:
            pairs.append((form, WalkPlan(plan.k, *NO_FLIPS, plan.keys[1:], None, plan.descent)))
    return engine.walk(pairs, n_jobs=n_jobs, tick=tick)
