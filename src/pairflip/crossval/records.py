"""One finished chain as one line of a journal, sealed so that a changed byte or another run's line shows.

A line is a JSON object; its last entry, ``check``, is a hash of all bytes before it, keyed with the run that the
chain belongs to (`run_key`). So a line proves by itself that it is whole and that it is of this data and settings,
whatever happened to the manifest or to the names of files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

from pairflip.crossval.tasks import ALL_ROWS
from pairflip.crossval.walks import Outcome

Address = tuple[int, int, int]
"""(size, fold, chain)"""

_BYTES = 6  # of a check: one changed line in 3e14 would pass
_CHECK = b',"check":"'
_SEAL = len(_CHECK) + 2 * _BYTES + len(b'"}')


class Chain(NamedTuple):
    """What one chain found; `steps` is its course (energies and acceptances), kept for some final fits."""

    address: Address
    support: list[int]
    energy: float
    steps: list[list[float]] | None


def run_key(identity: dict[str, Any]) -> bytes:
    """A digest of data and settings; two runs that may share their chains have the same."""
    return sha256(json.dumps(identity, sort_keys=True).encode()).digest()


def chains_of(outcome: Outcome) -> Iterator[Chain]:
    """A task's chains, one by one."""
    task = outcome.task
    supports, energies, steps = outcome.supports.tolist(), outcome.energies.tolist(), outcome.steps.tolist()
    for i, chain in enumerate(range(task.first, task.last)):
        course = steps[i] if i < len(steps) else None
        yield Chain((task.size, task.fold, chain), supports[i], energies[i], course)


def to_line(chain: Chain, key: bytes) -> bytes:
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
    body = json.dumps(record, separators=(",", ":")).encode()[:-1]
    return body + _CHECK + _seal(body, key) + b'"}'


def from_line(line: bytes, key: bytes) -> Chain | None:
    """The chain of a line, or None if the line is damaged or of another run."""
    body, seal = line[:-_SEAL], line[-_SEAL:]
    if seal != _CHECK + _seal(body, key) + b'"}':
        return None
    try:
        record = json.loads(body + b"}")
        fold = ALL_ROWS if record["fold"] is None else record["fold"]
        address = (record["size"], fold, record["chain"])
        return Chain(address, record["support"], record["energy"], record.get("steps"))
    except (ValueError, KeyError, TypeError):
        return None


def _seal(body: bytes, key: bytes) -> bytes:
    return blake2b(body, key=key, digest_size=_BYTES).hexdigest().encode()
