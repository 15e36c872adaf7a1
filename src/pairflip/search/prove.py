r"""`prove` and its `Proof`: that no other support of k columns has a lower energy, or how much lower one could be.

Searches prove their answer unasked where that is cheap, or look at every support instead of searching (at the end of
this file). Cost models alone decide about that, never the clock, so that the same table gives the same result
everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.blas import one_blas_thread
from pairflip.engines import failure_note, get_engine
from pairflip.engines.base import EQUAL, NOTHING, is_lower, reaches
from pairflip.jobs import local_threads
from pairflip.least_squares import SINGULAR, Floats
from pairflip.moments import Form
from pairflip.problem import SubsetProblem
from pairflip.progress import progress_bar
from pairflip.search.best_subset import best_subset
from pairflip.search.branch_and_bound import branch_seconds, branch_supports, can_branch
from pairflip.search.effort import Effort, check_size, is_whole
from pairflip.search.exhaustive import (
    Lowest,
    Question,
    best_support,
    device_pays,
    enumerate_on_device,
    enumerate_supports,
    enumeration_cost,
    gather,
    whole_bound,
)
from pairflip.search.ridge_bound import LARGEST, RidgeTree, bound_seconds, can_bound
from pairflip.supports import distinct_supports

if TYPE_CHECKING:
    import pandas as pd

BUDGET = 60.0
"""Seconds that a proof may take unless told otherwise."""
MOST_BEST = 100_000
ON_DEVICE = "enumeration on the GPU"
_AT_ONCE = 0.002  # seconds of enumeration below which nothing else is worth trying
_PATIENCE = 0.5  # of the time of an enumeration: what branch and bound may take before it is given up
_EQUALS = 500  # equals of the last of the best supports that are looked at by QR
_FIRST = 0.05  # of the budget: what branch and bound may take before the ridge bound is asked
_THREADED = 0.9  # of all threads: how well they share
LIMITED = "this is about sets that keep the limits"
"""How the note of a proof begins where rules keep columns apart."""
RUNNERS_UP = 5
"""How many of the best supports a proof of a search's answer names."""
_NOISE = 1e-18  # of the norm of a column, squared: rounding, which may fit anything
_INVOLVED = 1e-3  # the least coefficient of a column on which another depends
_ALIKE = 1000  # pairs of columns that are nearly the same, of which sets are tried
_UNASKED_SECONDS = {"quick": 0.05, "normal": 0.5, "thorough": 5.0}
_FOLD_NS = {"quick": 2e5, "normal": 5e6, "thorough": 5e6}  # what solving one fold may take in any case


