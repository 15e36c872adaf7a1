"""Every support of one problem, by enumeration, until it is done or time is up: in threads, or on a GPU.

A GPU rules out; what it cannot rule out is judged here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import comb
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.blas import one_blas_thread
from pairflip.engines.base import EQUAL, NOTHING, Tick, reaches
from pairflip.engines.numba import announce_compilation
from pairflip.least_squares import Floats
from pairflip.moments import Form

_BLOCK = 256  # rows of G that are formed at a time where the matrix is too large
_LITTLE = 1e-3
LEAST = 1e-8
"""Ridge terms below this fraction of a column's squared norm bound little, and drown in rounding."""
NO_PREFIX = np.zeros(0, np.int64)
WORTH_SECONDS = 3.0
"""An enumeration is worth a device from this much time on the CPU."""
_JUDGED, _ENUMERATED = 8192, 16  # supports, and prefixes with pivots in doubt, that are a piece of work for a thread


@dataclass(frozen=True)
class Lowest:
    """The lowest supports of a problem: all that may be among those that are wanted."""

    supports: NDArray[np.int64]  # (m, k), positions of candidates
    doubled: Floats  # 2E (m,)
    counts: NDArray[np.int64]  # (L,), supports up to each level of 2E
    looked: int = 0  # supports that were looked at one by one
    complete: bool = True  # whether all were, or were ruled out
    bound: float = 0.0  # otherwise none that is missing has a lower 2E
    overflow: bool = False  # there were more equals of the last one than could be kept


@dataclass
class Question:
    """What is asked of one problem, and how its answer may be looked for."""

    form: Form
    k: int  # at least 1 and below the number of units
    wanted: int = 1  # how many of the lowest supports
    limit: float = np.inf  # a 2E that these do not exceed
    levels: Floats = field(default_factory=lambda: np.zeros(0))  # (L,) of 2E, ascending, up to which supports count
    threads: int = 1
    until: float = np.inf  # `time.perf_counter` at which to give up
    tick: Tick | None = None  # hears of thousandths of the work that were done
    most: float = np.inf  # branches after which branch and bound is given up
    engine: str = "auto"  # or "numba" or "cuda": what enumerates
    interrupted: bool = False  # set when Ctrl-C ended the work
    failed: Exception | None = None  # what a device raised that failed in the middle
    reported: int = 0  # thousandths that `tick` heard of

    def tell(self, share: float) -> None:
        """Tell that this share of the work is finished, unless that much was told before."""
        thousandths = int(1000 * share)
        if self.tick is not None and thousandths > self.reported:
            self.tick(thousandths - self.reported)
            self.reported = thousandths

    @property
    def highest(self) -> float:
        """Largest 2E with which a support may still be among the lowest that are wanted."""
        return self.limit * (1.0 + 2.0 * EQUAL) + 2.0 * NOTHING * self.form.yy  # as in `lowest.limit_of`

    @property
    def reach(self) -> float:
        """Largest 2E with which a support may still be among the lowest that are wanted, or be counted."""
        return float(max((self.highest, *self.levels[-1:])))

    def tighten(self, doubled: Floats) -> None:
        """Lower the limit to what is known by the 2E of some supports."""
        if doubled.size >= self.wanted:
            self.limit = min(self.limit, float(np.partition(doubled, self.wanted - 1)[self.wanted - 1]))

    @property
    def simple(self) -> bool:
        """Whether one thread does it all, and nobody wants to hear of it before the end."""
        return self.threads == 1 and self.until == np.inf and self.tick is None


def gather(
    question: Question, parts: list[Lowest], looked: int = 0, complete: bool = True, bound: float = 0.0
) -> Lowest:
    """What several parts of the work found (without parts: nothing), the lowest first."""
    supports = np.concatenate([np.zeros((0, question.k), np.int64), *(p.supports for p in parts)])
    doubled = np.concatenate([np.zeros(0), *(p.doubled for p in parts)])
    counts = np.sum([np.zeros(question.levels.size, np.int64), *(p.counts for p in parts)], axis=0)
    order, overflow = np.lexsort((*supports.T[::-1], doubled)), any(p.overflow for p in parts)
    return Lowest(supports[order], doubled[order], counts, looked, complete, bound, overflow)


