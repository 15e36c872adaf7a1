"""Every support of one problem: by enumeration or by branch and bound, in threads, until it is done or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import comb
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import EPSILON, INFLATION, Tick
from pairflip.engines.blas import one_blas_thread
from pairflip.gram import Gram, HeldOutGram
from pairflip.least_squares import Floats

_BLOCK = 256  # rows of G that are formed at a time where the matrix is too large
_PARTS, _SPLIT = 64, 5  # a tree is divided at the level of its fifth column left out
_FIRST_NODES = 20_000  # a tree of fewer branches is walked by one thread
_STOPPED = -1.0
_LITTLE = 1e-3
LEAST = 1e-8
"""Ridge terms below this fraction of a column's squared norm bound little, and drown in rounding."""


@dataclass(frozen=True)
class Lowest:
    """The lowest supports (m, k) of a problem, positions of candidates, with 2E (m,); all that may be among the n best.

    `counts` (L,): supports up to each level of 2E. `looked`: supports that were looked at one by one. `complete`:
    whether all were, or were ruled out; otherwise none has a 2E below `bound`. `overflow`: there were more equals of
    the last one than could be kept.
    """

    supports: NDArray[np.int64]
    doubled: Floats
    counts: NDArray[np.int64]
    looked: int = 0
    complete: bool = True
    bound: float = 0.0
    overflow: bool = False


@dataclass
class Question:
    """What is asked of one problem.

    Parameters
    ----------
    gram
        The problem; its objective is the energy.
    k
        Size of a support, at least 1 and below the number of columns.
    wanted, limit
        How many of the lowest supports, and a 2E that these do not exceed.
    levels : (L,)
        Values of 2E, ascending, up to which supports are counted.
    threads
        How many to use.
    until
        `time.perf_counter` at which to give up.
    tick
        Hears of thousandths of the work that were done.
    interrupted
        Set when Ctrl-C ended the work.
    """

    gram: Gram
    k: int
    wanted: int = 1
    limit: float = np.inf
    levels: Floats = field(default_factory=lambda: np.zeros(0))
    threads: int = 1
    until: float = np.inf
    tick: Tick | None = None
    interrupted: bool = False

    @property
    def simple(self) -> bool:
        """Whether one thread does it all, and nobody wants to hear of it before the end."""
        return self.threads == 1 and self.until == np.inf and self.tick is None


def enumeration_seconds(n: int, k: int) -> float:
    """Time to look at every support of k of n columns on one core, by a cost model: supports, rows and nodes."""
    if k < 2:
        return 1e-6 * n
    return 1e-9 * (0.45 * comb(n, k) + 8.0 * comb(n, k - 1) + 700.0 * comb(n, k - 2))


def branch_seconds(n: int, branches: float) -> float:
    """Time of so many branches on one core, by a cost model."""
    return branches * 1e-9 * (1000.0 + 1.2 * n * n)


def enumerate_supports(asked: Question) -> Lowest:
    """All supports, from the largest first column down."""
    gram, k = asked.gram, asked.k
    n = gram.n_columns
    if k == 1:
        return _single(asked)
    room = _Rooms(asked)
    if k == 2:

        def pairs(first: int) -> bool:
            from pairflip.engines.numba.enumeration import enumerate_pairs

            with room.piece() as here:
                rows = _rows(gram, first, min(first + _BLOCK, n))
                enumerate_pairs(rows, gram.b, *here, gram.yy, room.rounding, first)
            return True

        done = _run(asked, list(range(0, n, _BLOCK)), pairs, room.stop)
        return room.gathered(comb(n, 2), all(done), 0.0 if all(done) else whole_bound(gram))

    def tops(piece: range) -> bool:
        from pairflip.engines.numba.enumeration import enumerate_from

        with room.piece() as here:
            ends = piece.start, piece.stop
            return bool(enumerate_from(gram.matrix, gram.b, *here, gram.yy, room.rounding, *ends, room.stop))

    with one_blas_thread():
        _ = gram.matrix  # formed once, before threads ask for it
    pieces = [range(top, top + 1) for top in range(n - 1, k - 2, -1)]
    if asked.simple:
        pieces = [range(k - 1, n)]
    shares = [sum(comb(top, k - 1) for top in piece) for piece in pieces]
    done = _run(asked, pieces, tops, room.stop, shares)
    looked = sum(share for share, ended in zip(shares, done, strict=True) if ended)
    if all(done):
        return room.gathered(looked, True, 0.0)
    last = next(piece.stop for piece, ended in zip(pieces, done, strict=True) if not ended)
    return room.gathered(looked, False, whole_bound(gram, last))


