"""Tables that come in parts: blocks of rows from a file or a program, or partitions of Dask, become moments."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile
from zlib import crc32

import numpy as np

from pairflip.blas import one_blas_thread
from pairflip.blocks import Moments, Reader, Rows, SampledRows, begin, in_parts, joined
from pairflip.jobs import local_threads
from pairflip.journal_file import Folder, JournalError, claim, clear_errors
from pairflip.progress import progress_bar
from pairflip.text import plural, quoted

IN_MEMORY = 2**24
"""Numbers: a table that has no more is kept as it is."""
_ACCUMULATORS = 8  # sums side by side; the same for any number of threads, so that their rounding is the same
_ACCUMULATOR_BYTES = 128 * 2**20
_SAVED_SECONDS = 20.0
_SUMS = "moments.npz"
_TREE = 8  # partitions of Dask whose moments are added in one task


def sum_blocks(
    blocks: Iterable[Any],
    reader: Reader,
    *,
    folds: int,
    seed: int,
    in_memory: int = IN_MEMORY,
    missing: str = "refuse",
    n_jobs: int | None = None,
    journal: Folder | None = None,
    about: Any = None,
    progress: bool | None = False,
) -> tuple[Moments | Rows, dict[str, int]]:
    """Moments of all blocks, in one pass, and what was missing; a table of few numbers is returned as it is.

    Rows are put together in parts of equal size before they are summed, so that nothing depends on how they were cut.
    With a journal, known by what it is `about`, sums are saved every 20 seconds, and a run that was stopped begins
    where they end.
    """
    stream = map(reader.read, blocks)
    kept, numbers = list[Rows](), 0
    for rows in stream:
        if rows.size:
            kept.append(rows)
            numbers += rows.size * len(rows.columns)
        if numbers > max(in_memory, first_rows(len(rows.columns)) * len(rows.columns)):
            break
    if not kept:
        raise ValueError("the blocks have no rows; expected at least two.")
    if numbers <= in_memory:
        return finite_rows(joined(kept), [*reader.columns, *reader.targets], missing)
    head = joined(kept).some(slice(first_rows(len(kept[0].columns))))
    start = begin(head, reader.columns, reader.targets, folds, seed, sampled=True)
    with ExitStack() as stack:
        bar = stack.enter_context(progress_bar("reading rows", None, progress))
        stack.enter_context(one_blas_thread())
        folder = None if journal is None else Path(journal)
        sums = stack.enter_context(Accumulators(start, local_threads(n_jobs), missing, folder, about))
        row, began = 0, time.perf_counter()
        released = (kept.pop(0) for _ in range(len(kept)))
        for parts in in_parts(chain(released, stream), start.step):
            size = sum(rows.size for rows in parts)
            sums.add(parts, row, size)
            row += size
            if bar is not None:
                bar.say(f"{row:,} rows, {row / max(1e-9, time.perf_counter() - began):,.0f} a second")
                bar(size)
        total = sums.total()
    return total, total.missing


def finite_rows(rows: Rows, names: Sequence[str], missing: str) -> tuple[Rows, dict[str, int]]:
    """The rows without missing or infinite values, and how many values each column lacked."""
    known = [np.isfinite(np.asarray(values, dtype=np.float64)) for values in rows.columns]
    finite = np.logical_and.reduce(known)
    if finite.all():
        return rows, {}
    counts = {"": int(np.count_nonzero(~finite))}
    counts |= {name: int(np.count_nonzero(~each)) for name, each in zip(names, known, strict=True) if not each.all()}
    check_missing(counts, missing)
    weight = None if rows.weight is None else rows.weight[finite]
    return Rows([values[finite] for values in rows.columns], weight), counts


def check_missing(counts: Mapping[str, int], missing: str) -> None:
    """Refuse missing values unless rows that have some are to be left out."""
    if missing not in ("refuse", "drop-rows"):
        raise ValueError(f"missing is {missing!r}; expected 'refuse' or 'drop-rows'.")
    if missing == "refuse" and counts:
        lost = [(count, name) for name, count in counts.items() if name]
        count, name = max(lost)
        more = f" and in {plural(len(lost) - 1, 'other column')}" if len(lost) > 1 else ""
        raise ValueError(
            f"column {quoted(name)} is missing or infinite in {plural(count, 'row')} of those read so far{more}; "
            "expected numbers: leave out such rows (missing='drop-rows', --missing drop-rows), or these columns."
        )


def first_rows(n_columns: int) -> int:
    """How many rows decide on origin, scale and kind of the sums; the same however the table is cut."""
    return int(np.clip(2**22 // n_columns, 1000, 20_000))


class Accumulators:
    """Several sums side by side: part i goes to sum i modulo their number, in turn, whatever the number of threads."""

    def __init__(self, start: Moments, threads: int, missing: str, folder: Path | None, about: Any) -> None:
        lanes = int(np.clip(_ACCUMULATOR_BYTES // max(1, start.products.nbytes), 1, _ACCUMULATORS))
        self._sums = [start.empty() for _ in range(lanes)]
        self._turns = [ThreadPoolExecutor(1) for _ in range(lanes)]
        self._running: deque[Future[None]] = deque()
        self._threads, self._missing, self._folder, self._step = threads, missing, folder, start.step
        self._done = self._next = 0  # rows in the file of the journal, and rows given so far
        self._seen, self._saved_seen = [0, 0], [0, 0]  # checksums of the first column and of the target in these rows
        self._saved = time.monotonic()
        if folder is not None:
            self._resume(start, folder, about)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for turn in self._turns:
            turn.shutdown(cancel_futures=True)

    def _resume(self, start: Moments, folder: Path, about: Any) -> None:
        """Take up the sums of a journal of the same table."""
        claim(folder, {
            "kind": "moments", "columns": len(start.names), "targets": list(start.target_names), "folds": start.folds,
            "seed": start.seed, "first rows": [float(value).hex() for value in start.shift[:20]], "step": start.step,
            "table": about,
        })  # fmt: skip
        if not (folder / _SUMS).exists():
            return
        try:
            with np.load(folder / _SUMS, allow_pickle=False) as file:
                rows, products, done, seen = file["rows"], file["products"], int(file["done"]), file["seen"].tolist()
                missing = dict(zip(file["missing"].tolist(), file["lost"].tolist(), strict=True))
                sample = SampledRows(*(file[f"sample_{name}"] for name in SampledRows._fields))
            if rows.shape != (len(self._sums), start.rows.size):
                raise ValueError("shape")
        except (ValueError, KeyError, OSError, EOFError, BadZipFile):
            return  # a damaged file: everything is read again
        self._sums = [replace(start.empty(), rows=r, products=p) for r, p in zip(rows, products, strict=True)]
        self._sums[0] = replace(self._sums[0], missing=missing)
        if self._sums[0].sample is not None:
            self._sums[0].sample.add(sample)
        self._done, self._saved_seen = done, seen

    def add(self, parts: Sequence[Rows], first_row: int, size: int) -> None:
        """Sum so many rows as soon as a thread is free, unless the journal has them."""
        self._next = first_row + size
        if self._folder is not None:
            for rows in parts:
                for at, values in enumerate((rows.columns[0], rows.columns[-1])):
                    self._seen[at] = crc32(np.asarray(values, dtype=np.float64).tobytes(), self._seen[at])
        if first_row < self._done:
            self._check_journal()
            return
        while len(self._running) >= self._threads:
            self._running.popleft().result()
        check_missing(_all_missing(self._sums), self._missing)
        lane = first_row // self._step % len(self._sums)
        self._running.append(self._turns[lane].submit(self._sums[lane].collect, parts, first_row))
        if self._folder is not None and time.monotonic() - self._saved > _SAVED_SECONDS:
            self._save(self._folder)

    def _check_journal(self, ended: bool = False) -> None:
        """Refuse a journal whose rows are not those that were read again."""
        if (self._next == self._done and self._seen != self._saved_seen) or (ended and self._next < self._done):
            raise JournalError(
                f"journal {str(self._folder)!r} holds sums of {self._done:,} other rows; expected the same table to "
                "resume: name another folder, or remove this one."
            )

    def _wait(self) -> None:
        while self._running:
            self._running.popleft().result()

    def _save(self, folder: Path) -> None:
        """Write the sums of all rows so far; the file of the journal is replaced as a whole."""
        self._wait()
        missing, samples = _all_missing(self._sums), [each.sample for each in self._sums if each.sample is not None]
        sample = reduce(add, samples).rows()._asdict()
        with clear_errors(folder):
            part = folder / f"{_SUMS}.{os.getpid()}.part"
            try:
                with part.open("wb") as file:
                    np.savez(
                        file, rows=np.stack([each.rows for each in self._sums]),
                        products=np.stack([each.products for each in self._sums]), done=np.int64(self._next),
                        seen=np.array(self._seen, dtype=np.int64),
                        missing=np.array(list(missing), dtype=str), lost=np.array(list(missing.values()), np.int64),
                        **{f"sample_{name}": values for name, values in sample.items()},
                    )  # fmt: skip
                part.replace(folder / _SUMS)
            finally:
                part.unlink(missing_ok=True)
        self._saved = time.monotonic()

    def total(self) -> Moments:
        """The sum of all."""
        self._wait()
        check_missing(_all_missing(self._sums), self._missing)
        self._check_journal(ended=True)
        if self._folder is not None and self._next > self._done:
            self._save(self._folder)
        return _total([self._sums[0], *(other for other in self._sums[1:] if other.n_rows or other.missing)])


def _all_missing(sums: Sequence[Moments]) -> dict[str, int]:
    return dict(sum((Counter(each.missing) for each in sums), Counter[str]()))


def _total(sums: Sequence[Moments]) -> Moments:
    return reduce(add, sums)


# Dask -----------------------------------------------------------------------------------------------------------------


def is_dask(table: Any) -> bool:
    """Whether a table is a collection of Dask."""
    return hasattr(table, "__dask_graph__") and hasattr(table, "to_delayed")


def sum_partitions(
    X: Any,
    y: Any,
    weights: Any,
    reader: Reader,
    *,
    folds: int,
    seed: int,
    in_memory: int = IN_MEMORY,
    missing: str = "refuse",
) -> tuple[Moments | Rows, dict[str, int]]:
    """Moments of a data frame or an array of Dask, partition by partition on its workers.

    Nothing but moments and a sample of the rows travels, added in a tree, unless the table has at most `in_memory`
    numbers. A partition of a worker that was lost is summed again by Dask.
    """
    from importlib import import_module

    dask = import_module("dask")
    parts = [table if table is None else _partitions(table) for table in (X, y, weights)]
    number = len(parts[0] or ())
    if any(part is not None and len(part) != number for part in parts):
        raise ValueError("X, y and weights are cut into different numbers of partitions; expected the same ones.")
    given = [tuple(part[i] for part in parts if part is not None) for i in range(number)]
    blocks = [each[0] if y is None else each for each in given]
    length = dask.delayed(_length, pure=True)
    sizes = dask.compute(*[length(each) for each in blocks])
    used = [i for i, size in enumerate(sizes) if size]
    if not used:
        raise ValueError("the table has no rows; expected at least two.")
    ((head, reader.columns, reader.targets),) = dask.compute(dask.delayed(_head)(reader, blocks[used[0]]))
    if sum(sizes) * len(head.columns) <= in_memory:
        read = dask.delayed(_read)
        rows = joined(dask.compute(*[read(reader, blocks[i], i) for i in used]))
        return finite_rows(rows, [*reader.columns, *reader.targets], missing)
    start = begin(head, reader.columns, reader.targets, folds, seed, sampled=True)
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    sum_partition, total = dask.delayed(_sum_partition), dask.delayed(_total)
    sums = [sum_partition(reader, start, blocks[i], i, starts[i]) for i in used]
    while len(sums) > 1:
        sums = [total(sums[i : i + _TREE]) for i in range(0, len(sums), _TREE)]
    (moments,) = dask.compute(sums[0])
    assert isinstance(moments, Moments)
    check_missing(moments.missing, missing)
    return moments, moments.missing


def _partitions(table: Any) -> list[Any]:
    """The parts of a collection, each with all columns."""
    if hasattr(table, "rechunk") and table.ndim == 2:
        table = table.rechunk({1: -1})
    return list(np.ravel(table.to_delayed()))


def _length(block: Any) -> int:
    return len(block[0] if isinstance(block, tuple) else block)


def _head(reader: Reader, block: Any) -> tuple[Rows, Sequence[str], Sequence[str]]:
    rows = reader.read(block)
    return rows.some(slice(first_rows(len(rows.columns)))), reader.columns, reader.targets


def _read(reader: Reader, block: Any, number: int) -> Rows:
    reader.number = number
    return reader.read(block)


def _sum_partition(reader: Reader, start: Moments, block: Any, number: int, first_row: int) -> Moments:
    return start.summed(_read(reader, block, number), first_row)
