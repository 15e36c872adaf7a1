"""The fast engine on the CPU: compiled kernels, threads over chains."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.blas import one_blas_thread
from pairflip.engines.base import (
    Descent,
    Pair,
    Refused,
    Steps,
    Tick,
    WalkPlan,
    WalkResult,
    undefined,
)
from pairflip.engines.exchange import LadderPlan, LadderResult
from pairflip.least_squares import Floats
from pairflip.moments import Form

Way = Literal["auto", "square", "table"]


class NumbaEngine:
    """Walks chains by the flip algebra; `way` forces one way of evaluating flips (for tests and benchmarks)."""

    name = "numba"
    prefers_many = False
    searches = True

    def __init__(self, way: Way = "auto") -> None:
        self.way = way

    def refuses(self, form: Form, plan: WalkPlan) -> str | None:
        """Nothing but what is not defined: all sizes and schedules have kernels; large tables are walked by columns."""
        return undefined(form, plan)

    def acceptance(self, beta: float, delta: float) -> float:
        r"""Probability :math:`\min(1, e^{-\beta \Delta E})`, read off the compiled decision by bisection."""
        from pairflip.engines.numba.annealing import decide

        low, high = 0, 2**53
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if decide(middle * 2.0**-53, beta * delta) else (low, middle - 1)
        return low * 2.0**-53

    def flip_energies(self, form: Form, order: NDArray[np.int64], k: int) -> Floats:
        """Delta E (k, N - k) of every flip from the support order[:k]; infinite where the flip is refused."""
        from pairflip.engines.numba.annealing import flip_energies

        return flip_energies(form, order, k)

    def walk(self, pairs: Sequence[Pair], *, n_jobs: int = 1, tick: Tick | None = None) -> list[WalkResult]:
        """Walk the pairs one after the other, the chains of each in `n_jobs` threads."""
        largest, last, idle, results = max((plan.k for _, plan in pairs), default=0), None, list[Any](), []
        for form, plan in pairs:
            if (reason := self.refuses(form, plan)) is not None:
                raise Refused(reason)
            if last is not form:
                last, idle = form, []
            results.append(self._walk_pair(form, plan, n_jobs, tick, largest, idle))
        return results

    def path(self, form: Form, largest: int, *, passes: int = 1, tick: Tick | None = None) -> Steps:
        """Supports of sizes 1 to `largest`, each from its neighbour (fewer if no more columns are independent)."""
        with one_blas_thread():
            steps: Steps = _searcher(form, largest, tick or _ignore, "walk_path").path(largest, passes)
            return steps

    def forward(self, form: Form, k: int, *, tick: Tick | None = None) -> NDArray[np.int64] | None:
        """A first support of k columns where energies are not quadratic, cheaper than a path; None if there is none."""
        with one_blas_thread():
            support: NDArray[np.int64] | None = _searcher(form, k, tick or _ignore, "walk_path").forward(k)
            return support

    def ladders(self, form: Form, plan: LadderPlan, n_jobs: int = 1) -> list[LadderResult]:
        """Ladders of walkers that trade places, in `n_jobs` threads; the result does not depend on them."""
        from pairflip.engines.numba.annealing import Walks, walk

        announce_compilation(walk)
        walks, ladders = Walks(form, plan.k, plan.keys.reshape(-1, 2)), dict[int, LadderResult]()

        def work(first: int, last: int) -> None:
            for ladder in range(first, last):
                ladders[ladder] = walks.ladder(plan, ladder)

        _in_threads(work, len(plan.keys), n_jobs, [])
        return [ladders[ladder] for ladder in range(len(plan.keys))]

    def _walk_pair(
        self, form: Form, plan: WalkPlan, n_jobs: int, tick: Tick | None, largest: int, idle: list[Any]
    ) -> WalkResult:
        """The annealing of one pair, if there is any, and then its descents; `idle` are searchers to be used again."""
        if plan.betas.size:
            walked = self._anneal_pair(form, plan, n_jobs, tick)
        else:
            steps, counts = np.zeros((plan.chains, 0)), np.zeros(plan.chains, np.int64)
            last, best = np.zeros((2, plan.chains, plan.k), np.int64)
            walked = WalkResult(steps, steps.astype(np.int64), last, best, np.zeros(plan.chains), counts)
        if plan.descent is None and form.quadratic:
            return walked
        starts = walked.best_support if plan.betas.size else plan.starts
        descent = Descent() if plan.descent is None else plan.descent
        nanoseconds, stop = np.zeros(plan.chains), list[bool]()

        def go_on(scans: int) -> None:
            if stop:
                raise _Stopped
            if tick is not None:
                tick(scans)

        def take() -> Any:
            try:  # not by a look at its length: another thread may take the last one
                searcher = idle.pop()
            except IndexError:
                return _searcher(form, largest, go_on, "walk_rounds")
            searcher.go_on = go_on
            return searcher

        def work(first: int, last: int) -> None:
            searcher = take()
            for c in range(first, last):
                chain = searcher.chain(plan.k, plan.keys[c], descent, None if starts is None else starts[c])
                walked.support[c] = walked.best_support[c] = chain.support
                walked.final_energy[c], nanoseconds[c] = chain.energy, chain.nanoseconds
            idle.append(searcher)

        idle.append(take())  # the first one forms G, before there are threads
        _in_threads(work, plan.chains, n_jobs, stop)
        return replace(walked, nanoseconds=float(nanoseconds.sum()))

    def _anneal_pair(self, form: Form, plan: WalkPlan, n_jobs: int, tick: Tick | None) -> WalkResult:
        from pairflip.engines.numba.annealing import Walks, new_output, walk

        announce_compilation(walk)
        walks, stop = Walks(form, plan.k, plan.keys, self.way), list[bool]()
        output = new_output(plan.chains, plan.betas.size, plan.k, record=plan.record)
        result = WalkResult(*output[:6], record=output.record, record_energy=output.record_energy)

        def work(first: int, last: int) -> None:
            walks.chains(plan.betas, plan.flips, output, first, last, stop, tick or _ignore)

        _in_threads(work, plan.chains, n_jobs, stop)
        for supports in (result.support, result.best_support, result.record):
            if supports is not None:
                supports.sort(axis=-1)
        return result


def _ignore(_: int) -> None:
    """Nobody wants to hear of it."""


def _searcher(form: Form, largest: int, go_on: Tick, first_use: str) -> Any:
    """A searcher of supports up to `largest`: on inner products, or, where these do not tell all, in exact energies.

    `first_use` is the function of `search` that is called first, whose compilation is announced.
    """
    from pairflip.engines.numba import search
    from pairflip.engines.numba.searching import Searcher
    from pairflip.engines.numba.units import remove

    if form.grouped or form.quadratic:
        announce_compilation(remove if form.grouped else getattr(search, first_use))
    if form.quadratic:
        return Searcher(form, largest, go_on)
    from pairflip.engines.numba.exact import ExactSearcher, best_moves

    announce_compilation(best_moves)
    return ExactSearcher(form, largest, go_on)


class _Stopped(Exception):
    """Another thread has failed or was interrupted."""


def _in_threads(work: Callable[[int, int], None], chains: int, n_jobs: int, stop: list[bool]) -> None:
    """Call `work` for all chains, in parts; a `stop` that is not empty tells the others to end."""
    with one_blas_thread():
        if n_jobs == 1:
            work(0, chains)
            return
        edges = np.linspace(0, chains, min(chains, 4 * n_jobs) + 1).astype(int).tolist()
        with ThreadPoolExecutor(n_jobs, thread_name_prefix="pairflip") as pool:
            try:
                futures = [pool.submit(work, a, b) for a, b in pairwise(edges)]
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                stop.append(True)
            for future in futures:
                with suppress(_Stopped):
                    future.result()


_FIRST_USES = {
    "search": ("the default search", 13),
    "units": ("groups of columns", 10),
    "enumeration": ("proofs", 10),
    "branching": ("proofs by branches", 5),
    "exact": ("energies that are not quadratic", 3),
    "annealing": ("annealing", 15),
    "models": ("the posterior", 5),
    "features": ("generated columns", 3),
}
"""What the kernels of a module are for, and seconds of compiling them on an idle core of 2.6 GHz."""
_announced: set[str] = set()
_announcing = Lock()


def announce_compilation(kernel: Any) -> None:
    """Say on standard error, once, what is compiled and how long that takes."""
    module = kernel.__module__.rsplit(".", 1)[1]
    use, seconds = _FIRST_USES[module]
    with _announcing:
        if module in _announced:
            return
        _announced.add(module)
        where = kernel.stats.cache_path
        if use in _announced or (where is not None and any(Path(where).glob(f"{module}.{kernel.__name__}-*.nbi"))):
            return
        _announced.add(use)
    print(f"pairflip: compiling (first use of {use}, about {seconds} s) ...", file=sys.stderr, flush=True)