def branch_supports(asked: Question, most: float = np.inf, fixed: Iterable[int] = ()) -> Lowest | None:
    """Branch and bound; None if the columns together are singular, or more than `most` branches would be needed.

    Parameters
    ----------
    asked
        What is asked.
    most
        Branches after which to give up.
    fixed
        Columns that are in every support that matters.
    """
    gram, k = asked.gram, asked.k
    root = _root(gram) if gram.dense and k >= 2 else None
    if root is None:
        return None
    T, z, doubled = root
    trace = float(np.sum(T * T))
    error = 512.0 * k * EPSILON * (1.0 + trace)
    slack = 64.0 * EPSILON * gram.n_columns * (1.0 + trace) ** 0.5
    room = _Rooms(asked)
    fixed = list(fixed)
    free = np.setdiff1d(np.arange(gram.n_columns), fixed)
    _ = gram.matrix

    def walk(part: int, parts: int, most: float = np.inf, bounds: bool = False) -> tuple[float, Floats]:
        from pairflip.engines.numba.branching import Cut, branch

        with room.piece() as (exact, basis, chosen, _, kept):
            tree, columns = room.tree(T.shape[1]), free.size
            tree.T[0, :columns], tree.z[0], tree.columns[0, :columns] = T[free], z, free
            tree.n[0], tree.doubled[0], tree.taken[0] = columns, doubled, len(fixed)
            for a, column in enumerate(fixed):
                chosen.at[a] = column
            looked = np.zeros(3)
            cut = Cut(_SPLIT if parts > 1 else gram.n_columns + 1, part, parts, slack, most, bounds)
            form = gram.matrix, gram.b, exact, basis, chosen, kept, tree, cut
            return float(branch(*form, gram.yy, error, looked, room.stop)), looked

    found, looked = walk(0, 1, min(most, _FIRST_NODES))
    if found != _STOPPED:
        return room.gathered(int(looked[0]), True, 0.0)
    if most <= _FIRST_NODES:
        return None
    room.forget()
    counted = np.zeros(_PARTS)

    def one(part: int) -> bool:
        found, looked = walk(part, _PARTS, most / _PARTS)
        counted[part] = looked[0]
        return found != _STOPPED

    done = _run(asked, list(range(_PARTS)), one, room.stop)
    if all(done):
        return room.gathered(int(counted.sum()), True, 0.0)
    if not room.stop[0]:  # there were too many branches
        return None
    room.stop[0] = 0
    bounds = [walk(part, _PARTS, bounds=True)[0] for part, ended in enumerate(done) if not ended]
    return room.gathered(int(counted.sum()), False, min(bounds))


