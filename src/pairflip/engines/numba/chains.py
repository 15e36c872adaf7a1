"""Chains that anneal and ladders of walkers that trade places: the Python around the kernel of `annealing`."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import RankTooSmall, Tick, WalkPlan, WalkResult, flip_nanoseconds
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.exchange import LadderPlan, LadderResult, run_ladder
from pairflip.engines.first_support import first_order
from pairflip.engines.numba.annealing import (
    AUTO,
    CLOCK,
    SQUARE,
    TABLE,
    Output,
    Plan,
    System,
    Workspace,
    begin,
    new_chain,
    new_workspace,
    survey,
    walk_square,
    walk_table,
)
from pairflip.engines.numba.table import form_of, new_table
from pairflip.gram import Gram
from pairflip.least_squares import Floats

Way = Literal["auto", "square", "table"]
_WINDOW = 512
_SLICE_NS = 2e7  # how long a kernel may keep the interpreter from seeing Ctrl-C


def table_nanoseconds(gram: Gram, k: int) -> float:
    """Cost model: what an acceptance takes in the table, N columns at a time (a Gram row may have to be computed)."""
    n_rows = 0 if gram.dense else gram.n_rows
    return gram.n_columns * (1.5 + 0.35 * k + n_rows / 4.0)


def _system(gram: Gram, k: int, keys: NDArray[np.uint32]) -> System:
    """The problem for chains with these keys; under rules, with the orders in which they start."""
    form, none = form_of(gram), np.empty((0, 0))
    orders = np.zeros((len(keys) if form.ruled else 0, gram.n_columns), np.int32)
    with one_blas_thread():  # the last bits of a QR must not depend on the number of threads
        for c in range(len(orders)):
            orders[c] = first_order(gram, k, keys[c])
    needs = np.searchsorted(form.needs[:, 0], np.arange(gram.n_columns + 1))
    return System(gram.matrix if gram.dense else none, none if gram.dense else gram.columns, form, needs, orders)


def _output(chains: int, steps: int, k: int, *, record: bool) -> Output:
    """Where steps are written."""
    shape, kept = (chains, steps), (chains, steps) if record else (0, 0)
    return Output(
        np.zeros(shape), np.zeros(shape, np.int64), np.zeros((chains, k), np.int64), np.zeros((chains, k), np.int64),
        np.zeros(chains), np.zeros(chains, np.int64), np.zeros((*kept, k), np.int32), np.zeros(kept),
    )  # fmt: skip


class Annealing:
    """Chains of one plan on one problem, or walkers of ladders; parts of them may run in threads of their own."""

    def __init__(self, gram: Gram, plan: WalkPlan | LadderPlan, way: Way = "auto") -> None:
        self._gram, self._k = gram, plan.k
        self._keys: NDArray[np.uint32] = plan.keys.reshape(-1, 2)
        self._system = _system(gram, plan.k, self._keys)
        flip_ns = flip_nanoseconds(gram, plan.k)
        cost = table_nanoseconds(gram, plan.k) / flip_ns
        # A window is long enough to see a rate at which the table pays.
        self._way = {"auto": AUTO, "square": SQUARE, "table": TABLE}[way], cost, int(max(_WINDOW, 2.0 * cost))
        self._slice = int(_SLICE_NS / flip_ns) + 1

    def chains(self, plan: WalkPlan, output: Output, first: int, last: int, stop: list[bool], tick: Tick) -> None:
        """Chains first to last - 1 into the output, unless `stop` gets an item."""
        coldest = np.minimum.accumulate(plan.betas[::-1])[::-1].copy()
        own = Plan(plan.betas, np.cumsum(plan.flips), coldest, self._keys, *self._way)
        work = new_workspace(self._gram.n_columns, dense=self._gram.dense)
        walker = Walker(self._system, work, self._k, self._gram.objective)
        for c in range(first, last):
            walker.begin(c, own)
            while walker.clock["step"] < own.ends.size:
                tick(walker.advance(own, output, self._slice))
                if stop:
                    return
            output.final_energy[c] = walker.energy()
            output.support[c], output.best_support[c] = walker.support, walker.chain.best

    def ladder(self, plan: LadderPlan, which: int) -> LadderResult:
        """The walkers of one ladder, who walk and trade places."""
        n, first, rounds = plan.betas.size, which * plan.betas.size, plan.rounds
        # Temperatures come round by round, so that no walker may be taken for frozen: the coldest is 0.
        ends, heat = np.arange(1, rounds + 1) * plan.flips, np.zeros((n, rounds))
        plans = [Plan(betas, ends, np.zeros(rounds), self._keys, *self._way) for betas in heat]
        output = _output(len(self._keys), rounds, self._k, record=False)
        work = new_workspace(self._gram.n_columns, dense=self._gram.dense)
        walkers = [Walker(self._system, work, self._k, self._gram.objective) for _ in range(n)]
        for w, walker in enumerate(walkers):
            walker.begin(first + w, plans[w])

        def walk(w: int, round_: int, beta: float) -> tuple[NDArray[np.int64], float, int]:
            heat[w, round_], walker, left = beta, walkers[w], plan.flips
            while left > 0:
                left -= walker.advance(plans[w], output, left)
            return np.sort(walker.support), float(walker.clock["energy"]), int(output.accepted[first + w, round_])

        return run_ladder(plan, which, walk)


class Walker:
    """Memory of a chain, and where it stands."""

    def __init__(self, system: System, work: Workspace, k: int, objective: str) -> None:
        self._system, self._work, self._k, self._objective = system, work, k, objective
        self.chain = new_chain(k, system.form.B.shape[1], len(system.form.B))
        self._clocks = np.zeros(1, CLOCK)
        self.clock, self.support = self._clocks[0], self.chain.order[:k]

    def begin(self, chain: int, plan: Plan) -> None:
        """The first support of a chain."""
        self.clock["chain"] = chain
        found = begin(self._system, self.chain, self._clocks, plan)
        if found < self._k:
            raise RankTooSmall(self._k, found, self._objective)

    def advance(self, plan: Plan, output: Output, budget: int) -> int:
        """Walk about so many flips on; how many."""
        walk = walk_table if self.clock["mode"] == TABLE else walk_square
        return int(walk(self._system, self._work, self.chain, self._clocks, plan, output, budget))

    def energy(self) -> float:
        """E of the support, free of what rounding added to it flip by flip."""
        form = self._system.form
        B, P = form.B[:, self.support], self.chain.table.Q[len(form.B) :]
        return 0.5 * (form.yy - float(np.vdot(B @ P, B)))


def new_result(plan: WalkPlan) -> tuple[WalkResult, Output]:
    """What chains of a plan do, and the same as kernels write it."""
    output = _output(plan.chains, plan.betas.size, plan.k, record=plan.record)
    return WalkResult(*output[:6], record=output.record, record_energy=output.record_energy), output


def flip_energies(gram: Gram, order: NDArray[np.int64], k: int) -> Floats:
    """Delta E (k, N - k) of every flip from the support order[:k]; infinite where the flip is refused."""
    n, delta = gram.n_columns, np.full((k, gram.n_columns - k), np.inf)
    system = _system(gram, k, np.zeros((0, 2), np.uint32))
    table = new_table(k, n, len(system.form.B))
    survey(system, new_workspace(n, dense=gram.dense), order.astype(np.int32), table, delta)
    return delta
