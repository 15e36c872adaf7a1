"""What `n_jobs` means: threads of this process, or the workers of whatever joblib is configured for."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def check_jobs(n_jobs: Any) -> None:
    """Refuse what is not a number of workers."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs is {n_jobs!r}; expected a number of threads, -1 for all cores, or None for one.")


def local_threads(n_jobs: int | None) -> int:
    """Threads of this process for `n_jobs`: None is one, -1 all cores."""
    check_jobs(n_jobs)
    if n_jobs is None or n_jobs > 0:
        return 1 if n_jobs is None else int(n_jobs)
    from joblib import cpu_count

    return max(1, int(cpu_count()) + 1 + int(n_jobs))


def workers(n_jobs: int | None) -> int:
    """How many tasks are worked on at a time: threads here, or those of a cluster."""
    from joblib import cpu_count, effective_n_jobs
    from joblib.parallel import get_active_backend

    count = max(1, int(effective_n_jobs(n_jobs)))
    here = getattr(get_active_backend(prefer="threads")[0], "uses_threads", False)
    return min(count, int(cpu_count())) if here else count
