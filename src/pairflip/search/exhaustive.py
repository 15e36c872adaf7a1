"""Every support of one problem, by enumeration, in threads, until it is done or time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import comb
from threading import local
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import EQUAL, NOTHING, Tick
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.numba import announce_compilation
from pairflip.least_squares import Floats
from pairflip.moments import Form

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
    form
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

    form: Form
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


def nothing(asked: Question) -> Lowest:
    """What is known before anything was looked at."""
    counts = np.zeros(asked.levels.size, np.int64)
    return Lowest(np.zeros((0, asked.k), np.int64), np.zeros(0), counts, complete=False)


def gather(asked: Question, parts: list[Lowest]) -> Lowest:
    """What several parts of the work found, the lowest first."""
    parts = [nothing(asked), *parts]
    supports, doubled = np.concatenate([p.supports for p in parts]), np.concatenate([p.doubled for p in parts])
    order, counts = np.lexsort((*supports.T[::-1], doubled)), np.sum([p.counts for p in parts], axis=0)
    return Lowest(supports[order], doubled[order], counts, overflow=any(p.overflow for p in parts))


class Columns(NamedTuple):
    """A problem by its columns, as proofs see it: `exact` for compiled code, `B` (q, D), and their inner products."""

    exact: Any
    B: Floats

    @property
    def units(self) -> int:
        """U, the number of units."""
        return int(self.exact.start.size) - 1

    @property
    def single(self) -> bool:
        """Whether every unit is one column."""
        return bool(self.units == self.B.shape[1])

    def augmented(self, which: Any) -> tuple[Floats, Floats]:
        """Some columns (n, L) and the targets (L, q), ridge terms among the rows."""
        exact = self.exact
        columns, targets = exact.vectors[which], exact.vectors[exact.start[-1] :].T
        if exact.root.size:
            columns = np.hstack([columns, np.diag(exact.root[which])])
            targets = np.vstack([targets, np.zeros((len(columns), targets.shape[1]))])
        return columns, targets


def columns_of(form: Form) -> Columns:
    """The columns of a form on few rows that carry all inner products."""
    from pairflip.engines.numba.lowest import Exact

    vectors, targets = form.few_rows
    root = np.sqrt(form.penalty) if form.penalty.any() else np.empty(0)
    return Columns(Exact(np.vstack([vectors, targets.T]), root, form.start, form.rules, form.rules.any), form.B)


def all_seconds(form: Form, k: int) -> float:
    """Time to look at every support of k units on one core, by a cost model: supports, rows and nodes."""
    n, q = form.n_columns, len(form.B)
    width = form.start[-1] / n
    if k < 2:
        return 2e-8 * n
    each, row, node = 0.45 if q == 1 else 0.5 + 0.4 * q, 8.0, 700.0
    if width > 1:
        each, row, node = 60.0 + 40.0 * width * (q + width), 500.0 + 0.5 * width * float(form.start[-1]) ** 2, 0.0
    return 1e-9 * (each * comb(n, k) + row * comb(n, k - 1) + node * comb(n, k - 2))


def enumerate_supports(asked: Question) -> Lowest:
    """All supports, from the largest first unit down."""
    form, k = asked.form, asked.k
    n = form.n_columns
    if k == 1:
        return _single(asked)
    from pairflip.engines.numba.enumeration import enumerate_from

    announce_compilation(enumerate_from)
    room = Rooms(asked)
    parts = k == 2 and room.columns.single  # of the matrix, which may be too large

    def search(piece: range) -> bool:
        ends = piece.start, piece.stop
        G = _rows(form, *ends) if parts else form.matrix
        with room.piece() as here:
            return bool(enumerate_from(G, *here, form.yy, room.rounding, *ends, room.stop, NO_PREFIX))

    if parts:
        pieces = [range(first, min(first + _BLOCK, n)) for first in range(0, n, _BLOCK)]
    else:
        with one_blas_thread():
            _ = form.matrix  # formed once, before threads ask for it
        pieces = [range(k - 1, n)] if asked.simple else [range(top, top + 1) for top in range(n - 1, k - 2, -1)]
    shares = [comb(piece.stop, k) - comb(piece.start, k) for piece in pieces]
    done = run_pieces(asked, pieces, search, room.stop, shares)
    looked = sum(share for share, ended in zip(shares, done, strict=True) if ended)
    last = max((piece.stop for piece, ended in zip(pieces, done, strict=True) if not ended), default=0)
    return room.gathered(looked, all(done), whole_bound(form, last) if last else 0.0)


def whole_bound(form: Form, count: int | None = None) -> float:
    """2E with the first `count` units together (None: all), below which no support of them can come."""
    columns = columns_of(form)
    exact, n = columns.exact, columns.exact.start[form.n_columns if count is None else count]
    rows, root = exact.vectors.shape[1], exact.root[:n]
    if n > rows and root.size and np.all(root**2 >= LEAST):
        # For every r, 2 y'r - r'r - sum (X_j r)^2 / penalty_j is a bound, and this r gives the largest one.
        X, Y = exact.vectors[:n], exact.vectors[exact.start[-1] :].T
        r = np.linalg.solve(np.eye(rows) + (X.T / root**2) @ X, Y)
        along = float(np.sum(((X @ r) / root[:, None]) ** 2))
        return max(float(2.0 * np.vdot(Y, r) - np.vdot(r, r)) - along - 1e-12 * form.yy, 0.0)
    if n >= rows and not root.size:
        return 0.0
    X, Y = columns.augmented(np.arange(n))
    u, s, _ = np.linalg.svd(X.T, full_matrices=False)
    basis = u[:, s > 1e-13 * s[0]]  # what is called dependent here lowers the bound, if anything
    rest = Y - basis @ (basis.T @ Y)
    return max(float(np.vdot(rest, rest)) - 1e-12 * form.yy, 0.0)


class Rooms:
    """Memory of the threads that work on a question, and what they have found."""

    def __init__(self, asked: Question) -> None:
        from pairflip.engines.numba.enumeration import ROUNDING

        self.asked, self.stop, self._own, self._found = asked, np.zeros(1, np.int64), local(), list[tuple[Any, ...]]()
        self.columns = columns_of(asked.form)
        self.exact = self.columns.exact
        if self.exact.root.size:
            room = np.zeros((len(self.exact.vectors), asked.k))
            self.exact = self.exact._replace(vectors=np.hstack([self.exact.vectors, room]))
        # What was subtracted for a fold left its rounding in what remains.
        self.rounding = ROUNDING / asked.form.trust

    @contextmanager
    def piece(self) -> Iterator[tuple[Any, ...]]:
        """(exact, basis, chosen, levels, kept) for a piece of work; what it found is taken at the end."""
        from pairflip.engines.numba.enumeration import new_levels
        from pairflip.engines.numba.lowest import new_basis, new_kept

        own, k, exact = self._own, self.asked.k, self.exact
        if not hasattr(own, "room"):
            own.room = *new_basis(exact, k), new_levels(exact, k, self.columns.B)
        # Every piece of work begins with the same bounds, so that nothing depends on who did what before.
        kept = new_kept(k, self.asked.wanted, self.asked.limit, self.asked.levels)
        yield exact, *own.room, kept
        m = int(kept.n[0])
        self._found.append((kept.supports[:m].copy(), kept.doubled[:m].copy(), kept.counts, bool(kept.n[1])))

    def tree(self) -> Any:
        """Memory of this thread for branches."""
        from pairflip.engines.numba.branching import new_branches

        if not hasattr(self._own, "branches"):
            self._own.branches = new_branches(self.asked.k, self.columns.units, len(self.columns.B))
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
        reach = asked.limit * (1.0 + 2.0 * EQUAL) + 2.0 * NOTHING * asked.form.yy  # as in `lowest.limit_of`
        low = [doubled <= reach for _, doubled, _, _ in self._found]
        self._found = [(a[at], b[at], c, d) for at, (a, b, c, d) in zip(low, self._found, strict=True)]
        return float(max((reach, *asked.levels[-1:])))

    def gathered(self, looked: int, complete: bool, bound: float) -> Lowest:
        """What all pieces of work found; arguments are those of `Lowest`."""
        parts = [Lowest(np.sort(a, axis=1), b, c, overflow=d) for a, b, c, d in self._found]
        return replace(gather(self.asked, parts), looked=looked, complete=complete, bound=bound)


def _single(asked: Question) -> Lowest:
    """Supports of one unit: its columns are orthonormal, so that they explain the squares of B."""
    form, rules, B, start = asked.form, asked.form.rules, asked.form.B, asked.form.start
    doubled = form.yy - np.add.reduceat(np.sum(B**2, axis=0), start[:-1])
    for u in np.flatnonzero(doubled < _LITTLE * form.yy).tolist():  # the difference leaves little but rounding
        doubled[u] = 2.0 * form.energy(np.array([u]))
    doubled[np.diff(rules.need_start) > 0] = np.inf
    order = np.argsort(doubled, kind="stable")[: np.isfinite(doubled).sum()]
    counts = np.searchsorted(doubled[order], asked.levels, side="right")
    kept = order[: 2 * asked.wanted + 4096]
    return Lowest(kept[:, None], doubled[kept], counts, looked=doubled.size)


def _rows(gram: Form, first: int, last: int) -> Floats:
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
    """Which pieces of work were finished (`do` says so), in threads, until time is up or Ctrl-C; `stop` is set then.

    `shares`: of the pieces in the whole work, None if they are alike; `tell`: whether progress is told.
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
