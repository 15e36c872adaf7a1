"""Wide tables: whether a device computes the inner products that descents on the CPU ask for."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pairflip.engines import Engine, get_engine
from pairflip.gram import Gram


@runtime_checkable
class LendsRows(Protocol):
    """An engine that can compute rows of the matrix of a wide problem for another one."""

    def lend_rows(self, gram: Gram) -> bool:
        """Have them computed from now on; False where that cannot be done."""
        ...


def lend_rows(engine: str | Engine, walker: Engine, gram: Gram) -> bool:
    """Have a device compute rows of the matrix of a wide problem: where it was asked for, or is there and pays.

    Parameters
    ----------
    engine, walker
        What was asked for, and the engine of that name.
    gram
        The problem.
    """
    if gram.dense or gram.objective != "energy":
        return False
    if engine == "auto":
        from pairflip.engines.cuda import WORTH_ENTRIES, why_unavailable

        if gram.n_rows * gram.n_columns < WORTH_ENTRIES or why_unavailable() is not None:
            return False
        walker = get_engine("cuda")
    return isinstance(walker, LendsRows) and walker.lend_rows(gram)