def exact_columns(form: Form) -> Any:
    """The columns of a form, for compiled code, on few rows that carry all inner products."""
    from pairflip.engines.numba.lowest import Exact

    vectors, targets = form.few_rows
    root = np.sqrt(form.penalty) if form.penalty.any() else np.empty(0)
    return Exact(np.vstack([vectors, targets.T]), root, form.start, form.rules, form.rules.any)


def augmented(exact: Any, positions: Any) -> tuple[Floats, Floats]:
    """Some columns (n, L) and the targets (L, q), ridge terms among the rows."""
    columns, targets = exact.vectors[positions], exact.vectors[exact.start[-1] :].T
    if exact.root.size:
        columns = np.hstack([columns, np.diag(exact.root[positions])])
        targets = np.vstack([targets, np.zeros((len(columns), targets.shape[1]))])
    return columns, targets


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


def enumeration_cost(form: Form, k: int) -> float:
    """Seconds that an enumeration takes on one core.

    Rows of a matrix that is not formed must be computed, too, and of a tall table few rows that carry all products.
    """
    n, rows, width = form.n_columns, form.n_rows, int(form.start[-1])
    if k > 2 and not form.dense:
        return float("inf")
    few = 2e-11 * width**3 if form.dense and rows > width else 0.0
    return all_seconds(form, k) + few + (0.0 if form.dense or k == 1 else 1e-10 * n * n * rows)


def best_support(form: Form, k: int) -> tuple[NDArray[np.int64], float] | None:
    """Positions of the best k columns and their energy, by looking at every support; None if all are singular."""
    lowest = enumerate_supports(Question(form, k))
    if not lowest.doubled.size:
        return None
    equal = lowest.supports[reaches(lowest.doubled, lowest.doubled[0], form.yy)]
    return equal[np.lexsort(equal.T[::-1])[0]], 0.5 * float(lowest.doubled[0])


def enumerate_supports(question: Question) -> Lowest:
    """All supports, from the largest first unit down."""
    form, k, n = question.form, question.k, question.form.n_columns
    if k == 1:  # the columns of a unit are orthonormal, so that they explain the squares of B
        doubled = form.yy - np.add.reduceat(np.sum(form.B**2, axis=0), form.start[:-1])
        for u in np.flatnonzero(doubled < _LITTLE * form.yy).tolist():  # the difference leaves little but rounding
            doubled[u] = 2.0 * form.energy(np.array([u]))
        doubled[np.diff(form.rules.need_start) > 0] = np.inf
        order = np.argsort(doubled, kind="stable")[: np.isfinite(doubled).sum()]
        counts = np.searchsorted(doubled[order], question.levels, side="right")
        first = order[: 2 * question.wanted + 4096]
        return Lowest(first[:, None], doubled[first], counts, looked=n)
    from pairflip.engines.numba.enumeration import enumerate_from

    announce_compilation(enumerate_from)
    work = Workspaces(question)
    by_rows = k == 2 and form.start[-1] == n  # of the matrix, which may be too large

    def search(piece: range) -> bool:
        ends = piece.start, piece.stop
        if by_rows and not form.dense:
            G = np.empty((len(piece), n))
            form.write_rows(piece, list(G))
        else:
            G = form.matrix[slice(*ends)] if by_rows else form.matrix
        with work.piece() as workspace:
            return bool(enumerate_from(G, *workspace, form.yy, work.rounding, *ends, work.stop, NO_PREFIX))

    if by_rows:
        pieces = [range(first, min(first + _BLOCK, n)) for first in range(0, n, _BLOCK)]
    else:
        with one_blas_thread():
            _ = form.matrix  # formed once, before threads ask for it
        pieces = [range(k - 1, n)] if question.simple else [range(top, top + 1) for top in range(n - 1, k - 2, -1)]
    shares = [comb(piece.stop, k) - comb(piece.start, k) for piece in pieces]
    ended = run_pieces(question, pieces, search, work.stop, shares)
    looked = sum(share for share, finished in zip(shares, ended, strict=True) if finished)
    last = max((piece.stop for piece, finished in zip(pieces, ended, strict=True) if not finished), default=0)
    return gather(question, work.parts, looked, all(ended), whole_bound(form, last) if last else 0.0)


