"""A search of several methods on one problem: the path, descents with kicks, and annealing where these do not agree."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairflip.engines import Engine, Pair, RankTooSmall, Tick, WalkPlan, WalkResult
from pairflip.engines.base import Descent, flip_nanoseconds, reaches
from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.philox import chain_keys
from pairflip.search.effort import Effort, Method, kick_nanoseconds, waves
from pairflip.search.forward import greedy_scale
from pairflip.search.schedule import Schedule
from pairflip.search.settle import settle

SHAKY = 3e6
"""Inflation above which supports are costly, see `kick_nanoseconds`."""
NO_FLIPS = np.zeros(0), np.zeros(0, dtype=np.int64)


@dataclass
class Found:
    """What the chains of a portfolio found: supports (chains, k) as candidate positions, their energies by QR.

    `agree` says how many chains of the last wave ended at the lowest energy, and of how many.
    """

    supports: NDArray[np.int64]
    energies: Floats
    agree: tuple[int, int]
    annealed: int = 0

    @property
    def best(self) -> NDArray[np.int64]:
        """The lowest support."""
        return np.asarray(self.supports[np.argmin(self.energies)])


def portfolio(
    gram: Gram,
    k: int,
    *,
    method: Method,
    effort: Effort,
    schedule: Schedule,
    seed: int,
    engine: Engine,
    n_jobs: int = 1,
    tick: Tick | None = None,
    heard: Callable[[Found], None] | None = None,
) -> Found:
    """Search a support of k columns until chains agree or the effort is spent.

    Parameters
    ----------
    gram, k
        Problem and size.
    method
        ``"auto"`` or ``"descend"`` (no annealing).
    effort, schedule
        What may be spent; how the third wave anneals.
    seed
        Chain c of the search has the address (seed, k, all rows, c), whatever wave it is in.
    engine, n_jobs, tick
        As in `Engine.walk`.
    heard
        Called after each wave with what was found so far.
    """
    began = time.perf_counter()
    path, _ = engine.path(gram, k, passes=effort.passes, tick=tick)
    if len(path) < k:
        raise RankTooSmall(k, len(path), gram.objective)
    start = np.sort(path[-1])
    energy = gram.energy(start)
    found = Found(start[None, :], np.array([energy]), (1, 1))
    if k >= gram.n_columns:
        return found
    kick_ns = kick_nanoseconds(gram, k, shaky=inflation(gram, start) > SHAKY)
    flips = schedule.flips(gram.n_columns)
    anneal_ns = 0.5 * float(flips.sum()) * flip_nanoseconds(gram, k) if method == "auto" else None
    supports: list[NDArray[np.int64]] = []
    energies: list[Floats] = []
    walked = 0
    for wave in waves(effort, kick_ns, anneal_ns):
        if effort.clock and walked and time.perf_counter() - began > 0.8 * effort.seconds:
            break
        keys = chain_keys(seed, k, None, walked + np.arange(wave.chains))
        first, betas = walked == 0, NO_FLIPS
        if wave.anneal:
            betas = schedule.absolute_betas(greedy_scale(gram, k) if schedule.unit == "greedy" else 1.0), flips
            found.annealed += wave.chains
        plan = WalkPlan(k, *betas, keys, descent=Descent(wave.kicks))
        ours = _walk(engine, gram, plan, start if first else None, n_jobs, tick)
        for result in ours:
            own, low = settle(gram, result)
            supports.append(own)
            energies.append(low)
        walked += wave.chains
        every = np.concatenate(energies)
        last = every[-wave.chains :]
        agree = int(np.count_nonzero(reaches(last, float(every.min()), gram.yy)))
        found = Found(np.vstack(supports), every, (agree, wave.chains), found.annealed)
        if heard is not None:
            heard(found)
        if agree == wave.chains or (wave.chains >= 4 and not first and agree >= wave.chains - 1):
            break
    return found


def _walk(
    engine: Engine, gram: Gram, plan: WalkPlan, start: NDArray[np.int64] | None, n_jobs: int, tick: Tick | None
) -> list[WalkResult]:
    """The chains of a wave; with `start`, the first of them begins there and the others at random."""
    if start is None:
        pairs: list[Pair] = [(gram, plan)]
    else:
        given = WalkPlan(plan.k, *NO_FLIPS, plan.keys[:1], start[None, :], plan.descent)
        pairs = [(gram, given)]
        if plan.chains > 1:
            pairs.append((gram, WalkPlan(plan.k, *NO_FLIPS, plan.keys[1:], None, plan.descent)))
    return engine.walk(pairs, n_jobs=n_jobs, tick=tick)


def inflation(gram: Gram, support: NDArray[np.int64]) -> float:
    """Bound on the largest variance inflation factor of a support, from its columns."""
    columns = gram.columns[support].T
    if gram.penalty.any():
        columns = np.vstack([columns, np.diag(np.sqrt(gram.penalty[support]))])
    T = np.linalg.inv(np.linalg.qr(columns, mode="r"))
    return 1.0 + float(np.sum(T * T) - support.size)
