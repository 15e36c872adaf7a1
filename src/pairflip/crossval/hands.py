"""Who does the work: threads, whatever joblib is configured for, or a device. All take tasks and yield outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from pairflip.crossval.device import Device, find_device
from pairflip.crossval.parallel import run_all
from pairflip.crossval.tasks import Job, Work
from pairflip.crossval.walks import Outcome
from pairflip.engines import Tick, get_engine


class Hands(Protocol):
    """What hands out tasks.

    Attributes
    ----------
    name : str
        Of the engine that walks.
    n_jobs : int or None
        Threads or workers that do the tasks; 0 is a device, whose time is not foreseen.
    """

    name: str
    n_jobs: int | None

    def notes(self, work: Work) -> list[str]:
        """What a reader should know of how these tasks are done."""
        ...

    def outcomes(self, jobs: Sequence[Job], tick: Tick | None) -> Iterator[tuple[int, list[Outcome]]]:
        """(job, outcomes) of all tasks, as they are finished, in any order."""
        ...


class Workers:
    """Threads of this process, or whatever joblib is configured for: processes, Dask, Ray."""

    def __init__(self, name: str, n_jobs: int | None) -> None:
        self.name, self.n_jobs = name, n_jobs

    def notes(self, work: Work) -> list[str]:
        """Nothing out of the ordinary."""
        return []

    def outcomes(self, jobs: Sequence[Job], tick: Tick | None) -> Iterator[tuple[int, list[Outcome]]]:
        """The jobs one after the other, each by all workers."""
        for index, (work, tasks) in enumerate(jobs):
            for outcomes in run_all(work, tasks, self.n_jobs):
                yield index, outcomes


def choose_hands(works: Sequence[Work], n_jobs: int | None) -> Hands:
    """A device if that is what was asked for ("auto": if it pays), else workers; `works` have tasks left to do."""
    device = find_device(works[0].engine, works) if works else None
    if device is not None:
        return Device(device, n_jobs)
    name = get_engine(works[0].engine).name if works else ""
    return Workers(name, n_jobs)