def whole_bound(form: Form, count: int | None = None) -> float:
    """2E with the first `count` units together (None: all), below which no support of them can come."""
    exact = exact_columns(form)
    n = exact.start[form.n_columns if count is None else count]
    rows, root = exact.vectors.shape[1], exact.root[:n]
    if n > rows and root.size and np.all(root**2 >= LEAST):
        # For every r, 2 y'r - r'r - sum (X_j r)^2 / penalty_j is a bound, and this r gives the largest one.
        X, Y = exact.vectors[:n], exact.vectors[exact.start[-1] :].T
        r = np.linalg.solve(np.eye(rows) + (X.T / root**2) @ X, Y)
        along = float(np.sum(((X @ r) / root[:, None]) ** 2))
        return max(float(2.0 * np.vdot(Y, r) - np.vdot(r, r)) - along - 1e-12 * form.yy, 0.0)
    if n >= rows and not root.size:
        return 0.0
    X, Y = augmented(exact, np.arange(n))
    u, s, _ = np.linalg.svd(X.T, full_matrices=False)
    basis = u[:, s > 1e-13 * s[0]]  # what is called dependent here lowers the bound, if anything
    rest = Y - basis @ (basis.T @ Y)
    return max(float(np.vdot(rest, rest)) - 1e-12 * form.yy, 0.0)


class Workspaces:
    """Memory of the threads that work on a question, and the parts of the answer that they found."""

    def __init__(self, question: Question) -> None:
        from pairflip.engines.numba.enumeration import ROUNDING

        self.question, self.stop, self._memory, self.parts = question, np.zeros(1, np.int64), local(), list[Lowest]()
        self.B, self.columns = question.form.B, exact_columns(question.form)
        self.exact = self.columns
        if self.exact.root.size:
            rows = np.zeros((len(self.exact.vectors), question.k))
            self.exact = self.exact._replace(vectors=np.hstack([self.exact.vectors, rows]))
        # What was subtracted for a fold left its rounding in what remains.
        self.rounding = ROUNDING / question.form.trust

    @contextmanager
    def piece(self) -> Iterator[tuple[Any, ...]]:
        """(exact, basis, chosen, levels, lowest) for a piece of work; what it found is taken at the end."""
        from pairflip.engines.numba.enumeration import new_levels
        from pairflip.engines.numba.lowest import new_basis, new_kept

        memory, k, exact = self._memory, self.question.k, self.exact
        if not hasattr(memory, "workspace"):
            memory.workspace = *new_basis(exact, k), new_levels(exact, k, self.B)
        # Every piece of work begins with the same bounds, so that nothing depends on who did what before.
        lowest = new_kept(k, self.question.wanted, self.question.limit, self.question.levels)
        yield exact, *memory.workspace, lowest
        m, overflow = int(lowest.n[0]), bool(lowest.n[1])
        supports, doubled = np.sort(lowest.supports[:m], axis=1), lowest.doubled[:m].copy()
        self.parts.append(Lowest(supports, doubled, lowest.counts, overflow=overflow))

    def tree(self) -> Any:
        """Memory of this thread for branches."""
        from pairflip.engines.numba.branching import new_branches

        if not hasattr(self._memory, "branches"):
            self._memory.branches = new_branches(self.question.k, self.question.form.n_columns, len(self.B))
        return self._memory.branches

    def tighten(self) -> float:
        """Lower the limit to what was found so far; 2E up to which a support may be worth keeping or is counted."""
        self.question.tighten(np.concatenate([np.zeros(0), *(part.doubled for part in self.parts)]))
        for at, part in enumerate(self.parts):
            low = part.doubled <= self.question.highest
            self.parts[at] = replace(part, supports=part.supports[low], doubled=part.doubled[low])
        return self.question.reach


