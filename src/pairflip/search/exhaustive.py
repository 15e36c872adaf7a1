"""Every support of one problem, by enumeration, in threads, until it is done or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import comb
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import EQUAL, NOTHING, Tick
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.numba import announce_compilation
from pairflip.gram import Gram
from pairflip.least_squares import Floats

_BLOCK = 256  # rows of G that are formed at a time where the matrix is too large
_LITTLE = 1e-3
LEAST = 1e-8
"""Ridge terms below this fraction of a column's squared norm bound little, and drown in rounding."""
NO_PREFIX = np.zeros(0, np.int64)


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
    most
        Branches after which branch and bound is given up.
    engine
        "auto", "numba" or "cuda": what enumerates.
    interrupted
        Set when Ctrl-C ended the work.
    failed
        What a device raised that failed in the middle, if one did.
    """

    gram: Gram
    k: int
    wanted: int = 1
    limit: float = np.inf
    levels: Floats = field(default_factory=lambda: np.zeros(0))
    threads: int = 1
    until: float = np.inf
    tick: Tick | None = None
    most: float = np.inf
    engine: str = "auto"
    interrupted: bool = False
    failed: Exception | None = None

    @property
    def simple(self) -> bool:
        """Whether one thread does it all, and nobody wants to hear of it before the end."""
        return self.threads == 1 and self.until == np.inf and self.tick is None


def enumeration_seconds(n: int, k: int) -> float:
    """Time to look at every support of k of n columns on one core, by a cost model: supports, rows and nodes."""
    if k < 2:
        return 2e-8 * n
    return 1e-9 * (0.45 * comb(n, k) + 8.0 * comb(n, k - 1) + 700.0 * comb(n, k - 2))


def all_seconds(gram: Gram, k: int) -> float:
    """The same for a problem, which may have several targets."""
    if not gram.plain:
        from pairflip.search.several_proof import several_seconds

        return several_seconds(gram, k)
    return enumeration_seconds(gram.n_columns, k)


def enumerate_supports(asked: Question) -> Lowest:
    """All supports, from the largest first column down."""
    gram, k = asked.gram, asked.k
    n = gram.n_columns
    if not gram.plain:
        from pairflip.search.several_proof import enumerate_several_supports

        return enumerate_several_supports(asked)
    if k == 1:
        return _single(asked)
    from pairflip.engines.numba.enumeration import enumerate_from

    announce_compilation(enumerate_from)
    room = Rooms(asked)

    def search(piece: range) -> bool:
        ends = piece.start, piece.stop
        G = _rows(gram, *ends) if k == 2 else gram.matrix
        with room.piece() as here:
            return bool(enumerate_from(G, gram.b, *here, gram.yy, room.rounding, *ends, room.stop, NO_PREFIX))

    if k == 2:
        pieces = [range(first, min(first + _BLOCK, n)) for first in range(0, n, _BLOCK)]
        done = run_pieces(asked, pieces, search, room.stop)
        return room.gathered(comb(n, 2), all(done), 0.0 if all(done) else whole_bound(gram))
    with one_blas_thread():
        _ = gram.matrix  # formed once, before threads ask for it
    pieces = [range(top, top + 1) for top in range(n - 1, k - 2, -1)]
    if asked.simple:
        pieces = [range(k - 1, n)]
    shares = [sum(comb(top, k - 1) for top in piece) for piece in pieces]
    done = run_pieces(asked, pieces, search, room.stop, shares)
    looked = sum(share for share, ended in zip(shares, done, strict=True) if ended)
    if all(done):
        return room.gathered(looked, True, 0.0)
    last = next(piece.stop for piece, ended in zip(pieces, done, strict=True) if not ended)
    return room.gathered(looked, False, whole_bound(gram, last))


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
    if n >= gram.n_rows and not ridge:
        return 0.0
    columns, target = table_of(gram)
    columns = columns[:n]
    if n > len(target) and np.all(gram.penalty[:n] >= LEAST):
        # For every r, 2 y'r - r'r - sum (X_j r)^2 / penalty_j is a bound, and this r gives the largest one.
        r = np.linalg.solve(np.eye(len(target)) + (columns.T / gram.penalty[:n]) @ columns, target)
        along = float(np.sum(((columns @ r) ** 2).T / gram.penalty[:n]))
        return max(float(2.0 * np.vdot(target, r) - np.vdot(r, r)) - along - 1e-12 * gram.yy, 0.0)
    if ridge:
        columns = np.hstack([columns, np.diag(np.sqrt(gram.penalty[:n]))])
        target = np.concatenate([target, np.zeros((n, *target.shape[1:]))])
    u, s, _ = np.linalg.svd(columns.T, full_matrices=False)
    basis = u[:, s > 1e-13 * s[0]]  # what is called dependent here lowers the bound, if anything
    rest = target - basis @ (basis.T @ target)
    return max(float(np.vdot(rest, rest)) - 1e-12 * gram.yy, 0.0)


def table_of(gram: Gram) -> tuple[Floats, Floats]:
    """Columns (N, M) and target (M,), or several (M, q), on few rows that carry all inner products."""
    columns, targets = gram.few_rows
    return columns, np.ascontiguousarray(targets[:, 0]) if gram.plain else targets


class Rooms:
    """Memory of the threads that work on a question, and what they have found."""

    def __init__(self, asked: Question) -> None:
        self.asked, self.stop, self._own, self._found = asked, np.zeros(1, np.int64), local(), list[tuple[Any, ...]]()
        self._prepare(asked.gram)

    def _prepare(self, gram: Gram) -> None:
        """What all threads read."""
        from pairflip.engines.numba.enumeration import ROUNDING
        from pairflip.engines.numba.orthogonal import Exact

        self.ridge = bool(gram.penalty.any())
        columns, target = table_of(gram)
        root = np.sqrt(gram.penalty) if self.ridge else np.empty(0)
        self._exact: Any = Exact(columns, target, root)
        # What was subtracted for a fold left its rounding in what remains.
        self.rounding = ROUNDING / gram.trust

    def _memory(self) -> tuple[Any, ...]:
        """(basis, chosen, levels) for one thread."""
        from pairflip.engines.numba.enumeration import new_levels
        from pairflip.engines.numba.lowest import new_chosen
        from pairflip.engines.numba.orthogonal import new_basis

        k, n, rows = self.asked.k, self.asked.gram.n_columns, self._exact.target.size
        basis = new_basis(k, rows, ridge=self.ridge)
        return basis, new_chosen(k, n), new_levels(k, n, rows + k * self.ridge)

    def _branches(self) -> Any:
        """Memory for the branches of one thread."""
        from pairflip.engines.numba.branching import new_branches

        n = self.asked.gram.n_columns
        return new_branches(self.asked.k, n, n)

    @contextmanager
    def piece(self) -> Iterator[tuple[Any, ...]]:
        """(exact, basis, chosen, levels, kept) for a piece of work; what it found is taken at the end."""
        from pairflip.engines.numba.lowest import new_kept

        own, k = self._own, self.asked.k
        if not hasattr(own, "room"):
            own.room = self._memory()
        # Every piece of work begins with the same bounds, so that nothing depends on who did what before.
        kept = new_kept(k, self.asked.wanted, self.asked.limit, self.asked.levels)
        yield self._exact, *own.room, kept
        m = int(kept.n[0])
        self._found.append((kept.supports[:m].copy(), kept.doubled[:m].copy(), kept.counts, bool(kept.n[1])))

    def tree(self) -> Any:
        """Memory of this thread for branches."""
        if not hasattr(self._own, "branches"):
            self._own.branches = self._branches()
        return self._own.branches

    def forget(self) -> None:
        """What was found by work that is done again."""
        self._found.clear()
        self.stop[0] = 0

    def tighten(self) -> float:
        """Lower the limit to what was found so far; 2E up to which a support may be worth keeping or is counted."""
        asked, doubled = self.asked, np.concatenate([np.zeros(0), *(found[1] for found in self._found)])
        if doubled.size >= asked.wanted:
            asked.limit = min(asked.limit, float(np.partition(doubled, asked.wanted - 1)[asked.wanted - 1]))
        reach = asked.limit * (1.0 + 2.0 * EQUAL) + 2.0 * NOTHING * asked.gram.yy  # as in `lowest.limit_of`
        low = [doubled <= reach for _, doubled, _, _ in self._found]
        self._found = [(a[at], b[at], c, d) for at, (a, b, c, d) in zip(low, self._found, strict=True)]
        return float(max((reach, *asked.levels[-1:])))

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


def rooms_of(asked: Question) -> Rooms:
    """Memory for a question, as its targets need it."""
    if not asked.gram.plain:
        from pairflip.search.several_proof import SeveralRooms

        return SeveralRooms(asked)
    return Rooms(asked)


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


def run_pieces(
    asked: Question,
    pieces: list[Any],
    do: Callable[[Any], bool],
    stop: NDArray[np.int64],
    shares: list[int] | None = None,
    *,
    tell: bool = True,
) -> list[bool]:
    """Which pieces of work were finished, in threads, until time is up or Ctrl-C; `stop` is set then.

    Parameters
    ----------
    asked
        Threads, time, and who hears of progress.
    pieces, do
        What is done with each piece; False if it was not finished.
    stop : (1,)
        What the work looks at.
    shares
        Of the pieces in the whole work; None if they are alike.
    tell
        Whether progress is told.
    """
    done, told, weights = [False] * len(pieces), 0, shares or [1] * len(pieces)
    thousandth = sum(weights) / 1000.0
    number: dict[Future[bool], int] = {}
    with one_blas_thread():
        if asked.simple:
            return [do(piece) for piece in pieces]
        with ThreadPoolExecutor(asked.threads, thread_name_prefix="pairflip") as pool:
            try:
                number.update((pool.submit(do, piece), at) for at, piece in enumerate(pieces))
                open_work, so_far = set(number), 0
                while open_work:
                    ended, open_work = wait(open_work, timeout=0.05, return_when=FIRST_COMPLETED)
                    for future in ended:
                        done[number[future]] = not future.cancelled() and future.result()
                        so_far += weights[number[future]]
                    if tell and asked.tick is not None and int(so_far / thousandth) > told:
                        asked.tick(int(so_far / thousandth) - told)
                        told = int(so_far / thousandth)
                    if time.perf_counter() > asked.until and not stop[0]:
                        _give_up(stop, open_work)
            except BaseException as error:
                _give_up(stop, number)
                if not isinstance(error, KeyboardInterrupt):
                    raise
                asked.interrupted = True
    return done


def _give_up(stop: NDArray[np.int64], work: Iterable[Future[bool]]) -> None:
    """End what runs, and do not begin the rest."""
    stop[0] = 1
    for future in work:
        future.cancel()
