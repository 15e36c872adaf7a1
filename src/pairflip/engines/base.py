"""What every engine is asked and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import SINGULAR, Floats
from pairflip.moments import Form
from pairflip.philox import philox4x32, start_order
from pairflip.rules import packed
from pairflip.text import one_line

Tick = Callable[[int], None]
"""Called now and then, perhaps from several threads, with the number of flips done since its last call."""

# What engines round and when they stop. The CUDA sources repeat these numbers, and a test compares them.

EPSILON = 2.0**-52
"""Distance from 1 to the next double."""

FROZEN = 53.0 * float(np.log(2.0))
r"""No flip with :math:`\beta \Delta E` above this can be accepted: the smallest u is :math:`2^{-53}`."""

TIE = 1e-12
"""While walking, a change of energy within this fraction of y'y counts as zero.

Supports that span the same space have the same energy, and rounding must not decide between them at any temperature.
"""

BETTER = 1e-9
"""While walking, a chain's best support is replaced when the energy is lower by this fraction of y'y.

Running energies carry the rounding of all flips since P was computed (`DRIFT`), which must not replace it. How
energies computed from X are compared at the end is another matter: see `is_lower`.
"""

DRIFT = 1e-11
"""Rounding (in units of G) that may add up before P is computed anew: EPSILON times the inflation at each flip."""

INFLATION = 1.0 / SINGULAR
"""A support is singular when a variance inflation factor reaches this."""

# How energies that were computed from X by QR are compared, everywhere: `reaches` and `is_lower`.

EQUAL = 1e-9
"""Energies that differ by this fraction are equal.