def run_pieces(
    question: Question,
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
    finished, weights = [False] * len(pieces), shares or [1] * len(pieces)
    number: dict[Future[bool], int] = {}
    with one_blas_thread():
        if question.simple:
            return [do(piece) for piece in pieces]
        with ThreadPoolExecutor(question.threads, thread_name_prefix="pairflip") as pool:
            try:
                number.update((pool.submit(do, piece), at) for at, piece in enumerate(pieces))
                open_work, finished_work = set(number), 0
                while open_work:
                    ended, open_work = wait(open_work, timeout=0.05, return_when=FIRST_COMPLETED)
                    for future in ended:
                        finished[number[future]] = not future.cancelled() and future.result()
                        finished_work += weights[number[future]]
                    if tell:
                        question.tell(finished_work / sum(weights))
                    if time.perf_counter() > question.until and not stop[0]:
                        _give_up(stop, open_work)
            except BaseException as error:
                _give_up(stop, number)
                if not isinstance(error, KeyboardInterrupt):
                    raise
                question.interrupted = True
    return finished


def _give_up(stop: NDArray[np.int64], work: Iterable[Future[bool]]) -> None:
    """End what runs, and do not begin the rest."""
    stop[0] = 1
    for future in work:
        future.cancel()


def device_pays(question: Question, seconds: float) -> float | None:
    """Seconds that an enumeration takes on a device by a cost model; None if it is not to be used.

    `seconds`: time that the same takes on the CPU.
    """
    from pairflip.engines.cuda.enumeration import device_seconds, refusal

    too_small = question.engine == "auto" and seconds < WORTH_SECONDS
    if question.failed is not None or not question.form.plain or too_small:
        return None
    expected = device_seconds(question.form.n_columns, question.k)
    faster = question.engine == "cuda" or expected < seconds
    return expected if faster and refusal(question.form, question.k) is None else None


def enumerate_on_device(question: Question) -> Lowest | None:
    """All supports, from the largest first column down; None if there is no device that can do it.

    Where the device fails in the middle, `asked` says so, and what was found until then is not complete.
    """
    from pairflip.engines.cuda.device import failures
    from pairflip.engines.cuda.enumeration import Enumeration, refusal

    form, k, n = question.form, question.k, question.form.n_columns
    if refusal(form, k) is not None:
        return None
    with one_blas_thread():
        work, remaining = Workspaces(question), n
    try:
        device = Enumeration(form, k, work.rounding)
        while remaining and time.perf_counter() <= question.until:
            if not _judge_passed(question, work, device.step(work.tighten())):
                break
            remaining = device.below
            question.tell(device.share)
    except KeyboardInterrupt:
        question.interrupted = True
    except failures() as error:
        question.failed = error
    bound = whole_bound(form, remaining) if remaining else 0.0
    return gather(question, work.parts, comb(n, k) - comb(remaining, k), remaining == 0, bound)


def _judge_passed(question: Question, work: Workspaces, passed: Any) -> bool:
    """Judge supports that the device passed, and enumerate what it could not decide; False if time ran out."""
    from pairflip.engines.numba.enumeration import enumerate_from
    from pairflip.engines.numba.lowest import judge_supports

    form = question.form
    pieces = [
        (kernel, np.ascontiguousarray(rows[first : first + size]))
        for kernel, rows, size in (
            (judge_supports, passed.supports, _JUDGED),
            (enumerate_from, passed.parents, _ENUMERATED),
            (enumerate_from, passed.nodes, _ENUMERATED),
        )
        for first in range(0, len(rows), size)
    ]

    def do(piece: tuple[Any, Any]) -> bool:
        kernel, part = piece
        with work.piece() as (exact, basis, chosen, levels, lowest):
            if kernel is judge_supports:
                judge_supports(exact, basis, chosen, lowest, part, form.yy)
                return True
            args = form.matrix, exact, basis, chosen, levels, lowest, form.yy, work.rounding
            return all(enumerate_from(*args, prefix[0], prefix[0] + 1, work.stop, prefix) for prefix in part)

    quiet = replace(question, tick=None)
    finished = not pieces or all(run_pieces(quiet, pieces, do, work.stop))
    question.interrupted = question.interrupted or quiet.interrupted
    return finished
