"""The loop: tasks are handed out, and what comes back goes to the journal first and then into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pairflip.search.best_subset import BY_COLUMNS
from pairflip.selection.hands import Hands
from pairflip.selection.journal import Found, Journal
from pairflip.selection.progress import SelectionProgress, Show
from pairflip.selection.tasks import Tasks, Work, identity, missing

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

    def notes(self, hands: Hands) -> list[str]:
        """What a reader of the result should know about how it was computed."""
        notes = list(self.work.notes)
        if not self.work.problem.form.dense and self.work.problem.loss.quadratic:
            notes.append(BY_COLUMNS)
        return notes + hands.notes(self.work) + ([] if self.book is None else self.book.notes)


def open_job(
    stack: ExitStack,
    work: Work,
    folder: Folder | None,
    shard: tuple[int, int] = (1, 1),
    whose: dict[str, Any] | None = None,
) -> RunningJob:
    """What is to be done of a grid, and what its journal holds already."""
    book = None
    if folder is not None:
        part = f"ridge {work.problem.shrinkage!r}" if work.selection.ridges else None
        book = stack.enter_context(Journal(folder, identity(work) if whose is None else whose, part))
    found = Found() if book is None else book.read(work)
    return RunningJob(work, folder, book, found, missing(work, found.done, shard))


def walk_jobs(
    stack: ExitStack, jobs: Sequence[RunningJob], hands: Hands, progress: Show
) -> Iterator[int]:  # fmt: skip
    """Do the tasks of all jobs, and name each job when its last chain is in; progress is shown if there is only one."""
    left = [job.left for job in jobs]
    show = None
    if len(jobs) == 1:
        job = jobs[0]
        show = stack.enter_context(
            SelectionProgress(job.work, job.tasks, job.found, progress, job.folder, hands.n_jobs)
        )
    for index, outcomes in hands.outcomes([(job.work, job.tasks) for job in jobs], None if show is None else show.tick):
        job = jobs[index]
        if job.book is not None:  # on disk first
            job.book.write(outcomes)
        for outcome in outcomes:
            job.found.add(outcome)
        if show is not None:
            show.advance(outcomes)
        left[index] -= sum(outcome.n_chains for outcome in outcomes)
        if left[index] == 0:
            if job.book is not None:
                job.book.close()  # what became of it belongs into the notes of the result
            yield index