@dataclass(frozen=True)
class Proof:
    """A statement that no other support of k columns has a lower energy, or how much lower one could be.

    Attributes
    ----------
    k : int
        Number of columns, beside those that are always in the model; of groups where these are chosen as a whole.
    optimal : bool
        Whether `support` was proved to be the best; equals of it may exist, see `supports`.
    support, energy
        The best support known, sorted column indices of X, and its energy, recomputed from X by QR. A group is known
        by the first of its columns; `problem.columns_of(support)` has all of them.
    supports, energies : (n, k), (n,)
        The best supports known, the lowest first; equal ones in lexicographic order. If `optimal`, no support that is
        missing here has a lower energy than the last one.
    lower_bound : float
        No support of k columns has a lower energy than this; `energy` if `optimal`.
    within, counts : (L,)
        Numbers of supports whose energy is at most (1 + within) times the lowest, `support` itself among them.
        Both empty if that was not asked for, or if nothing was proved.
    subsets, looked : int
        Numbers of supports there are, and of those that were looked at one by one; the others were ruled out in groups.
    method : {"all columns", "enumeration", "enumeration on the GPU", "branch and bound", "ridge bound", "none"}
        How it was proved; "none" if there was not enough time even to begin.
    seconds, note : float, str
        Time taken, without that for finding a first support; what a reader should know besides.
    names : list of str
        Names of the columns of X, with that of a group at its first column.
    yy : float
        Twice the energy of no columns.
    counted : {"column", "group"}
        What k counts.
    dependent : tuple of (d,)
        Columns that count as dependent, so that no set has all of them, although by least squares one with all of them
        fits better than `support`: the best of these first, at most five.
    """

    k: int
    optimal: bool
    support: NDArray[np.int64]
    energy: float
    supports: NDArray[np.int64]
    energies: Floats
    lower_bound: float
    within: Floats
    counts: NDArray[np.int64]
    subsets: int
    looked: int
    method: str
    seconds: float
    note: str
    names: list[str]
    yy: float
    counted: str = "column"
    dependent: tuple[NDArray[np.int64], ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the best support."""
        return [self.names[j] for j in self.support]

    @property
    def n_candidates(self) -> int:
        """Number N of columns there were to choose from: `subsets` is N over k."""
        counts = range(len(self.names), self.k - 1, -1)  # those always in the model have names, too
        return next((n for n in counts if comb(n, self.k) == self.subsets), len(self.names))

    @property
    def limited(self) -> bool:
        """Whether it is about sets that keep limits on what may be chosen; others were not looked at."""
        return self.note.startswith(LIMITED)

    @property
    def pruned(self) -> int:
        """Number of supports that were ruled out without being looked at one by one; 0 unless `optimal`."""
        return max(self.subsets - self.looked, 0) if self.optimal else 0

    @property
    def gap(self) -> float:
        """By which fraction of `energy` a better support could be lower: 0 if `optimal`, at most 1."""
        if self.optimal or self.energy <= 0.0:
            return 0.0
        return float(min(max(1.0 - self.lower_bound / self.energy, 0.0), 1.0))

    @property
    def equals(self) -> int:
        """How many of `supports` fit as well as the best one, itself included."""
        return int(np.count_nonzero(~is_lower(self.energy, self.energies, self.yy)))

    @property
    def runner_up(self) -> int | None:
        """Place in `supports` of the best one that is worse than the best; None if there is none among them."""
        return self.equals if self.equals < len(self.energies) else None

    def excess(self) -> Floats:
        """By which fraction of the lowest energy each of `supports` is worse (n,); infinite if that is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.energies == self.energy, 1.0, self.energies / self.energy)
        return np.asarray(np.maximum(ratio - 1.0, 0.0))

    def __repr__(self) -> str:
        status = "optimal" if self.optimal else f"not proved, gap={self.gap:.2g}"
        return (
            f"Proof(k={self.k}, {status}, energy={self.energy:.6g}, columns={self.columns}, method={self.method!r}, "
            f"{self.looked:.3g} of {self.subsets:.3g} supports looked at, {self.seconds:.2g} s"
            f"{', ' + self.note if self.note else ''})"
        )

    def _repr_html_(self) -> str:
        """What is proved and the best sets, for notebooks."""
        from pairflip.report.notebook import proof_html

        return proof_html(self)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each of the best supports: rank, energy, excess over the lowest, columns."""
        import pandas as pd

        return pd.DataFrame(
            {
                "rank": np.arange(1, len(self.energies) + 1),
                "energy": self.energies,
                "excess": self.excess(),
                "columns": [[self.names[j] for j in support] for support in self.supports],
            }
        )


def prove(
    problem: SubsetProblem,
    k: int,
    incumbent: ArrayLike | None = None,
    budget: float = BUDGET,
    n_best: int = 1,
    *,
    within: Sequence[float] = (),
    engine: str = "auto",
    n_jobs: int | None = None,
    seed: int = 0,
    progress: bool | None = False,
) -> Proof:
    r"""Prove which support of k columns has the lowest energy, or how much lower one could be.

    Every support is looked at, the last two columns in closed form; or, where all columns together can be fitted (more
    rows than columns, or a ridge), whole groups of supports are ruled out because not even all their columns together
    fit well enough; or, with a ridge, because a relaxation in which columns may be in by parts does not. Which of them
    is chosen by the time they are expected to take. Ctrl-C, or the end of the budget, gives the bound so far.

    Parameters
    ----------
    problem
        Table and target.
    k
        Number of columns, beside those that are always in the model.
    incumbent
        Columns that are thought to be the best; None: a quick search.
    budget
        Seconds that it may take. What is expected to take much longer is not begun.
    n_best
        How many of the best supports are wanted.
    within
        Distances: how many supports have an energy of at most (1 + distance) times the lowest? Large ones take time.
    engine : {"auto", "numba", "cuda"}
        What enumerates: the CPU ("numba") or a GPU ("cuda"); "auto" is a GPU where there is one and it pays. The result
        does not depend on it.
    n_jobs
        Threads; None is one, -1 all cores. The result does not depend on it.
    seed
        Of the search for a first support.
    progress
        True: show a bar on standard error; None: only if it is a terminal.
    """
    if not problem.form.quadratic:
        raise ValueError(
            f"{problem.energy_words}; expected squared error without signs: there are no proofs for other energies."
        )
    everything = is_whole(k) and k == problem.form.n_columns
    k = int(k) if everything else check_size(problem, k)
    if isinstance(budget, (bool, str)) or not isinstance(budget, (int, float, np.number)) or not budget > 0:
        raise ValueError(f"budget is {budget!r}; expected a number of seconds above 0.")
    if not is_whole(n_best) or not 1 <= n_best <= MOST_BEST:
        raise ValueError(f"n_best is {n_best!r}; expected a whole number from 1 to {MOST_BEST}.")
    distances = _check_within(within)
    check_engine(engine)
    began = time.perf_counter()
    if everything:  # there is only one support
        energy = problem.form.energy(np.arange(k))
        if not np.isfinite(energy):
            raise ValueError(
                f"k is {k}, but only {problem.form.rank()} of the candidate columns are linearly independent; "
                "expected at most so many."
            )
        lowest = Lowest(np.arange(k)[None], np.array([2.0 * energy]), np.zeros(0, np.int64), looked=1)
        return as_proof(problem, lowest, "all columns", time.perf_counter() - began)
    first = np.sort(problem.slots(first_support(problem, k, seed, budget) if incumbent is None else incumbent))
    energy = problem.form.energy(first) if first.size == k else np.inf
    if not np.isfinite(energy):
        raise ValueError(
            f"incumbent has {first.size} columns{'' if first.size != k else ' that are linearly dependent'}; "
            f"expected {k} independent ones."
        )
    began = time.perf_counter()
    with progress_bar(f"proving k = {k}", 1000, progress) as bar:
        question = Question(
            problem.form, k, n_best, threads=local_threads(n_jobs), until=began + budget, tick=bar, engine=engine
        )
        try:
            lowest, method = search_all(question, first, distances, budget)
        except KeyboardInterrupt:  # between two pieces of work: nothing is known yet
            question.interrupted = True
            nothing = gather(question, [], complete=False)
            lowest = replace(nothing, supports=first[None], doubled=np.array([2.0 * energy]))
            method = "branch and bound" if can_branch(problem.form) else "enumeration"
    if method == "none":
        lowest = replace(lowest, bound=whole_bound(problem.form))
    note = ""
    if question.interrupted:
        note = "interrupted"
    elif lowest.overflow:
        note = f"more than {len(lowest.supports)} supports are equal to the last of the best ones"
    proof = as_proof(problem, lowest, method, time.perf_counter() - began, n_best, distances, note)
    if question.failed is None or question.interrupted:
        return proof
    return replace(proof, note="; ".join(filter(None, [failure_note(question.failed), proof.note])))


def first_support(problem: SubsetProblem, k: int, seed: int = 0, budget: float = BUDGET) -> NDArray[np.int64]:
    """Columns of a good support to begin with, by a quick search.

    Where many columns are linearly dependent a search may find none that is not singular; then all are looked at, if
    that takes no longer than the budget of so many seconds.
    """
    try:
        return best_subset(problem, k, effort="quick", seed=seed, prove=False).best_support
    except ValueError:
        best = best_support(problem.form, k) if enumeration_cost(problem.form, k) <= budget else None
        if best is None:
            raise
    return problem.columns_of(problem.form.candidates[best[0]])


@one_blas_thread()  # more would round differently, and wait for each other
def search_all(question: Question, first: NDArray[np.int64], within: Floats, budget: float) -> tuple[Lowest, str]:
    """The lowest supports of a problem and the method that found them, beginning with a good support `first`.

    The bounds of the question are filled in here: `within` are distances up to which supports are counted.
    """
    form = question.form
    energy = form.energy(first)
    question.limit = _first_limit(form, first, energy, question.wanted)
    while True:
        question.levels = 2.0 * energy * (1.0 + within) * (1.0 + EQUAL) + 2.0 * NOTHING * form.yy
        lowest, method = _by_best_method(question, budget)
        if lowest.doubled.size > question.wanted + _EQUALS:
            lowest = _without_too_many_equals(lowest, question.wanted, form.yy)
        lowest = _judged(form, lowest, first)
        better = float(0.5 * lowest.doubled[0]) < energy * (1.0 - 1e-9) if lowest.doubled.size else False
        if not (better and within.size and lowest.complete):
            return lowest, method
        first = lowest.supports[0]
        energy = 0.5 * float(lowest.doubled[0])  # counts were those of a worse support


def _by_best_method(question: Question, budget: float) -> tuple[Lowest, str]:
    form, k, n = question.form, question.k, question.form.n_columns
    threads = max(1.0, _THREADED * question.threads)
    seconds = enumeration_cost(form, k) / threads
    expected = device_pays(question, seconds) if question.engine != "numba" else None
    on_device = expected is not None
    seconds = seconds if expected is None else expected
    affordable, worthwhile = seconds <= budget, seconds > _AT_ONCE and k >= 2
    if on_device and affordable and question.engine == "cuda":
        worthwhile = False  # what was asked for comes first
    # What is done unasked goes by cost models alone, and this method by the clock.
    ridge = worthwhile and not question.simple and np.isfinite(question.limit) and can_bound(form)
    ridge = ridge and bound_seconds(n, min(n, form.n_rows)) <= budget
    if worthwhile and can_branch(form) and not (ridge and n > LARGEST):
        each = branch_seconds(n)
        most = min(question.most, _PATIENCE * threads * seconds / each if affordable else np.inf)
        lowest = branch_supports(question, min(most, _FIRST * budget / each) if ridge else most)
        if lowest is not None:
            return lowest, "branch and bound"
    tree = None
    if ridge:
        tree = RidgeTree(question)
        patience = time.perf_counter() + _PATIENCE * seconds if affordable else question.until
        if tree.walk(min(patience, question.until)) or patience >= question.until or question.interrupted:
            return tree.gathered(), "ridge bound"
    if affordable:
        device = enumerate_on_device(question) if on_device else None
        if device is not None and question.failed is None:
            lowest, method = device, ON_DEVICE
        else:
            lowest, method = enumerate_supports(question), "enumeration"
        if device is not None and question.failed is not None and not lowest.complete:
            lowest = _joined(lowest, device)
        return (lowest if lowest.complete or tree is None else _joined(lowest, tree.gathered())), method
    return gather(question, [], complete=False), "none"


def _joined(lowest: Lowest, other: Lowest) -> Lowest:
    """Supports of two unfinished methods together, with the larger of their two lower bounds."""
    supports, doubled = np.vstack([lowest.supports, other.supports]), np.append(lowest.doubled, other.doubled)
    return replace(lowest, supports=supports, doubled=doubled, bound=max(lowest.bound, other.bound))


def _first_limit(form: Form, first: NDArray[np.int64], energy: float, wanted: int) -> float:
    """2E that the lowest supports do not exceed: that of `first` and of the best ones one flip away from it."""
    outside = np.setdiff1d(np.arange(form.n_columns), first)
    if wanted == 1:
        return 2.0 * energy
    if not form.dense or form.start[-1] > form.n_columns or wanted - 1 > min(outside.size * first.size, 1000):
        return float("inf")
    G, B = form.matrix, form.B
    P = np.linalg.inv(G[np.ix_(first, first)])
    rows = G[np.ix_(first, outside)]
    x, W, p = B[:, first] @ P, P @ rows, np.diag(P)[:, None]
    r, s = B[:, outside] - x @ rows, 1.0 - np.einsum("mj,mj->j", rows, W) + W**2 / p
    gain = np.sum((r[:, None, :] + x[:, :, None] * (W / p)) ** 2, axis=0) / np.maximum(s, 1e-6)
    cost = np.sum(x**2, axis=0)[:, None] / p - np.where(s > 1e-6, gain, 0.0)
    energies = [energy]
    for place in np.argsort(cost, axis=None, kind="stable").tolist():
        slot, j = divmod(place, outside.size)
        energies.append(form.energy(np.sort(np.append(np.delete(first, slot), outside[j]))))
        if np.isfinite(energies[-1]) and np.isfinite(energies).sum() == wanted:
            return 2.0 * max(e for e in energies if np.isfinite(e))
        if len(energies) > 4 * wanted:
            break
    return float("inf")


def _judged(form: Form, lowest: Lowest, first: NDArray[np.int64]) -> Lowest:
    """Lowest supports, `first` among them, with energies by QR; equal ones in lexicographic order."""
    supports = distinct_supports(np.vstack([lowest.supports, first[None]])).supports
    energies = np.array([form.energy(support) for support in supports])
    supports, energies = supports[np.isfinite(energies)], energies[np.isfinite(energies)]
    order = np.argsort(energies, kind="stable")
    supports, energies = supports[order], energies[order]
    at = 0
    while at < energies.size:  # rounding does not decide between equal ones
        equal = slice(at, at + int(np.count_nonzero(reaches(energies[at:], energies[at], form.yy))))
        place = np.lexsort(supports[equal].T[::-1])
        supports[equal], energies[equal] = supports[equal][place], energies[equal][place]
        at = equal.stop
    return replace(lowest, supports=supports, doubled=2.0 * energies)


def _without_too_many_equals(lowest: Lowest, wanted: int, yy: float) -> Lowest:
    """What may be among the `wanted` lowest; of very many equals of the last one, the first in order."""
    last = float(lowest.doubled[wanted - 1])
    surely = np.flatnonzero(lowest.doubled < last * (1.0 - 2.0 * EQUAL) - 2.0 * NOTHING * yy)
    last = last * (1.0 + 2.0 * EQUAL) + 2.0 * NOTHING * yy
    others = np.setdiff1d(np.flatnonzero(lowest.doubled <= last), surely)
    others = others[np.lexsort(lowest.supports[others].T[::-1])]
    chosen = np.concatenate([surely, others[: wanted + _EQUALS]])
    more = others.size > wanted + _EQUALS
    return replace(lowest, supports=lowest.supports[chosen], doubled=lowest.doubled[chosen], overflow=more)


def as_proof(
    problem: SubsetProblem,
    lowest: Lowest,
    method: str,
    seconds: float,
    n_best: int = 1,
    within: Floats | None = None,
    note: str = "",
) -> Proof:
    """The record of the lowest supports; other arguments are those of `Proof`."""
    k = lowest.supports.shape[1]
    supports = problem.form.candidates[lowest.supports[:n_best]]
    energies = 0.5 * lowest.doubled[:n_best]
    if not lowest.complete and method != "none" and not note:
        note = "not enough time"
    if problem.limits.ruled and lowest.complete:
        only = f"{LIMITED} ({', '.join(problem.limits.asked)}); others were not looked at"
        note = "; ".join(filter(None, [only, note]))
    return Proof(
        k=k,
        optimal=lowest.complete,
        support=supports[0],
        energy=float(energies[0]),
        supports=supports,
        energies=energies,
        lower_bound=float(energies[0]) if lowest.complete else min(0.5 * lowest.bound, float(energies[0])),
        within=np.zeros(0) if within is None or not lowest.complete else within,
        counts=lowest.counts if lowest.complete else np.zeros(0, np.int64),
        subsets=comb(problem.form.n_columns, k),
        looked=lowest.looked,
        method=method,
        seconds=seconds,
        note=note,
        names=problem.names if problem.units is None else problem.units.labels(problem.names),
        yy=float(problem.form.yy),
        counted=problem.form.what.removesuffix("s"),
        dependent=_dependent(problem.form, lowest.supports[0], float(energies[0])) if lowest.complete else (),
    )


@one_blas_thread()
def _dependent(form: Form, support: NDArray[np.int64], energy: float) -> tuple[NDArray[np.int64], ...]:
    """Columns of singular sets that fit better than a support, and differ from it by one column or a pair.

    Looked at are columns that nearly depend on the support, and pairs of others that are nearly the same.
    """
    if support.size < 2 or form.grouped or form.penalty.any() or form.rules.any or not form.dense:
        return ()
    alike, outside = 1.0 - 2.0 * SINGULAR, np.setdiff1d(np.arange(form.n_columns), support)
    explained = form.products(np.linalg.qr(form.columns_of(support).T)[0].T)[:, outside]
    alone = outside[np.einsum("kn,kn->n", explained, explained) >= alike]
    pairs = [(i, j) for i in outside for j in outside[outside > i][form.matrix[i, outside[outside > i]] ** 2 >= alike]]
    better: dict[tuple[int, ...], float] = {}
    for added in (alone[:, None], np.array(pairs[:_ALIKE], np.int64).reshape(-1, 2)):
        for at in combinations(range(support.size), added.shape[1]) if len(added) else ():
            kept = np.delete(support, at)
            basis = np.linalg.qr(form.columns_of(kept).T)[0]
            left = form.targets - basis @ (basis.T @ form.targets)
            doubled, share = np.full(len(added), np.vdot(left, left)), np.ones(len(added))
            direction = np.zeros((len(added), form.n_rows))
            for columns in map(form.columns_of, added.T):
                for _ in range(2):  # rounding
                    columns = columns - (columns @ basis) @ basis.T
                    columns -= np.einsum("pm,pm->p", columns, direction)[:, None] * direction
                share = np.minimum(share, np.einsum("pm,pm->p", columns, columns))
                direction = columns / np.maximum(np.linalg.norm(columns, axis=1), 1e-300)[:, None]
                doubled -= np.sum((direction @ left) ** 2, axis=1)
            singular = (share <= SINGULAR) & (share > _NOISE)
            for p in np.flatnonzero(singular & is_lower(0.5 * doubled, energy, form.yy)):
                group = added[p]
                if group.size == 1:
                    x = np.linalg.lstsq(form.columns_of(kept).T, form.columns_of(group)[0], rcond=None)[0]
                    group = np.append(kept[np.abs(x) > _INVOLVED], group)
                key = tuple(np.sort(form.candidates[group]).tolist())
                better[key] = min(better.get(key, np.inf), float(doubled[p]))
    return tuple(np.array(key) for key in sorted(better, key=lambda key: (better[key], key))[:RUNNERS_UP])


def check_engine(engine: Any) -> None:
    """Refuse what is not the name of an engine that proves, and "cuda" where there is no device."""
    if engine not in ("auto", "numba", "cuda"):
        raise ValueError(f"engine is {engine!r}; expected 'auto', 'numba' or 'cuda'.")
    get_engine(engine)


def _check_within(within: Any) -> Floats:
    try:
        distances = np.sort(np.asarray(tuple(within), dtype=np.float64))
    except (TypeError, ValueError):
        distances = np.array([-1.0])
    if distances.ndim != 1 or not (np.isfinite(distances).all() and np.all(distances >= 0)):
        raise ValueError(f"within is {within!r}; expected distances such as (0.01, 0.05), each >= 0.")
    return distances


def proof_seconds(effort: Effort | str | None) -> float:
    """What proving the answer of a search may take on one core, by the cost models.

    Half a second; a tenth of that where the search is to be quick, ten times as much where it is to be thorough.
    """
    if isinstance(effort, Effort) and effort.clock:
        return min(effort.seconds, _UNASKED_SECONDS["normal"])
    return _UNASKED_SECONDS[effort.name if isinstance(effort, Effort) else effort or "normal"]


def proof_of(problem: SubsetProblem, k: int, support: NDArray[np.int64], seconds: float) -> Proof | None:
    """A proof of the best support, or of a better one, if it takes no more than so many seconds; otherwise None.

    `support`, the best columns known, is named first among equals.
    """
    form, began = problem.form, time.perf_counter()
    n = form.n_columns
    if k >= n or (enumeration_cost(form, k) > seconds and not can_branch(form)):
        return None
    first = np.sort(problem.slots(support))
    # Not on a device: the same table must give the same answer where there is none.
    question = Question(form, k, RUNNERS_UP, most=seconds / branch_seconds(n), engine="numba")
    lowest, method = search_all(question, first, np.zeros(0), seconds)
    if not lowest.complete:
        return None
    equal = np.flatnonzero(np.all(lowest.supports == first, axis=1))
    if equal.size and reaches(lowest.doubled[equal[0]], lowest.doubled[0], form.yy):
        order = np.concatenate([equal, np.setdiff1d(np.arange(len(lowest.supports)), equal)])
        lowest = replace(lowest, supports=lowest.supports[order], doubled=lowest.doubled[order])
    return as_proof(problem, lowest, method, time.perf_counter() - began, RUNNERS_UP)


def solved(problem: SubsetProblem, k: int, effort: Effort) -> Proof | None:
    """A proof by looking at every support, if that takes no longer than proving the answer of a search may."""
    form, seconds = problem.form, proof_seconds(effort)
    first = np.arange(k)
    if k >= form.n_columns or enumeration_cost(form, k) > seconds or not np.isfinite(form.energy(first)):
        return None
    return proof_of(problem, k, problem.columns_of(form.candidates[first]), seconds)


def is_solved(form: Form, k: int, effort: str, nanoseconds: float) -> bool:
    """Whether a fold is solved instead of searched: every support takes no longer than the search, or than 5 ms."""
    return k < form.n_columns and 1e9 * enumeration_cost(form, k) <= max(nanoseconds, _FOLD_NS[effort])