def whole_bound(gram: Gram, count: int | None = None) -> float:
    """2E with the first `count` columns together (None: all), below which no support of them can come.

    Parameters
    ----------
    gram
        The problem.
    count
        How many columns.
    """
    n = gram.n_columns if count is None else count
    ridge = bool(gram.penalty.any())
    if n >= gram.target.size and not ridge:
        return 0.0
    columns, target = gram.columns_of(np.arange(n)), gram.target
    if n > target.size and np.all(gram.penalty[:n] >= LEAST):
        # For every r, 2 y'r - r'r - sum (X_j r)^2 / penalty_j is a bound, and this r gives the largest one.
        r = np.linalg.solve(np.eye(target.size) + (columns.T / gram.penalty[:n]) @ columns, target)
        along = float(np.sum((columns @ r) ** 2 / gram.penalty[:n]))
        return max(float(2.0 * target @ r - r @ r) - along - 1e-12 * gram.yy, 0.0)
    if ridge:
        columns = np.hstack([columns, np.diag(np.sqrt(gram.penalty[:n]))])
        target = np.concatenate([target, np.zeros(n)])
    u, s, _ = np.linalg.svd(columns.T, full_matrices=False)
    basis = u[:, s > 1e-13 * s[0]]  # what is called dependent here lowers the bound, if anything
    rest = target - basis @ (basis.T @ target)
    return max(float(rest @ rest) - 1e-12 * gram.yy, 0.0)


def can_branch(gram: Gram) -> bool:
    """Whether all columns together are not singular, so that a bound can be had from leaving some out."""
    return gram.dense and (gram.n_columns < gram.target.size or bool(gram.penalty.any()))


def _root(gram: Gram) -> tuple[Floats, Floats, float] | None:
    """Inverse factor T (N, D) of all columns together, y in its coordinates, 2E; None if they are singular."""
    if not can_branch(gram):
        return None
    columns, target = _table(gram)
    if gram.penalty.any():
        columns = np.hstack([columns, np.diag(np.sqrt(gram.penalty))])
        target = np.concatenate([target, np.zeros(gram.n_columns)])
    q, r = np.linalg.qr(columns.T)
    if r.shape[0] < r.shape[1] or np.min(np.abs(np.diag(r))) ** 2 * INFLATION <= 1.0:
        return None
    T = np.linalg.inv(r)
    if np.max(np.einsum("jd,jd->j", T, T)) * 10.0 > INFLATION:
        return None
    z = q.T @ target
    rest = target - q @ z
    return np.ascontiguousarray(T), z, float(rest @ rest)


def _table(gram: Gram) -> tuple[Floats, Floats]:
    """Columns (N, M) and target (M,); N + 1 rows carry all inner products, so of more rows a QR leaves these."""
    from pairflip.engines.numba.judging import Judge

    return Judge(gram).table


class _Rooms:
    """Memory of the threads that work on a question, and what they have found."""

    def __init__(self, asked: Question) -> None:
        from pairflip.engines.numba.enumeration import ROUNDING
        from pairflip.engines.numba.orthogonal import Exact

        gram = asked.gram
        self.asked, self.stop, self._own, self._found = asked, np.zeros(1, np.int64), local(), list[tuple[Any, ...]]()
        self.ridge = bool(gram.penalty.any())
        columns, target = _table(gram)
        root = np.sqrt(gram.penalty) if self.ridge else np.empty(0)
        self._exact = Exact(columns, target, root, np.empty(0))
        # What was subtracted for a fold left its rounding in what remains.
        self.rounding = ROUNDING / (gram.trust if isinstance(gram, HeldOutGram) else 1.0)

    @contextmanager
    def piece(self) -> Iterator[tuple[Any, ...]]:
        """(exact, basis, chosen, levels, kept) for a piece of work; what it found is taken at the end."""
        from pairflip.engines.numba.enumeration import new_levels
        from pairflip.engines.numba.lowest import new_chosen, new_kept
        from pairflip.engines.numba.orthogonal import new_basis

        own, k, n = self._own, self.asked.k, self.asked.gram.n_columns
        if not hasattr(own, "room"):
            rows = self._exact.target.size
            own.room = (
                new_basis(k, n, rows, ridge=self.ridge),
                new_chosen(k, n),
                new_levels(k, n, rows + k * self.ridge),
            )
        # Every piece of work begins with the same bounds, so that nothing depends on who did what before.
        kept = new_kept(k, self.asked.wanted, self.asked.limit, self.asked.levels)
        yield self._exact, *own.room, kept
        m = int(kept.n[0])
        self._found.append((kept.supports[:m].copy(), kept.doubled[:m].copy(), kept.counts, bool(kept.n[1])))

    def tree(self, dimensions: int) -> Any:
        """Memory of this thread for branches."""
        from pairflip.engines.numba.branching import new_branches

        if not hasattr(self._own, "branches"):
            self._own.branches = new_branches(self.asked.k, self.asked.gram.n_columns, dimensions)
        return self._own.branches

    def forget(self) -> None:
        """What was found by work that is done again."""
        self._found.clear()
        self.stop[0] = 0

    def gathered(self, looked: int, complete: bool, bound: float) -> Lowest:
        """What all pieces of work found.

        Parameters
        ----------
        looked, complete, bound
            As in `Lowest`.
        """
        none = np.zeros((0, self.asked.k), np.int64), np.zeros(0), np.zeros(self.asked.levels.size, np.int64), False
        supports, doubled, counts, overflow = zip(none, *self._found, strict=True)
        joined, energies = np.sort(np.concatenate(supports), axis=1), np.concatenate(doubled)
        order = np.lexsort((*joined.T[::-1], energies))
        return Lowest(joined[order], energies[order], sum(counts, none[2]), looked, complete, bound, any(overflow))


