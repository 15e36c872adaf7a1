"""What is walked together on the device: size classes, and groups that fit its memory (plain numpy)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import Pair, WalkPlan, flip_nanoseconds
from pairflip.moments import Form

MOST_COLUMNS = 65535
"""Columns are numbered by 16 bits in the kernel."""
MOST_FLIPS = 2**31
"""Flips of a step are counted by 31 bits in the kernel."""
NEAR_COLUMNS = 12000
"""Up to this many columns the order of a chain fits in shared memory."""
WORTH_SECONDS, WORTH_CHAINS = 10.0, 128
"""A batch is worth the device from this much work on one core, and this many chains to fill it."""


@dataclass(frozen=True)
class SizeClass:
    """One compiled kernel: supports of up to 8 * tiles columns, `chains` to a block, one warp each.

    `blocks` on a multiprocessor set the registers of a thread; `near` tiles of the lower half of P are kept in them.
    """

    tiles: int
    chains: int
    blocks: int
    near: int

    @property
    def largest(self) -> int:
        """The largest k."""
        return 8 * self.tiles


_TILES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16)
_CHAINS = (8, 4, 4, 4, 4, 4, 4, 4, 1, 1, 1, 1)
_BLOCKS = (2, 4, 4, 4, 3, 2, 2, 2, 8, 8, 5, 3)
_NEAR = (1, 3, 6, 9, 15, 21, 28, 32, 32, 31, 26, 31)
CLASSES = tuple(map(SizeClass, _TILES, _CHAINS, _BLOCKS, _NEAR))
"""Measured to be the fastest on an H200 (docs/decisions/016-gpu-engine.md)."""
LARGEST = CLASSES[-1].largest


@cache
def size_class(k: int) -> SizeClass:
    """The smallest class that holds k."""
    return next(one for one in CLASSES if k <= one.largest)


def order_bytes(n_columns: int) -> int:
    """Shared memory of an order of columns, or of the slots if there are more; zero where it lives in global memory."""
    return 0 if n_columns > NEAR_COLUMNS else (2 * max(n_columns, LARGEST) + 15) // 16 * 16


def refusal(form: Form, k: int, longest: int, free: int) -> str | None:
    """Why chains of k columns, with steps of up to `longest` flips, do not fit `free` bytes or the kernel, or None."""
    n = form.n_columns
    if not form.plain:
        return "the GPU engine walks on the squared error of one target without limits on the columns only."
    if k > LARGEST:
        return f"k is {k}, and the GPU engine holds supports of up to {LARGEST} columns."
    if n > MOST_COLUMNS:
        return f"the table has {n} candidate columns, and the GPU engine numbers up to {MOST_COLUMNS}."
    if longest >= MOST_FLIPS:
        return f"a step has {longest} flips, and the GPU engine counts fewer than 2**31 in a step."
    need = 8 * n * (n + (0 if form.dense else form.root.n_rows))  # without a matrix here it is formed there
    if need > free // 2:  # half: chains need room for their results
        return f"its {n} x {n} matrix takes {need / 2**30:.1f} GiB, and the GPU has {free / 2**30:.1f} GiB free."
    return None


def cost(form: Form, plan: WalkPlan) -> float:
    """What one chain costs: nanoseconds on one core, which order tasks well enough."""
    return flip_nanoseconds(form, plan.k) * float(plan.flips.sum())


def worthwhile(walks: Sequence[Pair]) -> bool:
    """Whether the work pays for waking the device."""
    chains = sum(plan.chains for _, plan in walks)
    return chains >= WORTH_CHAINS and sum(cost(g, p) * p.chains for g, p in walks) > 1e9 * WORTH_SECONDS


class Kind(NamedTuple):
    """What pairs have in common that are told to the device, and answered, as one array each.

    Ordered kernel by kernel, long chains first, then problem by problem, so that a matrix stays where it is.
    """

    tiles: int  # of the size class, negative
    owner: int  # number of the problem whose matrix is walked on
    k: int
    chains: int
    steps: int
    longest: int
    anneals: bool


def kinds_of(pairs: Sequence[Pair]) -> dict[Kind, list[int]]:
    """Numbers of the pairs of each kind; there may be hundreds of thousands of pairs, and few kinds."""
    names: dict[int, int] = {}
    longest: dict[int, int] = {}
    kinds: dict[Kind, list[int]] = {}
    for at, (form, plan) in enumerate(pairs):
        most = longest.get(id(plan.flips))
        if most is None:
            most = longest[id(plan.flips)] = int(plan.flips.max(initial=0))
        owner = names.setdefault(id(form.root), len(names))
        tiles, only = -size_class(min(plan.k, LARGEST)).tiles, plan.descent is None and not plan.record
        kind = Kind(tiles, owner, plan.k, len(plan.keys), plan.betas.size, most, only)
        kinds.setdefault(kind, []).append(at)
    return kinds


Group = list[tuple[Kind, list[int]]]


def cut(kinds: dict[Kind, list[int]], n_columns: Sequence[int], budget: int) -> Iterator[Group]:
    """Kinds and numbers of pairs that go together: of one size class, and within `budget` bytes unless one takes more.

    `n_columns` are those of the problem of each pair.
    """
    group: Group = []
    matrices, filled = set[int](), 0
    for kind in sorted(kinds):
        members, n = kinds[kind], n_columns[kinds[kind][0]]
        own, at = bytes_of(n, kind), 0
        while at < len(members):
            matrix = 0 if kind.owner in matrices else 8 * n * n
            fit = min((budget - filled - matrix) // own, len(members) - at)
            if group and (kind.tiles != group[-1][0].tiles or fit < 1):
                yield group
                group, matrices, filled = [], set(), 0
                continue
            fit = max(fit, 1)
            group.append((kind, members[at : at + fit]))
            matrices.add(kind.owner)
            filled += matrix + fit * own
            at += fit
    if group:
        yield group


def bytes_of(n: int, kind: Kind) -> int:
    """Device memory of the vectors of a problem with n columns, of its chains and their answers."""
    return 24 * n + 160 + 24 * kind.steps + kind.chains * (12 * kind.steps + 8 * kind.k + 32)


def queue(costs: NDArray[np.float64], chains: NDArray[np.int64]) -> NDArray[np.int32]:
    """Tasks (pair, chain) in the order they are taken: long ones first, so that none is left alone at the end."""
    order = np.argsort(-costs, kind="stable")
    piece = np.repeat(order, chains[order])
    ends = np.cumsum(chains[order])
    chain = np.arange(piece.size) - np.repeat(ends - chains[order], chains[order])
    return np.stack([piece, chain], axis=1).astype(np.int32)
