"""Searches of many folds on a device: what it is asked, fold by fold with all sizes, and what its answers mean.

The steps are those of `launches`: prepare, walk, judge. A path runs through all sizes of a fold, and chain 0 of each
size starts from it, so that there are two rounds of questions. What the device gives up is searched here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.engines import RankTooSmall, Tick, get_engine
from pairflip.engines.base import reaches
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.searches import ManyDescents, ManyFound, ManyPairs, ManyPaths
from pairflip.engines.together import Forms
from pairflip.gram import Gram
from pairflip.moments import OneRowOut, leaves_one_out
from pairflip.search.certain import best_support
from pairflip.selection.launches import Batch, Numbers, run_seconds, tasks_of
from pairflip.selection.many_folds import AnyOutcome, FoldsOutcome
from pairflip.selection.tasks import ALL_ROWS, Job, Task, Tasks, Work
from pairflip.selection.walks import (
    Halted,
    Outcome,
    affordable,
    effort_of,
    gram_of,
    is_enumerated,
    keys_of,
    no_steps,
    run_batch,
)

_FOLDS = 256  # that are searched together: their paths, a block each, fill a device
_JUDGED = 16  # of these, that one thread looks after when the device has answered


def why_not(engine: Any, works: Sequence[Work]) -> str | None:
    """Why these folds are searched on the CPU, in half a sentence; None where the device does it."""
    from pairflip.engines.cuda import WORTH_SECONDS

    for work in works:
        gram, largest = work.problem.gram, max(work.sizes)
        if work.sparing or type(gram) is not Gram or largest >= gram.n_columns:
            return "the device searches plain least squares of fewer columns than there are"
        reason = engine.refuses_search(gram, largest)
        if reason is not None:
            return str(reason).rstrip(".")
    if sum(map(run_seconds, works)) < WORTH_SECONDS:
        return "so little work takes no time there"
    return None


def launches(jobs: Sequence[Job]) -> Iterator[Batch]:
    """All tasks, some folds at a time; those of a fold stay together."""
    batch: Batch = []
    room = _FOLDS
    for job, (_, tasks) in enumerate(jobs):
        table = Tasks.of(tasks).table
        table = table[np.argsort(table[:, 1], kind="stable")]
        starts = np.flatnonzero(np.diff(table[:, 1], prepend=-2))  # where a fold begins
        first = 0
        while first < starts.size:
            last = min(first + room, starts.size)
            end = int(starts[last]) if last < starts.size else len(table)
            batch.append((job, table[int(starts[first]) : end]))
            room, first = room - (last - first), last
            if not room:
                yield batch
                batch, room = [], _FOLDS
    if batch:
        yield batch


@dataclass(frozen=True, eq=False)
class PlannedSearch:
    """Searches of one job on problems of one root.

    Attributes
    ----------
    job : int
        Which job.
    forms : Forms
        The problems.
    folds : (F,)
        Fold number of each of them; tasks of other folds are not here.
    tasks : list of Task
        What is asked, fold by fold.
    stacked : bool
        Whether answers of a size are whole arrays of folds.
    """

    job: int
    forms: Forms
    folds: Numbers
    tasks: list[Task]
    stacked: bool


def prepare(engine: Any, jobs: Sequence[Job], batch: Batch) -> tuple[list[PlannedSearch], list[tuple[int, list[Task]]]]:
    """What the device is asked, and the tasks of each job that are solved here.

    Parameters
    ----------
    engine : Engine
        The engine of the device.
    jobs : sequence of (Work, tasks)
        All jobs.
    batch : Batch
        The tasks that are searched together.
    """
    planned, here = [], []
    for job, table in batch:
        work, mine = jobs[job][0], tasks_of(table)
        solved = [task for task in mine if task.size != 2 and is_enumerated(work, task, work.problem.gram)]
        if solved:
            here.append((job, solved))
        done = set(solved)
        left = [task for task in mine if task not in done]
        together, alone = _together(job, work, left)
        planned += together
        for fold, own in groupby(alone, key=lambda task: task.fold):
            gram, tasks = gram_of(work, fold), list(own)
            if max(work.sizes) >= gram.n_columns or engine.refuses_search(gram, max(work.sizes)) is not None:
                here.append((job, tasks))
            else:
                planned.append(PlannedSearch(job, Forms.of(gram), np.array([fold]), tasks, stacked=False))
    return planned, here


def _together(job: int, work: Work, tasks: list[Task]) -> tuple[list[PlannedSearch], list[Task]]:
    """Folds that leave out one row, and the tasks that are left."""
    problem = work.problem
    if not leaves_one_out(problem) or problem.rows_present < 3:
        return [], tasks
    of_fold = {
        fold: int(work.folds.left_out[fold][0])
        for fold in sorted({task.fold for task in tasks})
        if fold != ALL_ROWS and work.folds.left_out[fold].size == 1
    }
    if not of_fold:
        return [], tasks
    row = np.array(list(of_fold.values()))
    trusted = dict(zip(of_fold, OneRowOut.of(problem, row).trusted.tolist(), strict=True))
    alone = [task for task in tasks if not trusted.get(task.fold)]
    folds, planned = [fold for fold in of_fold if trusted[fold]], []
    for first in range(0, len(folds), _JUDGED):
        some = folds[first : first + _JUDGED]
        forms = Forms.without_rows(OneRowOut.of(problem, np.array([of_fold[fold] for fold in some])))
        own = set(some)
        mine = [task for task in tasks if task.fold in own]
        planned.append(PlannedSearch(job, forms, np.array(some), mine, stacked=True))
    return planned, alone


class Kind(NamedTuple):
    """Chains `first` to `last` - 1 of one size, in some folds."""

    size: int
    first: int
    last: int


@dataclass(eq=False)
class Answers:
    """What the device found: of each kind the problems (F,), and chains by descents; folds that are lost.

    `parts` has for each kind the first chain of some questions, these and their answers; `pairs` is None where all
    sizes are searched.
    """

    paths: ManyFound
    pairs: ManyFound | None
    lost: set[int]
    which: dict[Kind, Numbers] = field(default_factory=dict)
    parts: dict[Kind, list[tuple[int, ManyDescents, ManyFound]]] = field(default_factory=dict)


First = list[ManyPaths | ManyPairs]


def pack(engine: Any, jobs: Sequence[Job], planned: Sequence[PlannedSearch]) -> First:
    """What is asked first: the paths, and pairs where all of them are looked at.

    Parameters
    ----------
    engine, jobs, planned
        As in `walk`.
    """
    first: First = []
    for each in planned:
        work, every_fold = jobs[each.job][0], np.arange(each.folds.size)
        first.append(ManyPaths(each.forms, every_fold, max(work.sizes), effort_of(work, int(each.folds[0])).passes))
        if _pairs_of(work, each):
            first.append(ManyPairs(each.forms, every_fold))
    return first


def walk(
    engine: Any, jobs: Sequence[Job], planned: Sequence[PlannedSearch], packed: First,
    ready: Callable[[int, Answers], None], tick: Tick, lane: int,
) -> None:  # fmt: skip
    """Have the device search: paths and pairs first, then all chains.

    Parameters
    ----------
    engine : Engine
        What searches.
    jobs : sequence of (Work, tasks)
        All jobs.
    planned : sequence of PlannedSearch
        What is to be searched.
    packed : list
        As `pack` gives it.
    ready : callable
        Is given the number of each of them and what was found.
    tick : callable
        Is called now and then, and may raise.
    lane : int
        Which of the engine's lanes is used.
    """

    def go_on(_: int) -> None:
        tick(0)

    works = [jobs[each.job][0] for each in planned]
    told = iter(engine.search_many(packed, tick=go_on, lane=lane))
    answers = [
        _questions(work, each, next(told), next(told) if _pairs_of(work, each) else None)
        for work, each in zip(works, planned, strict=True)
    ]
    every = [part[1] for found, questions in answers for part in questions]
    results = iter(engine.search_many(every, tick=go_on, lane=lane))
    for at, (found, questions) in enumerate(answers):
        for kind, descents, chain in questions:
            found.parts.setdefault(kind, []).append((chain, descents, next(results)))
        ready(at, found)


def _pairs_of(work: Work, planned: PlannedSearch) -> bool:
    """Whether size 2 is solved by looking at every pair."""
    pair = next((task for task in planned.tasks if task.size == 2), None)
    return pair is not None and is_enumerated(work, pair, planned.forms.root)


def _questions(
    work: Work, planned: PlannedSearch, paths: ManyFound, pairs: ManyFound | None
) -> tuple[Answers, list[tuple[Kind, ManyDescents, int]]]:
    """What is asked when the paths are known, by kinds of chains, with the first chain of each question."""
    effort = effort_of(work, int(planned.folds[0]))
    lost = set(planned.folds[paths.given_up[:, 0]].tolist())
    answers, questions = Answers(paths, pairs, lost), []
    tasks = [task for task in planned.tasks if task.fold not in lost]
    keys = keys_of(work, tasks) if tasks else []
    kinds: dict[Kind, list[int]] = {}
    for at, task in enumerate(tasks):
        kinds.setdefault(Kind(task.size, task.first, task.last), []).append(at)
    shared: dict[bytes, Numbers] = {}
    for kind, members in kinds.items():
        which = np.searchsorted(planned.folds, [tasks[at].fold for at in members])
        which = answers.which[kind] = shared.setdefault(which.tobytes(), which)  # what sizes share is sent once
        if pairs is not None and kind.size == 2:
            continue
        own = np.stack([keys[at] for at in members])
        gram, k = planned.forms.gram(int(which[0])), kind.size
        if kind.first == 0 and effort.kicks:
            descent = affordable(effort.descent(k, from_path=True), gram, k)
            starts = paths.supports[which, :, k - 1, :k]
            questions.append((kind, ManyDescents(planned.forms, which, k, own[:, :1], descent, starts), 0))
        at_random = int(kind.first == 0)
        if kind.last - kind.first > at_random:
            descent = affordable(effort.descent(k), gram, k)
            chains = np.ascontiguousarray(own[:, at_random:])
            questions.append((kind, ManyDescents(planned.forms, which, k, chains, descent), at_random))
    return answers, questions


def is_complete(_: Answers) -> bool:
    """Whether nothing is searched here any more: there may be pairs, and what the device gave up."""
    return False


@one_blas_thread()
def judge(work: Work, planned: PlannedSearch, answers: Answers) -> list[AnyOutcome]:
    """What was found, with what the device gave up searched here.

    Parameters
    ----------
    work : Work
        The job.
    planned : PlannedSearch
        What was asked.
    answers : Answers
        What was answered.
    """
    outcomes: list[AnyOutcome] = []
    if answers.lost:
        outcomes += run_batch(work, [task for task in planned.tasks if task.fold in answers.lost], "numba")
    pairs = _complete(work, planned, answers)
    for kind, which in answers.which.items():
        shape = which.size, kind.last - kind.first
        supports, energies = np.zeros((*shape, kind.size), np.int64), np.zeros(shape)
        if answers.pairs is not None and kind.size == 2:
            for at, form in enumerate(which.tolist()):
                supports[at], energies[at] = pairs[form]
        elif kind.first == 0:
            supports[:, 0] = answers.paths.supports[which, 0, kind.size - 1, : kind.size]
            energies[:, 0] = answers.paths.energies[which, 0, kind.size - 1]
        for first, _, found in answers.parts.get(kind, ()):
            part = slice(first, first + found.energies.shape[1])
            supports[:, part], energies[:, part] = found.supports, found.energies
        outcomes += _outcomes(work, planned, kind, which, supports, energies)
    return outcomes


def _complete(work: Work, planned: PlannedSearch, answers: Answers) -> dict[int, tuple[Numbers, float]]:
    """Search the chains that were given up with another engine, and judge pairs; the best pair of each problem.

    Problem by problem, so that no more than one of their matrices is there at a time.
    """
    left: dict[int, list[tuple[ManyDescents, ManyFound, int, int]]] = {}
    for parts in answers.parts.values():
        for _, descents, found in parts:
            for at, chain in found.left():
                left.setdefault(int(descents.which[at]), []).append((descents, found, at, chain))
    solved = [which for kind, which in answers.which.items() if answers.pairs is not None and kind.size == 2]
    of_pairs = set(np.concatenate(solved).tolist()) if solved else set()
    best: dict[int, tuple[Numbers, float]] = {}

    def go_on(_: int) -> None:
        if work.stop.wanted:
            raise Halted

    for form in sorted(left.keys() | of_pairs):
        gram, asked = planned.forms.gram(form), left.get(form, [])
        pair = _best_pair(gram, answers.pairs, form) if answers.pairs is not None and form in of_pairs else None
        try:
            walked = get_engine("numba").walk([(gram, each[0].plan(*each[2:])) for each in asked], tick=go_on)
        except RankTooSmall:
            walked = []
        if len(walked) < len(asked) or (pair is None and form in of_pairs):  # too few columns: this says so
            run_batch(work, [task for task in planned.tasks if task.fold == planned.folds[form]], "numba")
        for (_, found, at, chain), result in zip(asked, walked, strict=True):
            found.supports[at, chain], found.energies[at, chain] = result.support[0], result.final_energy[0]
        if pair is not None:
            best[form] = pair
    return best


def _best_pair(gram: Gram, pairs: ManyFound, at: int) -> tuple[Numbers, float] | None:
    """What `best_support` finds, of the pairs that a device could not rule out.

    Parameters
    ----------
    gram : Gram
        The problem.
    pairs : ManyFound
        What the device told.
    at : int
        Which of its answers.
    """
    if not pairs.given_up[at, 0]:
        listed = pairs.supports[at, 0, : int(pairs.energies[at, 0])]
        energies = np.array([gram.energy(pair) for pair in listed])
        lowest = float(energies.min())
        if np.isfinite(lowest):
            equal = listed[reaches(energies, lowest, gram.yy)]
            return equal[np.lexsort(equal.T[::-1])[0]], lowest
    return best_support(gram, 2)


def _outcomes(
    work: Work, planned: PlannedSearch, kind: Kind, which: Numbers, supports: Numbers, energies: NDArray[np.float64]
) -> list[AnyOutcome]:
    """Whole arrays where the folds share their candidates, else fold by fold."""
    folds = planned.folds[which]
    if planned.stacked:
        candidates = work.problem.candidates
        return [FoldsOutcome(kind.size, folds, kind.first, kind.last, candidates[supports], energies)]
    steps, outcomes = no_steps(work), list[AnyOutcome]()
    for at, fold in enumerate(folds.tolist()):
        task = Task(kind.size, fold, kind.first, kind.last)
        candidates = planned.forms.gram(int(which[at])).candidates
        outcomes.append(Outcome(task, candidates[supports[at]], energies[at], steps))
    return outcomes
