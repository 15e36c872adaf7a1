"""Lines of a journal: what one chain found, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pairflip.sealed import sealed, unsealed
from pairflip.selection.tasks import ALL_ROWS
from pairflip.selection.walks import Outcome

Address = tuple[int, int, int]
"""(size, fold, chain)"""


class ChainRecord(NamedTuple):
    """What one chain found; `steps` is its course (energies and acceptances), kept for some final fits."""

    address: Address
    support: list[int]
    energy: float
    steps: list[list[float]] | None


def chains_of(outcome: Outcome) -> Iterator[ChainRecord]:
    """A task's chains, one by one."""
    task = outcome.task
    supports, energies, steps = outcome.supports.tolist(), outcome.energies.tolist(), outcome.steps.tolist()
    for i, chain in enumerate(range(task.first, task.last)):
        course = steps[i] if i < len(steps) else None
        yield ChainRecord((task.size, task.fold, chain), supports[i], energies[i], course)


def to_line(chain: ChainRecord, key: bytes) -> bytes:
    """The line of a chain, without its line end."""
    size, fold, number = chain.address
    record: dict[str, Any] = {
        "size": size,
        "fold": None if fold == ALL_ROWS else fold,
        "chain": number,
        "support": chain.support,
        "energy": chain.energy,
    }
    if chain.steps is not None:
        record["steps"] = chain.steps
    return sealed(record, key)


def from_line(line: bytes, key: bytes) -> ChainRecord | None:
    """The chain of a line, or None if the line is damaged or belongs to another run."""
    record = unsealed(line, key)
    if record is None:
        return None
    try:
        fold = ALL_ROWS if record["fold"] is None else record["fold"]
        address = (record["size"], fold, record["chain"])
        return ChainRecord(address, record["support"], record["energy"], record.get("steps"))
    except (KeyError, TypeError):
        return None
