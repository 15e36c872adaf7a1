"""The loop: tasks are handed out, and what comes back goes to the journal first and then into memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pairflip.search.annealing import BY_COLUMNS
from pairflip.selection.hands import Hands
from pairflip.selection.journal import Found, Journal
from pairflip.selection.many_folds import AnyOutcome, FoldsOutcome
from pairflip.selection.progress import SelectionProgress, Show
from pairflip.selection.tasks import ALL_ROWS, Tasks, Work, identity, missing

Folder = str | os.PathLike[str]


@dataclass
class RunningJob:
    """One problem on its way: what is known, what remains, and where it is kept."""

    work: Work
    folder: Folder | None
    book: Journal | None
    found: Found
    tasks: Tasks

    @property
    def left(self) -> int:
        """Chains that remain."""
        return self.tasks.chains

    def has_final(self, size: int) -> bool:
        """Whether all chains of the final fit of a size are there."""
        known = sum(piece.n_chains for piece in self.found.pieces.get((size, ALL_ROWS), ()))
        return known == self.work.chains_of(size, ALL_ROWS)

    def notes(self, hands: Hands) -> list[str]:
        """What a reader of the result should know about how it was computed."""
        notes = list(self.work.notes)
        if not self.work.problem.gram.dense and self.work.problem.loss.quadratic:
            notes.append(BY_COLUMNS)
        return notes + hands.notes(self.work) + ([] if self.book is None else self.book.notes)


def open_job(
    stack: ExitStack,
    work: Work,
    folder: Folder | None,
    shard: tuple[int, int] = (1, 1),
    whose: dict[str, Any] | None = None,
) -> RunningJob:
    """What is to be done of a grid, and what its journal holds already.

    Parameters
    ----------
    stack : ExitStack
        Closes the journal.
    work : Work
        The grid.
    folder : path or None
        Of the journal; None: nothing is kept.
    shard : (part, of)
        Which part of the grid.
    whose : dict, optional
        What the journal's manifest says; by default the `identity` of the work.
    """
    book = None
    if folder is not None:
        part = f"ridge {work.problem.shrinkage!r}" if work.selection.ridges else None
        book = stack.enter_context(Journal(folder, identity(work) if whose is None else whose, part))
    found = Found() if book is None else book.read(work)
    return RunningJob(work, folder, book, found, missing(work, found.done, shard))


def walk_jobs(
    stack: ExitStack, jobs: Sequence[RunningJob], hands: Hands, progress: Show,
    early: Callable[[int, int], None] = lambda _job, _size: None,
) -> Iterator[int]:  # fmt: skip
    """Do the tasks of all jobs, and name each job when its last chain is in; progress is shown if there is only one.

    Parameters
    ----------
    stack : ExitStack
        Ends the display.
    jobs : sequence of RunningJob
        What is to be done.
    hands : Hands
        Who does it.
    progress
        As in `select_size`.
    early : callable
        Is told job and size where all folds of a size come at once, when its final fit is there, too, and before the
        job is done.
    """
    left = [job.left for job in jobs]
    all_folds: set[tuple[int, int]] = set()
    show = None
    if len(jobs) == 1:
        job = jobs[0]
        show = stack.enter_context(
            SelectionProgress(job.work, job.tasks, job.found, progress, job.folder, hands.n_jobs)
        )
    for index, outcomes in hands.outcomes([(job.work, job.tasks) for job in jobs], None if show is None else show.tick):
        _take(jobs[index], outcomes)
        for outcome in outcomes:
            size = outcome.size if isinstance(outcome, FoldsOutcome) else outcome.task.size
            if isinstance(outcome, FoldsOutcome) and outcome.covers(jobs[index].work):
                all_folds.add((index, size))
            if (index, size) in all_folds and jobs[index].has_final(size):
                all_folds.remove((index, size))
                early(index, size)
        if show is not None:
            show.advance(outcomes)
        left[index] -= sum(outcome.n_chains for outcome in outcomes)
        if left[index] == 0:
            book = jobs[index].book
            if book is not None:
                book.close()  # what became of it belongs into the notes of the result
            yield index


def _take(job: RunningJob, outcomes: Sequence[AnyOutcome]) -> None:
    """Keep what was found, on disk first."""
    if job.book is not None:
        job.book.write(outcomes)
    for outcome in outcomes:
        if isinstance(outcome, FoldsOutcome):
            job.found.many.add(outcome)
        else:
            job.found.add(outcome)
