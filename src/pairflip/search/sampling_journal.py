"""Sampling that resumes: finished chains of `sample`, `temper` and `posterior` in a journal.

A chain is kept when it is finished, one sealed line for each, and an unfinished one is walked again: its random numbers
are addressed, so that it is the same chain. Arrays are kept to the last bit.
"""

from __future__ import annotations

import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.journal_file import SealedLines, sealed, unsealed

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem

Folder = str | os.PathLike[str]
Chain = dict[str, NDArray[Any]]
"""What one chain found: arrays by name."""

MOST_CHAINS = 1 << 20
"""Numbers of chains are below this; beyond are addresses of runs of their own, such as that which spaces a ladder."""
_KINDS = ("<i4", "<i8", "<f8")


def check_counts(least: int = 1, **counts: Any) -> None:
    """Refuse what is not a whole number of at least so much."""
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} is {value!r}; expected a whole number, at least {least}.")


def before_counting(sweeps: int, burn_in: Any) -> int:
    """Sweeps before those that count, a fifth of these unless given."""
    before = sweeps // 5 if burn_in is None else burn_in
    check_counts(least=0, burn_in=before)
    return int(before)


def chain_numbers(chains: Any, first_chain: Any) -> list[int]:
    """Numbers of the chains to walk, checked: those of a shard begin with `first_chain`."""
    check_counts(chains=chains)
    check_counts(least=0, first_chain=first_chain)
    if first_chain + chains > MOST_CHAINS:
        raise ValueError(
            f"chains go up to number {first_chain + chains - 1:,}; expected numbers below {MOST_CHAINS:,}: use a "
            "smaller first_chain, or another seed."
        )
    return list(range(int(first_chain), int(first_chain + chains)))


def chain_settings(problem: SubsetProblem, run: str, **settings: Any) -> dict[str, Any]:
    """All that the chains of a sampling depend on apart from their numbers: what runs, data, model, how they walk."""
    return {
        "run": run,
        "data": problem.hash,
        "rows": problem.n_rows,
        "columns": problem.n_columns,
        "center": problem.center,
        "always": [problem.names[j] for j in problem.always],
        "ridge": problem.ridge,
        "shrinkage": problem.shrinkage,
        **settings,
    }


def walk_missing(
    numbers: Sequence[int],
    walk: Callable[[Sequence[int]], list[Chain]],
    settings: dict[str, Any],
    journal: Folder | None,
    at_once: int,
) -> tuple[list[Chain], str]:
    """What the chains of these numbers found, in their order, and what to know about the journal."""
    if journal is None:
        return walk(numbers), ""
    with SamplingJournal(journal, settings) as book:
        chains = book.read(numbers)
        missing = [number for number in numbers if number not in chains]
        for first in range(0, len(missing), at_once):
            part = missing[first : first + at_once]
            walked = dict(zip(part, walk(part), strict=True))
            book.write(walked)
            chains |= walked
    return [chains[number] for number in numbers], "; ".join(book.notes)


class SamplingJournal(SealedLines):
    """Chains by their number, in the journal of a sampling."""

    def read(self, numbers: Sequence[int]) -> dict[int, Chain]:
        """Those of these chains that are there; lines that cannot be used are counted."""
        chains: dict[int, Chain] = {}
        wanted, self.dropped = set(numbers), 0
        for line in self.lines():
            record = unsealed(line, self._key)
            if record is None:
                self.dropped += 1
            elif record["chain"] in wanted:
                chains[record["chain"]] = {name: _unpacked(value) for name, value in record["arrays"].items()}
        return chains

    def write(self, chains: dict[int, Chain]) -> None:
        """Append finished chains."""
        self.append(
            sealed({"chain": number, "arrays": {name: _packed(value) for name, value in chain.items()}}, self._key)
            for number, chain in chains.items()
        )


def _packed(values: NDArray[Any]) -> dict[str, Any]:
    """An array for JSON: its kind and shape, and its bytes (little endian, deflated, base64)."""
    kind = next(k for k in _KINDS if np.dtype(k) == values.dtype)
    data = b64encode(zlib.compress(values.astype(kind).tobytes(), 1)).decode()
    return {"kind": kind, "shape": list(values.shape), "data": data}


def _unpacked(packed: dict[str, Any]) -> NDArray[Any]:
    """The array again; a sealed line has not changed since it was written."""
    kind = np.dtype(packed["kind"])
    values = np.frombuffer(zlib.decompress(b64decode(packed["data"])), kind).reshape(packed["shape"])
    return values.astype(kind.newbyteorder("="))
