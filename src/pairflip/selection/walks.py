"""Doing tasks: what a worker runs, be it a thread, another process or another machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.engines import RankTooSmall, Tick, WalkPlan, WalkResult, get_engine
from pairflip.engines.base import Descent
from pairflip.engines.blas import one_blas_thread
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.philox import address_keys
from pairflip.search.effort import FINAL_EFFORTS, Effort, kick_nanoseconds
from pairflip.search.exhaustive import best_support
from pairflip.search.portfolio import NO_FLIPS, settle
from pairflip.search.schedule import forward_energies, scale_of
from pairflip.selection.tasks import ALL_ROWS, Task, Work
from pairflip.text import numbered

FORMED = 500
"""Columns up to which a short search forms the matrix of its inner products."""
_KICKING_NS = 5e8  # what kicks of one chain may take in a fold of a wide table
SHOWN_CHAINS = 16
"""Chains of a final fit whose course is kept, for the figures."""


class Outcome(NamedTuple):
    """What a task found: supports (chains, k) as column indices of X, and their energies.

    `steps` (chains, 2, steps): energies and acceptances of the first chains of a final fit, else empty.
    """

    task: Task
    supports: NDArray[np.int64]
    energies: Floats
    steps: Floats

    @property
    def n_chains(self) -> int:
        """Chains."""
        return self.task.last - self.task.first


class TooFewColumns(ValueError):
    """A fold has fewer linearly independent columns than a size asks for."""


class Halted(Exception):
    """The run that a task belongs to was given up."""


@one_blas_thread()  # more would round differently
def run_batch(work: Work, tasks: Sequence[Task], engine: str | None = None) -> list[Outcome]:
    """Walk the chains of all tasks; tasks of one fold that follow each other share its Gram matrix."""
    walker = get_engine(engine or work.engine)

    def go_on(_: int) -> None:
        if work.stop.wanted:
            raise Halted

    outcomes = []
    for fold, own in groupby(tasks, key=lambda task: task.fold):
        form, together = training_form(work, fold), list(own)
        if not work.selection.anneals:
            outcomes += searched(work, together, form, walker, go_on)
            continue
        for task, chains in zip(together, plans(work, together, form), strict=True):
            if task.size == form.n_columns:
                outcomes.append(outcome(work, task, form, None))
                continue
            try:
                (walked,) = walker.walk([(form, chains)], tick=go_on)
            except RankTooSmall as error:
                raise _too_large(work, task, error.rank) from None
            outcomes.append(outcome(work, task, form, walked))
    return outcomes


def searched(work: Work, tasks: Sequence[Task], form: Form, walker: Any, tick: Tick) -> list[Outcome]:
    """Outcomes of tasks of one fold by path, descents and kicks: chain 0 of a size starts from the path."""
    effort, largest = effort_of(work, tasks[0].fold), max(work.sizes)
    solved = {task.size: _solved(work, task, form) for task in tasks if is_enumerated(work, task, form)}
    path: list[NDArray[np.int64]] = []
    low = np.zeros(0)
    searched_by = [task for task in tasks if task.size not in solved]
    if any(task.first == 0 or task.size >= form.n_columns for task in searched_by):
        path, low = walker.path(form, largest, passes=effort.passes, tick=tick)
    found, pairs, places = [], [], []
    keys = keys_of(work, tasks) if effort.kicks or effort.chains > 1 else []
    steps = no_steps(work)
    for at, task in enumerate(tasks):
        k, from_path, chains = task.size, task.first == 0, task.last - task.first
        if k in solved:
            best, energy = solved[k]
            found.append(Outcome(task, np.tile(best, (chains, 1)), np.full(chains, energy), steps))
            continue
        if (from_path or k >= form.n_columns) and len(path) < k:
            raise _too_large(work, task, len(path))
        if k == form.n_columns:
            everything = np.tile(np.arange(k), (chains, 1))
            found.append(Outcome(task, form.candidates[everything], np.full(chains, low[k - 1]), steps))
            continue
        if from_path and chains == 1 and not effort.kicks:
            found.append(Outcome(task, form.candidates[path[k - 1]][None], low[k - 1 : k], steps))
            continue
        supports, energies = np.empty((chains, k), dtype=np.int64), np.empty(chains)
        if from_path:
            supports[0], energies[0] = form.candidates[path[k - 1]], low[k - 1]
        found.append(Outcome(task, supports, energies, steps))
        for which, first in ((slice(int(from_path), chains), False), (slice(0, int(from_path)), True)):
            if which.stop > which.start and (effort.kicks or not first):
                starts = np.stack(path[k - 1 : k]) if first else None
                descent = affordable(effort.descent(k, from_path=first), form, k)
                if not form.quadratic or (form.grouped and task.fold != ALL_ROWS):
                    descent = effort.costly_descent(k)
                plan = WalkPlan(k, *NO_FLIPS, keys[at][which], starts, descent)
                pairs.append((form, plan))
                places.append((at, which))
    try:
        walks = walker.walk(pairs, tick=tick) if pairs else []
    except RankTooSmall as error:
        raise _too_large(work, next(task for task in tasks if task.size == error.k), error.rank) from None
    for (at, which), walked in zip(places, walks, strict=True):
        found[at].supports[which], found[at].energies[which] = form.candidates[walked.support], walked.final_energy
    return found


def effort_of(work: Work, fold: int) -> Effort:
    """What the searches of a fold, or of all rows, do."""
    return FINAL_EFFORTS[work.selection.effort] if fold == ALL_ROWS else work.fold_effort


def is_enumerated(work: Work, task: Task, form: Form) -> bool:
    """Whether this cell is solved by looking at every support."""
    if task.fold == ALL_ROWS or task.size >= form.n_columns or not (form.dense or task.size == 1):
        return False
    return work.solves(task.size)


def _solved(work: Work, task: Task, form: Form) -> tuple[NDArray[np.int64], float]:
    """The best columns of a size in a fold, and their energy."""
    found = best_support(form, task.size)
    if found is None:
        raise _too_large(work, task, form.rank())
    return form.candidates[found[0]], found[1]


def affordable(descent: Descent, form: Form, k: int) -> Descent:
    """The same with fewer kicks on tables so wide that each takes long."""
    return replace(descent, kicks=min(descent.kicks, int(_KICKING_NS / kick_nanoseconds(form, k))))


def keys_of(work: Work, tasks: Sequence[Task]) -> list[NDArray[np.uint32]]:
    """The keys (chains, 2) of the chains of each task, by their addresses (seed, size, fold, chain)."""
    counts = [task.last - task.first for task in tasks]
    sizes = np.repeat([task.size for task in tasks], counts)
    addresses = [task.fold if task.fold == ALL_ROWS else work.first_address + task.fold for task in tasks]
    folds = np.repeat(addresses, counts)  # ALL_ROWS is -1, as in an address
    chains = np.concatenate([np.arange(task.first, task.last) for task in tasks])
    return np.split(address_keys(work.selection.seed, sizes, folds, chains), np.cumsum(counts)[:-1])


def training_form(work: Work, fold: int) -> Form:
    """The problem of one fold."""
    if fold == ALL_ROWS:
        return work.problem.form
    left_out = work.folds.left_out[fold]
    form = work.problem.held_out(left_out, anew=work.sparing and 3 * left_out.size > work.problem.rows_present)
    if work.sparing and form.n_columns > FORMED:
        form.dense = False  # the few rows of the matrix that are looked at come from the columns
    return form


def temperatures(work: Work, form: Form, sizes: Iterable[int]) -> dict[int, Floats]:
    """The betas (steps,) of each size on this problem; their unit comes from these rows and no others."""
    schedule, wanted = work.schedule, set(sizes)
    if schedule.unit != "greedy":
        return dict.fromkeys(wanted, schedule.absolute_betas(1.0))
    greedy = forward_energies(form, max(wanted))
    return {size: schedule.absolute_betas(scale_of(greedy[: size + 1])) for size in wanted}


def plans(
    work: Work, tasks: Sequence[Task], form: Form, keys: Sequence[NDArray[np.uint32]] | None = None
) -> list[WalkPlan]:
    """The chains of each task of one fold, with their addresses (seed, size, fold, chain)."""
    if any(task.size > form.n_columns for task in tasks):
        largest = max(tasks, key=lambda task: task.size)
        raise _too_large(work, largest, form.n_columns)
    betas = temperatures(work, form, [task.size for task in tasks])
    flips, keys = work.schedule.flips(form.n_columns), keys_of(work, tasks) if keys is None else keys
    return [WalkPlan(t.size, betas[t.size], flips, own) for t, own in zip(tasks, keys, strict=True)]


def outcome(work: Work, task: Task, form: Form, walked: WalkResult | None) -> Outcome:
    """What was found, judged by QR; without a walk, the support of all columns."""
    nothing = no_steps(work)
    if walked is None:
        everything = np.arange(form.n_columns)
        energy = form.energy(everything)
        if not np.isfinite(energy):
            raise _too_large(work, task, form.rank())
        chains = task.last - task.first
        supports, energies = np.tile(everything, (chains, 1)), np.full(chains, energy)
        return Outcome(task, form.candidates[supports], energies, nothing)
    supports, energies = settle(form, walked)
    steps = nothing
    if task.fold == ALL_ROWS:
        shown, flips = max(0, min(task.last, SHOWN_CHAINS) - task.first), work.schedule.flips(form.n_columns)
        steps = np.stack([walked.energy[:shown], walked.accepted[:shown] / flips], axis=1)
    return Outcome(task, form.candidates[supports], energies, steps)


def no_steps(work: Work) -> Floats:
    """The course of no chain."""
    return np.empty((0, 2, len(work.schedule) if work.selection.anneals else 0))


def _too_large(work: Work, task: Task, rank: int) -> TooFewColumns:
    what = work.problem.form.what
    where = "the table" if task.fold == ALL_ROWS else f"{numbered('fold', task.fold)} (without its held-out rows)"
    together = " that keep the rules together" if work.problem.limits.ruled else ""
    return TooFewColumns(
        f"size {task.size} was asked for, but {where} has only {rank} linearly independent candidate {what}{together}"
        f"; expected sizes up to {rank}."
    )
