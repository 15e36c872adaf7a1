r"""Proofs: that no other support of k columns has a lower energy, or a bound on how much lower one could be."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.engines import failure_note, get_engine
from pairflip.engines.base import EQUAL, NOTHING, reaches
from pairflip.engines.blas import one_blas_thread
from pairflip.jobs import local_threads
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.problem import SubsetProblem
from pairflip.progress import progress_bar
from pairflip.search.best_subset import best_subset
from pairflip.search.branch_and_bound import branch_seconds, branch_supports, can_branch
from pairflip.search.certain import best_support, enumeration_cost
from pairflip.search.exhaustive import Lowest, Question, enumerate_supports, nothing, whole_bound
from pairflip.search.on_device import can_enumerate, device_seconds, enumerate_on_device
from pairflip.search.proof import LIMITED, Proof
from pairflip.search.ridge_bound import can_bound
from pairflip.search.ridge_tree import LARGEST, RidgeTree, bound_seconds
from pairflip.search.sizes import check_size
from pairflip.supports import distinct_supports

BUDGET = 60.0
"""Seconds that a proof may take unless told otherwise."""
MOST_BEST = 100_000
WORTH_SECONDS = 3.0
"""An enumeration is worth a device from this much time on the CPU."""
ON_DEVICE = "enumeration on the GPU"
_AT_ONCE = 0.002  # seconds of enumeration below which nothing else is worth trying
_PATIENCE = 0.5  # of the time of an enumeration: what branch and bound may take before it is given up
_EQUALS = 500  # equals of the last of the best supports that are looked at by QR
_FIRST = 0.05  # of the budget: what branch and bound may take before the ridge bound is asked
_THREADED = 0.9  # of all threads: how well they share


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
    if not problem.has_proofs:
        raise ValueError(
            f"{problem.energy_words}; expected squared error without signs: there are no proofs for other energies."
        )
    k = problem.form.n_columns if _is_all(problem, k) else check_size(problem, k)
    budget, n_best, distances = check_budget(budget), _check_best(n_best), _check_within(within)
    check_engine(engine)
    began = time.perf_counter()
    if k == problem.form.n_columns:
        return _all_columns(problem, k, began)
    if incumbent is None:
        first = problem.slots(first_support(problem, k, seed, budget))
    else:
        first = problem.slots(incumbent)
        if first.size != k or not np.isfinite(problem.form.energy(np.sort(first))):
            raise ValueError(
                f"incumbent has {first.size} columns{'' if first.size != k else ' that are linearly dependent'}; "
                f"expected {k} independent ones."
            )
    began = time.perf_counter()
    with progress_bar(f"proving k = {k}", 1000, progress) as bar:
        asked = Question(
            problem.form, k, n_best, threads=local_threads(n_jobs), until=began + budget, tick=bar, engine=engine
        )
        try:
            found, method = search_all(asked, np.sort(first), distances, budget)
        except KeyboardInterrupt:  # between two pieces of work: nothing is known yet
            asked.interrupted = True
            energy = np.array([2.0 * problem.form.energy(np.sort(first))])
            found = replace(nothing(asked), supports=np.sort(first)[None], doubled=energy)
            method = "branch and bound" if can_branch(problem.form) else "enumeration"
    if method == "none":
        found = replace(found, bound=whole_bound(problem.form))
    note = "interrupted" if asked.interrupted else ""
    if found.overflow and not note:
        note = f"more than {len(found.supports)} supports are equal to the last of the best ones"
    proof = as_proof(problem, k, found, method, n_best, distances, time.perf_counter() - began, note)
    if asked.failed is None or asked.interrupted:
        return proof
    return replace(proof, note="; ".join(filter(None, [failure_note(asked.failed), proof.note])))


def first_support(problem: SubsetProblem, k: int, seed: int = 0, budget: float = BUDGET) -> NDArray[np.int64]:
    """Columns of a good support to begin with, by a quick search.

    Where many columns are linearly dependent a search may find none that is not singular; then all are looked at, if
    that takes no longer than the budget of so many seconds.
    """
    try:
        return best_subset(problem, k, effort="quick", seed=seed, prove=False).best_support
    except ValueError:
        found = best_support(problem.form, k) if enumeration_cost(problem.form, k) <= budget else None
        if found is None:
            raise
    return problem.columns_of(problem.form.candidates[found[0]])


@one_blas_thread()  # more would round differently, and wait for each other
def search_all(asked: Question, first: NDArray[np.int64], within: Floats, budget: float) -> tuple[Lowest, str]:
    """The lowest supports of a problem and the method that found them, beginning with a good support `first`.

    The bounds of the question are filled in here: `within` are distances up to which supports are counted.
    """
    gram = asked.form
    energy = gram.energy(first)
    asked.limit = _first_limit(gram, first, energy, asked.wanted)
    while True:
        asked.levels = 2.0 * energy * (1.0 + within) * (1.0 + EQUAL) + 2.0 * NOTHING * gram.yy
        found, method = _by_best_method(asked, budget)
        found = _judged(gram, found, first, asked.wanted)
        better = float(0.5 * found.doubled[0]) < energy * (1.0 - 1e-9) if found.doubled.size else False
        if not (better and within.size and found.complete):
            return found, method
        first = found.supports[0]
        energy = 0.5 * float(found.doubled[0])  # counts were those of a worse support


def _by_best_method(asked: Question, budget: float) -> tuple[Lowest, str]:
    gram, k, n = asked.form, asked.k, asked.form.n_columns
    threads = max(1.0, _THREADED * asked.threads)
    seconds = enumeration_cost(gram, k) / threads
    on_device = _device_pays(asked, seconds)
    if on_device:
        seconds = device_seconds(n, k)
    affordable, worthwhile = seconds <= budget, seconds > _AT_ONCE and k >= 2
    if on_device and affordable and asked.engine == "cuda":
        worthwhile = False  # what was asked for comes first
    # What is done unasked goes by cost models alone, and this method by the clock.
    ridge = worthwhile and not asked.simple and np.isfinite(asked.limit) and can_bound(gram)
    ridge = ridge and bound_seconds(n, min(n, gram.n_rows)) <= budget
    if worthwhile and can_branch(gram) and not (ridge and n > LARGEST):
        each = branch_seconds(n, 1.0)
        most = min(asked.most, _PATIENCE * threads * seconds / each if affordable else np.inf)
        found = branch_supports(asked, min(most, _FIRST * budget / each) if ridge else most)
        if found is not None:
            return found, "branch and bound"
    tree = None
    if ridge:
        tree = RidgeTree(asked)
        patience = time.perf_counter() + _PATIENCE * seconds if affordable else asked.until
        if tree.walk(min(patience, asked.until)) or patience >= asked.until or asked.interrupted:
            return tree.gathered(), "ridge bound"
    if affordable:
        device = enumerate_on_device(asked) if on_device else None
        if device is not None and asked.failed is None:
            found, method = device, ON_DEVICE
        else:
            found, method = enumerate_supports(asked), "enumeration"
        if device is not None and asked.failed is not None and not found.complete:
            found = _joined(found, device)
        return (found if found.complete or tree is None else _joined(found, tree.gathered())), method
    return nothing(asked), "none"


def _joined(found: Lowest, other: Lowest) -> Lowest:
    """What two methods know that both did not come to an end."""
    supports, doubled = np.vstack([found.supports, other.supports]), np.append(found.doubled, other.doubled)
    return replace(found, supports=supports, doubled=doubled, bound=max(found.bound, other.bound))


def _device_pays(asked: Question, seconds: float) -> bool:
    """Whether to enumerate on a device what would take so many seconds here."""
    if asked.engine == "numba" or (asked.engine == "auto" and seconds < WORTH_SECONDS) or asked.failed is not None:
        return False
    faster = asked.engine == "cuda" or device_seconds(asked.form.n_columns, asked.k) < seconds
    return faster and can_enumerate(asked) and asked.form.plain


def _first_limit(gram: Form, first: NDArray[np.int64], energy: float, wanted: int) -> float:
    """2E that the lowest supports do not exceed: that of `first` and of the best ones one flip away from it."""
    outside = np.setdiff1d(np.arange(gram.n_columns), first)
    start, B = gram.start, gram.B
    if wanted == 1:
        return 2.0 * energy
    if not gram.dense or start[-1] > gram.n_columns or wanted - 1 > min(outside.size * first.size, 1000):
        return float("inf")
    G = gram.matrix
    P = np.linalg.inv(G[np.ix_(first, first)])
    rows = G[np.ix_(first, outside)]
    x, W, p = B[:, first] @ P, P @ rows, np.diag(P)[:, None]
    r, s = B[:, outside] - x @ rows, 1.0 - np.einsum("mj,mj->j", rows, W) + W**2 / p
    gain = np.sum((r[:, None, :] + x[:, :, None] * (W / p)) ** 2, axis=0) / np.maximum(s, 1e-6)
    cost = np.sum(x**2, axis=0)[:, None] / p - np.where(s > 1e-6, gain, 0.0)
    found = [energy]
    for place in np.argsort(cost, axis=None, kind="stable").tolist():
        slot, j = divmod(place, outside.size)
        found.append(gram.energy(np.sort(np.append(np.delete(first, slot), outside[j]))))
        if np.isfinite(found[-1]) and np.isfinite(found).sum() == wanted:
            return 2.0 * max(e for e in found if np.isfinite(e))
        if len(found) > 4 * wanted:
            break
    return float("inf")


def _judged(gram: Form, found: Lowest, first: NDArray[np.int64], wanted: int) -> Lowest:
    """The same by QR on the columns, `first` included; equal supports in lexicographic order."""
    found = _without_too_many_equals(found, wanted, gram.yy)
    supports = distinct_supports(np.vstack([found.supports, first[None]])).supports
    energies = np.array([gram.energy(support) for support in supports])
    supports, energies = supports[np.isfinite(energies)], energies[np.isfinite(energies)]
    order = np.argsort(energies, kind="stable")
    supports, energies = supports[order], energies[order]
    at = 0
    while at < energies.size:  # rounding does not decide between equal ones
        same = int(np.count_nonzero(reaches(energies[at:], energies[at], gram.yy)))
        place = np.lexsort(supports[at : at + same].T[::-1])
        supports[at : at + same] = supports[at : at + same][place]
        energies[at : at + same] = energies[at : at + same][place]
        at += same
    return replace(found, supports=supports, doubled=2.0 * energies)


def _without_too_many_equals(found: Lowest, wanted: int, yy: float) -> Lowest:
    """What may be among the `wanted` lowest; of very many equals of the last one, the first in order."""
    if found.doubled.size <= wanted + _EQUALS:
        return found
    last = float(found.doubled[wanted - 1])
    surely = np.flatnonzero(found.doubled < last * (1.0 - 2.0 * EQUAL) - 2.0 * NOTHING * yy)
    last = last * (1.0 + 2.0 * EQUAL) + 2.0 * NOTHING * yy
    others = np.setdiff1d(np.flatnonzero(found.doubled <= last), surely)
    others = others[np.lexsort(found.supports[others].T[::-1])]
    chosen = np.concatenate([surely, others[: wanted + _EQUALS]])
    more = others.size > wanted + _EQUALS
    return replace(found, supports=found.supports[chosen], doubled=found.doubled[chosen], overflow=more)


def as_proof(
    problem: SubsetProblem,
    k: int,
    found: Lowest,
    method: str,
    n_best: int,
    within: Floats,
    seconds: float,
    note: str = "",
) -> Proof:
    """The record of what was found; arguments are those of `Proof`."""
    supports = problem.form.candidates[found.supports[:n_best]]
    energies = 0.5 * found.doubled[:n_best]
    if not found.complete and method != "none" and not note:
        note = "not enough time"
    if problem.limits.ruled and found.complete:
        only = f"{LIMITED} ({', '.join(problem.limits.asked)}); others were not looked at"
        note = f"{only}; {note}" if note else only
    return Proof(
        k=k,
        optimal=found.complete,
        support=supports[0],
        energy=float(energies[0]),
        supports=supports,
        energies=energies,
        lower_bound=float(energies[0]) if found.complete else min(0.5 * found.bound, float(energies[0])),
        within=within if found.complete else np.zeros(0),
        counts=found.counts if found.complete else np.zeros(0, np.int64),
        subsets=comb(problem.form.n_columns, k),
        looked=found.looked,
        method=method,
        seconds=seconds,
        note=note,
        names=problem.names if problem.units is None else problem.units.labels(problem.names),
        yy=float(problem.form.yy),
        counted="column" if problem.units is None else "group",
    )


def _is_all(problem: SubsetProblem, k: Any) -> bool:
    return isinstance(k, (int, np.integer)) and not isinstance(k, bool) and k == problem.form.n_columns


def _all_columns(problem: SubsetProblem, k: int, began: float) -> Proof:
    """There is only one support."""
    everything = np.arange(k)
    energy = problem.form.energy(everything)
    if not np.isfinite(energy):
        raise ValueError(
            f"k is {k}, but only {problem.form.rank()} of the candidate columns are linearly independent; "
            "expected at most so many."
        )
    found = Lowest(everything[None], np.array([2.0 * energy]), np.zeros(0, np.int64), looked=1)
    return as_proof(problem, k, found, "all columns", 1, np.zeros(0), time.perf_counter() - began)


def check_engine(engine: Any) -> None:
    """Refuse what is not the name of an engine that proves, and "cuda" where there is no device."""
    if engine not in ("auto", "numba", "cuda"):
        raise ValueError(f"engine is {engine!r}; expected 'auto', 'numba' or 'cuda'.")
    get_engine(engine)


def check_budget(budget: Any) -> float:
    """Seconds as a positive number."""
    if isinstance(budget, (bool, str)) or not isinstance(budget, (int, float, np.number)) or not budget > 0:
        raise ValueError(f"budget is {budget!r}; expected a number of seconds above 0.")
    return float(budget)


def _check_best(n_best: Any) -> int:
    whole = isinstance(n_best, (int, np.integer)) and not isinstance(n_best, bool)
    if not whole or not 1 <= n_best <= MOST_BEST:
        raise ValueError(f"n_best is {n_best!r}; expected a whole number from 1 to {MOST_BEST}.")
    return int(n_best)


def _check_within(within: Any) -> Floats:
    try:
        distances = np.sort(np.asarray(tuple(within), dtype=np.float64))
    except (TypeError, ValueError):
        distances = np.array([-1.0])
    if distances.ndim != 1 or not (np.isfinite(distances).all() and np.all(distances >= 0)):
        raise ValueError(f"within is {within!r}; expected distances such as (0.01, 0.05), each >= 0.")
    return distances
