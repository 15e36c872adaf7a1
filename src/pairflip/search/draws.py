"""What `sample`, `temper` and `posterior` share: checked counts, a journal of finished chains, and draws for ArviZ.

A chain is kept when it is finished, one sealed line for each, and an unfinished one is walked again: its random numbers
are addressed, so that it is the same chain. Arrays are kept to the last bit.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.journal_file import Folder, SealedLines, sealed, unsealed
from pairflip.least_squares import Floats
from pairflip.search.effort import is_whole

if TYPE_CHECKING:
    import xarray as xr

    from pairflip.problem import SubsetProblem

Chain = dict[str, NDArray[Any]]
"""What one chain found: arrays by name."""

MOST_CHAINS = 1 << 20
"""Numbers of chains are below this; beyond are addresses of runs of their own, such as that which spaces a ladder."""
BATCHES = 20
"""Parts of each chain whose means give the Monte Carlo error."""
MOST_INDICATORS = 20
"""Columns whose being in or out is told, draw by draw: those that are in most often."""
_KINDS = ("<i4", "<i8", "<f8")


def check_counts(least: int = 1, **counts: Any) -> None:
    """Refuse what is not a whole number of at least so much."""
    for name, value in counts.items():
        if not is_whole(value) or value < least:
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


def frequencies(records: NDArray[Any], n: int) -> tuple[Floats, Floats]:
    """Fractions (n,) of the draws that hold each of n numbers, and their errors from the means of batches.

    `records` (chain, draw, width) has the numbers of every draw; -1 stands for none.
    """
    chains, draws, _ = records.shape
    batches = np.array_split(np.arange(draws), min(BATCHES, draws))
    drawn = [records[chain, batch] for chain in range(chains) for batch in batches]
    means = np.array([np.bincount(numbers[numbers >= 0], minlength=n) / len(numbers) for numbers in drawn])
    sizes = np.array([len(numbers) for numbers in drawn])
    mean = np.average(means, axis=0, weights=sizes)
    spread = np.sqrt(np.average((means - mean) ** 2, axis=0, weights=sizes) / max(len(means) - 1, 1))
    # One draw more or less is the least error that can be claimed of what was always in, or never.
    return mean, np.maximum(spread, 1.0 / (chains * draws))


def as_tree(groups: Mapping[str, Mapping[str, Any]]) -> xr.DataTree:
    """Groups of labelled arrays; each is given by `data_vars`, `coords` and `attrs` of a dataset."""
    try:
        import xarray as xr
    except ImportError:
        raise ImportError("to_datatree needs xarray; install it with: pip install 'pairflip[datatree]'") from None
    return xr.DataTree.from_dict({name: xr.Dataset(**group) for name, group in groups.items()})


def draws_tree(
    series: Mapping[str, NDArray[Any]],
    inside: NDArray[np.bool_],
    columns: Sequence[str],
    numbers: Sequence[int] | NDArray[Any],
    about: Mapping[str, Any],
    stats: Mapping[str, tuple[Sequence[str], Any]],
) -> xr.DataTree:
    """Groups ``posterior`` (what was drawn) and ``sample_stats`` (how), with dims chain and draw.

    `inside` (chain, draw, column) says whether each of the named columns was in.
    """
    from pairflip import __version__

    dims = ("chain", "draw")
    chain_and_draw = {"chain": np.asarray(numbers), "draw": np.arange(inside.shape[1])}
    plain = {name: value for name, value in about.items() if isinstance(value, (int, float, str))}
    attrs = {"inference_library": "pairflip", "inference_library_version": __version__, **plain}
    # Numbers, not truth values: means of them are probabilities, and files of arrays have no truth values.
    drawn = {
        **{name: (dims, values) for name, values in series.items()},
        "included": ((*dims, "column"), inside.astype(np.int8)),
    }
    axes = {name: values for name, (dimensions, values) in stats.items() if list(dimensions) == [name]}
    other_stats = {name: pair for name, pair in stats.items() if name not in axes}
    return as_tree(
        {
            "posterior": {"data_vars": drawn, "coords": {**chain_and_draw, "column": columns}, "attrs": attrs},
            "sample_stats": {"data_vars": other_stats, "coords": {**chain_and_draw, **axes}, "attrs": attrs},
        }
    )
