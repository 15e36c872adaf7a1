"""Lines of a journal: what one chain found, as JSON."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.sealed import sealed, unsealed
from pairflip.selection.tasks import ALL_ROWS
from pairflip.selection.walks import Outcome

Address = tuple[int, int, int]
"""(size, fold, chain)"""


class ChainRecord(NamedTuple):
    """What one chain found; `steps` is its course (energies and acceptances), kept for some final fits.

    `along`: the steps at whose end it stood at another support than before, and these supports (see `packed`), where
    errors at all temperatures are wanted.
    """

    address: Address
    support: list[int]
    energy: float
    steps: list[list[float]] | None
    along: tuple[list[int], str] | None = None


def chains_of(outcome: Outcome) -> Iterator[ChainRecord]:
    """A task's chains, one by one."""
    task = outcome.task
    supports, energies, steps = outcome.supports.tolist(), outcome.energies.tolist(), outcome.steps.tolist()
    for i, chain in enumerate(range(task.first, task.last)):
        course = steps[i] if i < len(steps) else None
        along = None if outcome.record is None else packed(outcome.record[i])
        yield ChainRecord((task.size, task.fold, chain), supports[i], energies[i], course, along)


def packed(record: NDArray[np.int64]) -> tuple[list[int], str]:
    """The supports (steps, k) of a chain, each once for as long as it stays there: 32-bit numbers in base64."""
    moved = np.concatenate([[0], 1 + np.flatnonzero((record[1:] != record[:-1]).any(axis=1))])
    return moved.tolist(), b64encode(record[moved].astype("<u4").tobytes()).decode()


def unpacked(chain: ChainRecord, steps: int) -> NDArray[np.int64]:
    """The supports (steps, k) at the end of every step of a chain."""
    assert chain.along is not None
    moved, text = chain.along
    supports = np.frombuffer(b64decode(text), "<u4").reshape(len(moved), -1).astype(np.int64)
    return np.repeat(supports, np.diff([*moved, steps]), axis=0)


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
    if chain.along is not None:
        record["along"] = chain.along
    return sealed(record, key)


def from_line(line: bytes, key: bytes) -> ChainRecord | None:
    """The chain of a line, or None if the line is damaged or belongs to another run."""
    record = unsealed(line, key)
    if record is None:
        return None
    try:
        fold = ALL_ROWS if record["fold"] is None else record["fold"]
        address = (record["size"], fold, record["chain"])
        return ChainRecord(address, record["support"], record["energy"], record.get("steps"), record.get("along"))
    except (KeyError, TypeError):
        return None
