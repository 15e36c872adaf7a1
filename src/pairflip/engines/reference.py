r"""The paper's Algorithm 1, literally: least squares recomputed at every flip.

Slow and obvious: the judge of every other engine. Three things differ from the printed algorithm: the
acceptance is :math:`\min(1, e^{-\beta \Delta E})` (the paper prints max, a misprint), a flip to a
singular support is refused, and a change of energy that is rounding counts as none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.blas import one_blas_thread
from pairflip.engines.base import BETTER, TIE, Pair, Tick, WalkPlan, WalkResult, first_order, undefined
from pairflip.engines.exchange import LadderPlan, LadderResult, run_ladder
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.philox import flip_draws

_BLOCK = 256


class ReferenceEngine:
    """One QR of the k columns for each flip: O(M k^2)."""

    name = "reference"
    prefers_many = False
    searches = False

    def refuses(self, form: Form, plan: WalkPlan) -> str | None:
        """Descents; otherwise nothing but what is not defined: every problem has a QR."""
        if plan.descent is not None:
            return "The reference engine walks annealing chains only."
        return undefined(form, plan)

    def energy(self, form: Form, support: NDArray[np.int64]) -> float:
        r""":math:`E(S) = \frac12 \min_x \|y - X_S x\|^2`, infinite when S is singular."""
        return form.energy(support)

    def acceptance(self, beta: float, delta: float) -> float:
        r""":math:`\min(1, e^{-\beta \Delta E})`."""
        if delta <= 0:
            return 1.0
        return float(np.exp(-beta * delta)) if np.isfinite(delta) else 0.0  # 0 * inf is not a number

    def change(self, form: Form, now: float, then: float) -> float:
        """Delta E, zero when the two energies are equal but for rounding."""
        delta = then - now
        return 0.0 if abs(delta) <= TIE * form.yy else delta

    def flip_energies(self, form: Form, order: NDArray[np.int64], k: int) -> Floats:
        """Delta E (k, N - k) of every flip from the support order[:k]; infinite where the flip is refused."""
        ones, zeros = order[:k], order[k:]
        now = self.energy(form, ones)
        delta = np.empty((k, zeros.size))
        for i in range(k):
            for j, column in enumerate(zeros):
                flipped = ones.copy()
                flipped[i] = column
                delta[i, j] = self.change(form, now, self.energy(form, flipped))
        return delta

    def start(self, form: Form, k: int, key: NDArray[np.uint32]) -> NDArray[np.int64]:
        """First order of the columns: ONES are the first k that stay independent, in random order."""
        return first_order(form, k, key, partial(self.energy, form))

    def walk(self, pairs: Sequence[Pair], *, n_jobs: int = 1, tick: Tick | None = None) -> list[WalkResult]:
        """Walk the chains of every pair one after the other; `n_jobs` has no meaning here."""
        with one_blas_thread():  # the last bits of a QR must not depend on the number of threads
            return [self._anneal_pair(form, plan, tick) for form, plan in pairs]

    def ladders(self, form: Form, plan: LadderPlan, n_jobs: int = 1) -> list[LadderResult]:
        """Ladders of walkers that trade places, one after the other; `n_jobs` has no meaning here."""
        with one_blas_thread():
            return [
                run_ladder(plan, ladder, LiteralWalkers(self, form, plan.k, own, plan.flips).walk)
                for ladder, own in enumerate(plan.keys)
            ]

    def _anneal_pair(self, form: Form, plan: WalkPlan, tick: Tick | None) -> WalkResult:
        steps = plan.betas.size
        energy = np.zeros((plan.chains, steps))
        accepted = np.zeros((plan.chains, steps), dtype=np.int64)
        final = np.zeros(plan.chains)
        record = np.zeros((plan.chains, steps, plan.k), dtype=np.int32)
        record_energy = np.zeros((plan.chains, steps))
        support = np.zeros((plan.chains, plan.k), dtype=np.int64)
        best_support = np.zeros_like(support)
        for c, key in enumerate(plan.keys if steps else ()):
            order = self.start(form, plan.k, key)
            ones, zeros = order[: plan.k], order[plan.k :]
            now = best = self.energy(form, ones)
            best_support[c] = np.sort(ones)
            t = 0
            for a, (beta, flips) in enumerate(zip(plan.betas, plan.flips, strict=True)):
                for first in range(t, t + flips, _BLOCK):
                    count = min(_BLOCK, t + flips - first)
                    draws = flip_draws(key, first, count, plan.k, zeros.size)
                    for i, j, u in zip(*draws, strict=True):
                        flipped = ones.copy()
                        flipped[i] = zeros[j]
                        then = self.energy(form, flipped)
                        if u <= self.acceptance(beta, self.change(form, now, then)):
                            ones[i], zeros[j] = zeros[j], ones[i]
                            now = then
                            accepted[c, a] += 1
                            if now < best - BETTER * form.yy:
                                best, best_support[c] = now, np.sort(ones)
                        energy[c, a] += now / flips
                    if tick is not None:
                        tick(count)
                t += int(flips)
                record[c, a], record_energy[c, a] = np.sort(ones), now
            final[c] = now
            support[c] = np.sort(ones)
        walked = WalkResult(energy, accepted, support, best_support, final, np.zeros(plan.chains, dtype=np.int64))
        return replace(walked, record=record, record_energy=record_energy) if plan.record else walked


class LiteralWalkers:
    """Chains with these keys (R, 2) that make so many flips in each round, at whatever temperature they are told."""

    def __init__(self, engine: ReferenceEngine, form: Form, k: int, keys: NDArray[np.uint32], flips: int) -> None:
        self._engine, self._form, self._k, self._keys, self._flips = engine, form, k, keys, flips
        self._orders = [engine.start(form, k, key) for key in keys]

    def walk(self, round_: int, betas: Floats) -> tuple[Any, Any, Any]:
        """The flips of all walkers in one round: supports, energies, and how many were accepted."""
        found = [self.walk_one(w, round_, beta) for w, beta in enumerate(betas.tolist())]
        supports, energies, accepted = zip(*found, strict=True)
        return supports, energies, accepted

    def walk_one(self, walker: int, round_: int, beta: float) -> tuple[NDArray[np.int64], float, int]:
        """The flips of one round: support, energy, and accepted flips after it."""
        form, k, order = self._form, self._k, self._orders[walker]
        ones, zeros = order[:k], order[k:]
        now, accepted = self._engine.energy(form, ones), 0
        draws = flip_draws(self._keys[walker], round_ * self._flips, self._flips, k, zeros.size)
        for i, j, u in zip(*draws, strict=True):
            flipped = ones.copy()
            flipped[i] = zeros[j]
            then = self._engine.energy(form, flipped)
            if u <= self._engine.acceptance(beta, self._engine.change(form, now, then)):
                ones[i], zeros[j] = zeros[j], ones[i]
                now, accepted = then, accepted + 1
        return np.sort(ones), now, accepted
