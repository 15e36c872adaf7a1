"""Chains that anneal, ladders of walkers that trade places, and walks over sizes: the Python around `annealing`."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.blas import one_blas_thread
from pairflip.engines.base import INFLATION, RankTooSmall, Tick, first_order, flip_nanoseconds
from pairflip.engines.exchange import LadderPlan, LadderResult, run_ladder
from pairflip.engines.numba.annealing import (
    AUTO,
    CLOCK,
    SQUARE,
    TABLE,
    Chains,
    Output,
    Plan,
    System,
    Workspace,
    begin,
    new_chains,
    new_workspace,
    survey,
    walk,
)
from pairflip.engines.numba.models import NO_MIXTURE, Mixture
from pairflip.engines.numba.table import form_of
from pairflip.least_squares import Floats
from pairflip.moments import Form

Way = Literal["auto", "square", "table"]
_WINDOW = 512
_SLICE_NS = 2e7  # how long a kernel may keep the interpreter from seeing Ctrl-C


def new_output(chains: int, steps: int, k: int, *, record: bool) -> Output:
    """Where steps are written."""
    shape, kept = (chains, steps), (chains, steps) if record else (0, 0)
    return Output(
        np.zeros(shape), np.zeros(shape, np.int64), np.zeros((chains, k), np.int64), np.zeros((chains, k), np.int64),
        np.zeros(chains), np.zeros(chains, np.int64), np.zeros((*kept, k), np.int32), np.zeros(kept),
        np.zeros((chains, 3), np.int64),
    )  # fmt: skip


class Walks:
    """Chains with these keys (chains, 2) on one problem; parts of them may run in threads of their own.

    `k` is their size; with `sizes` (K + 2,), and `offset` or `mixture` (see `Plan`), they walk over sizes up to K and
    begin with k.
    """

    def __init__(
        self, form: Form, k: int, keys: NDArray[np.uint32], way: Way = "auto", *,
        sizes: Floats | None = None, offset: float = 0.0, inflation: float = INFLATION,
        mixture: Mixture = NO_MIXTURE,
    ) -> None:  # fmt: skip
        self._form, self._k, self._keys = form, k, keys
        self._room = k if sizes is None else sizes.size - 1
        kernel_form, none = form_of(form), np.empty((0, 0))
        orders = np.zeros((len(keys) if kernel_form.ruled else 0, form.n_columns), np.int32)
        with one_blas_thread():  # the last bits of a QR must not depend on the number of threads
            for c in range(len(orders)):
                orders[c] = first_order(form, k, keys[c])
        needs = np.searchsorted(kernel_form.needs[:, 0], np.arange(form.n_columns + 1))
        self._system = System(
            form.matrix if form.dense else none, none if form.dense else form.columns, kernel_form, needs, orders
        )
        typical = max(k, min(self._room, 8))
        flip_ns = flip_nanoseconds(form, typical)
        # Cost model: what an acceptance takes in the table, where a row of G may have to be computed, in flips.
        n_rows = 0 if form.dense else form.n_rows
        cost = form.n_columns * (1.5 + 0.35 * typical + n_rows / 4.0) / flip_ns
        # A window is long enough to see a rate at which the table pays.
        how = {"auto": AUTO, "square": SQUARE, "table": TABLE}[way], cost, int(max(_WINDOW, 2.0 * cost))
        self._weight = (np.zeros(0) if sizes is None else sizes), offset, inflation, *how, mixture
        self._slice = int(_SLICE_NS / flip_ns) + 1

    def _begun(self, numbers: range, plan: Plan) -> tuple[System, Workspace, Chains, NDArray[Any]]:
        """Memory of some chains at their first supports, and where they stand."""
        n, targets = self._form.n_columns, len(self._system.form.B)
        chains, clocks = new_chains(len(numbers), self._room, n, targets), np.zeros(len(numbers), CLOCK)
        for at, number in enumerate(numbers):
            clocks[at]["chain"], clocks[at]["k"] = number, self._k
            found = begin(self._system, chains, clocks, at, plan)
            if found < self._k:
                raise RankTooSmall(self._k, found, self._form.what)
        return self._system, new_workspace(n, dense=self._form.dense), chains, clocks

    def chains(
        self, betas: Floats, flips: NDArray[np.int64], output: Output, first: int, last: int, stop: list[bool],
        tick: Tick,
    ) -> None:  # fmt: skip
        """Chains first to last - 1 into the output, unless `stop` gets an item."""
        coldest = np.minimum.accumulate(betas[::-1])[::-1].copy()
        plan = Plan(betas[None], np.cumsum(flips), coldest, self._keys, *self._weight)
        for c in range(first, last):
            memory = self._begun(range(c, c + 1), plan)
            clock, chains = memory[3][0], memory[2]
            while clock["step"] < plan.ends.size:
                tick(int(walk(*memory, plan, output, self._slice)))
                if stop:
                    return
            if self._room > self._k:
                continue
            # Free of what rounding added flip by flip, and of what bordering an inverse adds.
            support, form = chains.order[0, : self._k], self._form
            columns, B = np.zeros((0, 0)) if form.dense else form.columns[support], form.B[:, support]
            G = form.matrix[np.ix_(support, support)] if form.dense else columns @ columns.T
            G[np.diag_indices(self._k)] = form.diagonal[support]
            output.final_energy[c] = 0.5 * (form.yy - float(np.vdot(np.linalg.solve(G, B.T), B.T)))
            output.support[c], output.best_support[c] = support, chains.best[0]

    def ladder(self, plan: LadderPlan, which: int) -> LadderResult:
        """The walkers of one ladder, who walk and trade places."""
        n, first, rounds, k = plan.betas.size, which * plan.betas.size, plan.rounds, plan.k
        # Temperatures come round by round, so that no walker may be taken for frozen: the coldest is 0.
        ends, heat = np.arange(1, rounds + 1) * plan.flips, np.zeros((n, rounds))
        own = Plan(heat, ends, np.zeros(rounds), self._keys, *self._weight)
        output = new_output(len(self._keys), rounds, k, record=False)
        memory = self._begun(range(first, first + n), own)
        chains, clocks = memory[2:]

        def walk_all(round_: int, betas: Floats) -> tuple[NDArray[np.int32], Floats, NDArray[np.int64]]:
            heat[:, round_] = betas
            walk(*memory, own, output, plan.flips)
            return np.sort(chains.order[:, :k], axis=1), clocks["energy"], output.accepted[first : first + n, round_]

        return run_ladder(plan, which, walk_all)


def flip_energies(form: Form, order: NDArray[np.int64], k: int) -> Floats:
    """Delta E (k, N - k) of every flip from the support order[:k]; infinite where the flip is refused."""
    n, delta = form.n_columns, np.full((k, form.n_columns - k), np.inf)
    system = Walks(form, k, np.zeros((0, 2), np.uint32))._system
    chains = new_chains(1, k, n, len(system.form.B))
    chains.order[0] = order
    survey(system, new_workspace(n, dense=form.dense), chains, delta, INFLATION)
    return delta