def _single(asked: Question) -> Lowest:
    """Supports of one column: it has unit norm, so that it explains b^2."""
    gram = asked.gram
    doubled = np.maximum(gram.yy - gram.b**2, 0.0)
    close = np.flatnonzero(doubled < _LITTLE * gram.yy)
    if close.size:  # the difference leaves little but rounding
        along, root = gram.b[close, None], np.sqrt(gram.penalty[close])
        rest = gram.target - along * gram.columns_of(close)
        doubled[close] = np.einsum("jm,jm->j", rest, rest) + (along[:, 0] * root) ** 2
    order = np.argsort(doubled, kind="stable")
    counts = np.searchsorted(doubled[order], asked.levels, side="right")
    kept = order[: 2 * asked.wanted + 4096]
    return Lowest(kept[:, None], doubled[kept], counts, looked=order.size)


def _rows(gram: Gram, first: int, last: int) -> Floats:
    """Some rows of G, without forming the others where the matrix is too large."""
    if gram.dense:
        return gram.matrix[first:last]
    out = np.empty((last - first, gram.n_columns))
    gram.write_rows(range(first, last), list(out))
    return out


def _run(
    asked: Question,
    pieces: list[Any],
    do: Callable[[Any], bool],
    stop: NDArray[np.int64],
    shares: list[int] | None = None,
) -> list[bool]:
    """Which pieces of work were finished, in threads, until time is up or Ctrl-C."""
    done, told, total = [False] * len(pieces), 0, float(sum(shares)) if shares else float(len(pieces))
    weights = shares or [1] * len(pieces)
    with one_blas_thread():
        if asked.simple:
            return [do(piece) for piece in pieces]
        with ThreadPoolExecutor(asked.threads, thread_name_prefix="pairflip") as pool:
            number = {pool.submit(do, piece): at for at, piece in enumerate(pieces)}
            open_work, so_far = set(number), 0.0
            try:
                while open_work:
                    ended, open_work = wait(open_work, timeout=0.05, return_when=FIRST_COMPLETED)
                    for future in ended:
                        at = number[future]
                        done[at] = not future.cancelled() and future.result()
                        so_far += weights[at]
                    if asked.tick is not None and int(1000 * so_far / total) > told:
                        asked.tick(int(1000 * so_far / total) - told)
                        told = int(1000 * so_far / total)
                    if time.perf_counter() > asked.until and not stop[0]:
                        stop[0] = 1
                        for future in open_work:
                            future.cancel()
            except BaseException as error:
                stop[0] = 1
                for future in open_work:
                    future.cancel()
                if not isinstance(error, KeyboardInterrupt):
                    raise
                asked.interrupted = True
    return done