QR gives the energy of a support with inflation nu to about sqrt(nu y'y / E) EPSILON. At the largest inflation, 1e10,
that is 1e-9 for a support that explains 99.95 % of y'y, and two columns that differ so little are the same to anyone.
"""

NOTHING = 1e-20
"""An energy this small beside that of y is rounding error: the support explains y exactly."""


def reaches(energies: float | Floats, bound: float | Floats, yy: float | Floats) -> NDArray[np.bool_]:
    """Which energies are as low as `bound`; rounding does not decide. They are computed from X, as is `yy`, y'y."""
    return np.asarray(energies <= bound * (1 + EQUAL) + NOTHING * yy)


def is_lower(energies: float | Floats, than: float | Floats, yy: float | Floats) -> NDArray[np.bool_]:
    """Which energies are so much lower that `than` does not reach them."""
    return ~reaches(than, energies, yy)


@dataclass(frozen=True)
class Descent:
    """What a chain does after annealing, or instead of it: descend, then kick and descend again.

    While fewer than `pool` minima are known, a round starts from a random support; then it kicks one of the pool.
    """

    kicks: int = 0  # rounds after the first descent
    pool: int = 12  # how many of its lowest minima a chain remembers

    def columns(self, k: int) -> tuple[int, int]:
        """Fewest and most columns that a kick replaces: a tenth to a half of them, and up to five in any case."""
        least = max(1, -(-k // 10))
        return least, max(least, k // 2, min(k, 5))


@dataclass(frozen=True)
class WalkPlan:
    """Chains to walk on one problem: where they start and what they do.

    First the annealing, `flips[a]` attempted flips at `betas[a]`, from a random support; then, from the lowest support
    met, the descent. Either may be missing.
    """

    k: int
    betas: Floats  # (steps,)
    flips: NDArray[np.int64]  # (steps,)
    keys: NDArray[np.uint32]  # (chains, 2)
    starts: NDArray[np.int64] | None = None  # (chains, k): where chains that do not anneal descend from; None: random
    descent: Descent | None = None
    record: bool = False  # whether to keep the support at the end of every step

    @property
    def chains(self) -> int:
        """Number of chains."""
        return int(self.keys.shape[0])


@dataclass(frozen=True)
class WalkResult:
    """What the chains of a plan did; supports are sorted candidate positions."""

    energy: Floats  # (chains, steps): mean over the flips of a step of the energy after each flip
    accepted: NDArray[np.int64]  # (chains, steps): accepted flips
    support: NDArray[np.int64]  # (chains, k): where the chain ended
    best_support: NDArray[np.int64]  # (chains, k): the lowest it met
    final_energy: Floats  # (chains,): running energy at the end
    refreshes: NDArray[np.int64]  # (chains,): how often P was computed anew
    record: NDArray[np.int32] | None = None  # (chains, steps, k): supports at the end of steps
    record_energy: Floats | None = None  # (chains, steps): running energies there
    nanoseconds: float = 0.0  # what descents and kicks took on one core, counted in work


def undefined(form: Form, plan: WalkPlan) -> str | None:
    """Why no engine can walk this pair; None when it makes sense."""
    if not form.quadratic and plan.betas.size:
        return "Annealing is for squared error without signs; expected the default search (method='descend')."
    if form.grouped and plan.betas.size:
        return "Groups of columns are not annealed; there is the default search (method='descend')."
    if plan.starts is not None and plan.betas.size:
        return "Chains that anneal start from random supports."
    return None


def flip_nanoseconds(form: Form, k: int) -> float:
    """Cost model: what a hot flip takes on one core, fitted once; it sets numbers of chains, never results."""
    n_rows, targets = 0 if form.dense else form.n_rows, len(form.B)
    return 20.0 + 1.5 * k + k * (k + targets - 1) / 20.0 + n_rows * (0.5 + k / 15.0)


Steps = tuple[list[NDArray[np.int64]], Floats]
"""Supports of sizes 1, 2, ..., as candidate positions, and their energies."""
Pair = tuple[Form, WalkPlan]
"""A problem and the chains to walk on it."""


@runtime_checkable
class Engine(Protocol):
    """A way to walk chains; equal keys give equal chains wherever rounding does not decide.

    Delta E within `TIE` y'y counts as zero, so that supports of equal energy stay equal at every temperature.
    """

    name: str  # what `get_engine` and the user call it
    prefers_many: bool  # whether one call with many pairs is much faster than many calls (a device has to be filled)
    searches: bool  # whether it has paths, descents and kicks, too

    def refuses(self, form: Form, plan: WalkPlan) -> str | None:
        """Why the engine cannot walk this pair, in one sentence; None when it can.

        The answer depends on `plan.k` and `plan.flips`, not on the betas or the keys, so that it can be asked for
        before they are known.
        """
        ...

    def walk(self, pairs: Sequence[Pair], *, n_jobs: int = 1, tick: Tick | None = None) -> list[WalkResult]:
        """Walk every chain of every pair from its first support to the end."""
        ...


class Refused(ValueError):
    """An engine was asked to walk a pair that it refuses; `reason` is what `Engine.refuses` says."""

    def __init__(self, reason: str) -> None:
        super().__init__(f'{reason} Use engine="numba" for this one.')
        self.reason = reason

    def __reduce__(self) -> tuple[type[Refused], tuple[str]]:
        return Refused, (self.reason,)


def failure_words(error: BaseException) -> str:
    """What went wrong on a device, in one short line."""
    return f"{type(error).__name__}: {one_line(str(error))[:200]}"


class RankTooSmall(ValueError):
    """Fewer than k columns are linearly independent."""

    def __init__(self, k: int, rank: int, what: str = "columns") -> None:
        more = " and were found to keep the rules together" if "rules" in what else ""
        units = what.split()[0]
        super().__init__(
            f"k is {k}, but only {rank} of the candidate {units} are linearly independent (to working precision)"
            f"{more}; expected k <= {rank}."
        )
        self.k, self.rank, self.what = k, rank, what

    def __reduce__(self) -> tuple[type[RankTooSmall], tuple[int, int, str]]:
        return RankTooSmall, (self.k, self.rank, self.what)


START_ORDERS = 32
"""Random orders that are tried where rules keep columns apart: the first k that fit may leave no room for another."""
_ORDER_WORD = 0x72756C65


def first_order(
    form: Form, k: int, key: NDArray[np.uint32], energy: Callable[[NDArray[np.int64]], float] | None = None
) -> NDArray[np.int64]:
    """An order (N,) of all columns whose first k are a support: the first that stay independent, in random order.

    Rules (`Form.rules`) count as well. A column that needs another may come before it, so that those passed over
    are asked again while some enter; where too few do, another order is tried, and in the end one that looks ahead.
    """
    energy, rules, most = form.energy if energy is None else energy, form.rules, 0
    for attempt in range(START_ORDERS if rules.any else 1):
        order_key = philox4x32(np.array([attempt, 0, 0, _ORDER_WORD]), key)[:2] if attempt else key
        ones, zeros, before = list[int](), start_order(order_key, form.n_columns).tolist(), -1
        while before < len(ones) < k and (rules.any or before < 0):
            before, order, zeros = len(ones), zeros, []
            for column in order:
                if len(ones) < k and np.isfinite(energy(np.array([*ones, column]))):
                    ones.append(column)
                else:
                    zeros.append(column)
        if len(ones) == k:
            return np.array(ones + zeros)
        most = max(most, len(ones))
    support = packed(rules, k, start_order(key, form.n_columns)) if rules.any else None
    if support is None or not np.isfinite(energy(support)):
        raise RankTooSmall(k, most, form.what)
    return np.concatenate([support, np.setdiff1d(np.arange(form.n_columns), support)])
