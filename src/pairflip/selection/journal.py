"""Work in progress on disk: an append-only journal that a killed run resumes from.

A journal is a folder: ``manifest.json`` says which data and settings it belongs to, and every process that works on it
appends to a ``tasks-*.jsonl`` file of its own, one line per chain. Nothing in it is taken on trust: a line that
was cut off, was changed or belongs to another run does not carry its seal, and a sealed one must still have the
energy that its support has in its fold. The chain of a line that is not used is walked again, with the same
result.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.blas import one_blas_thread
from pairflip.least_squares import Floats
from pairflip.selection.manifest import (
    JournalError,
    check_same,
    claim,
    clear_errors,
    read_manifest,
    refuse_files,
    sync_folder,
)
from pairflip.selection.many_folds import AnyOutcome, ManyFolds
from pairflip.selection.tasks import ALL_ROWS, Task, Work
from pairflip.selection.walks import Outcome, gram_of
from pairflip.text import plural

__all__ = ["Found", "Journal", "JournalError", "JournalWarning", "merge_journals"]

_SYNC_SECONDS = 2.0
_ROUNDING = 1e-8
"""As a fraction of y'y: energies of one support computed in two ways, or on two machines, differ by less than this."""


class JournalWarning(UserWarning):
    """A run goes on, but its journal cannot be kept."""


@dataclass
class Found:
    """What is known so far: for every (size, fold, chain) its support and energy, and the course of some."""

    pieces: dict[tuple[int, int], list[Outcome]] = field(default_factory=dict)
    many: ManyFolds = field(default_factory=ManyFolds)
    steps: dict[Address, list[list[float]]] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        """Take in what a task found."""
        size, fold, first, _ = outcome.task
        self.pieces.setdefault((size, fold), []).append(outcome)
        for chain, course in enumerate(outcome.steps, start=first):
            self.steps[size, fold, chain] = course.tolist()

    def put(self, chain: ChainRecord) -> None:
        """Take in one chain."""
        size, fold, number = chain.address
        supports, energies = np.array([chain.support], dtype=np.int64), np.array([chain.energy])
        piece = Outcome(Task(size, fold, number, number + 1), supports, energies, np.empty((0, 2, 0)))
        self.pieces.setdefault((size, fold), []).append(piece)
        if chain.steps is not None:
            self.steps[chain.address] = chain.steps

    def clear(self) -> None:
        """Forget everything."""
        self.pieces.clear()
        self.many.clear()
        self.steps.clear()

    @property
    def done(self) -> set[Address]:
        """Addresses of the finished chains."""
        self.many.take_apart(self.pieces)
        return {
            (size, fold, chain)
            for (size, fold), pieces in self.pieces.items()
            for piece in pieces
            for chain in range(piece.task.first, piece.task.last)
        }

    def cell(self, size: int, fold: int, chains: int) -> tuple[NDArray[np.int64], Floats]:
        """Supports (chains, k) and energies (chains,) of one size in one fold.

        Parameters
        ----------
        size, fold : int
            Which cell; fold `ALL_ROWS` is the final fit.
        chains : int
            How many chains it has.
        """
        supports, energies = self.cells(size, (fold,), chains)
        return supports[0], energies[0]

    def cells(self, size: int, folds: Sequence[int], chains: int) -> tuple[NDArray[np.int64], Floats]:
        """Supports (F, chains, k) and energies (F, chains) of one size in some folds.

        Parameters
        ----------
        size : int
            Which size.
        folds : sequence of int
            Which folds.
        chains : int
            How many chains each has.
        """
        together = self.many.cells(size, folds, chains)
        if together is not None:
            return together
        self.many.take_apart(self.pieces, size, folds)
        pieces = [piece for fold in folds for piece in _in_order(self.pieces[size, fold], chains)]
        supports, energies = (np.concatenate(parts) for parts in zip(*((p[1], p[2]) for p in pieces), strict=True))
        return supports.reshape(len(folds), chains, size), energies.reshape(len(folds), chains)


def _in_order(pieces: list[Outcome], chains: int) -> list[Outcome]:
    """Pieces in the order of their chains, each chain once (a journal may hold it twice)."""
    if len(pieces) == 1 and pieces[0].energies.size == chains:
        return pieces
    known = {
        chain: piece._replace(supports=piece.supports[i : i + 1], energies=piece.energies[i : i + 1])
        for piece in pieces
        for i, chain in enumerate(range(piece.task.first, piece.task.last))
    }
    return [known[chain] for chain in range(chains)]


class Journal:
    """The journal in `folder` of a run with this `identity` (settings and data hash); made if there is none.

    Where a run has several parts, each has files of its own, known by the `part` in their key.
    """

    def __init__(self, folder: str | os.PathLike[str], identity: dict[str, Any], part: str | None = None) -> None:
        self.folder = Path(folder)
        self._place = self.folder.absolute()  # the caller may change the current folder
        self.dropped = 0
        self.lost = False
        self._key = run_key(identity if part is None else {**identity, "part": part})
        self._files = "tasks-*.jsonl" if part is None else f"tasks-{self._key.hex()[:8]}-*.jsonl"
        self._file: Any = None
        self._synced = time.monotonic()
        claim(self.folder, identity)

    @property
    def notes(self) -> list[str]:
        """What a reader of the result should know about its journal."""
        notes = []
        if self.dropped:
            lines = plural(self.dropped, "line")
            notes.append(
                f"{lines} of the journal dropped (damaged, or from another run), and these chains walked again"
            )
        if self.lost:
            notes.append("the journal was removed during the run, which cannot be resumed")
        return notes

    def read(self, work: Work) -> Found:
        """All finished chains of any writer that `work` asks for; lines that cannot be used are counted."""
        found, self.dropped = Found(), 0
        by_fold: dict[int, list[ChainRecord]] = defaultdict(list)
        with clear_errors(self.folder, "read"):
            for line in _lines(self.folder, self._files):
                chain = from_line(line, self._key)
                if chain is None:
                    self.dropped += 1
                elif _asked(chain.address, work):
                    by_fold[chain.address[1]].append(chain)
        for fold, chains in by_fold.items():
            right = _judged(work, fold, chains)
            self.dropped += len(chains) - len(right)
            for chain in right:
                found.put(chain)
        return found

    def write(self, outcomes: Iterable[AnyOutcome]) -> None:
        """Append finished tasks: they survive whatever happens to this process next."""
        if self.lost:
            return
        lines = [to_line(c, self._key) for each in outcomes for piece in each.by_fold() for c in chains_of(piece)]
        with clear_errors(self.folder):
            if self._file is None and not self._open():
                return
            _write_all(self._file, b"\n".join(lines) + b"\n")
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                self._sync()

    def close(self) -> None:
        """Close the file of this writer."""
        if self._file is not None:
            with clear_errors(self.folder):
                self._sync()
                self._file.close()
            self._file = None

    def _open(self) -> bool:
        """Begin this writer's own file; False if the folder is gone."""
        name = f"tasks-{self._key.hex()[:8]}-{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        try:
            self._file = open(self._place / name, "ab", buffering=0)  # noqa: SIM115  (closed by close)
        except (FileNotFoundError, NotADirectoryError):
            self._lose()
            return False
        sync_folder(self._place)
        return True

    def _sync(self) -> None:
        """Put what was written on the disk, and look whether it can still be found there.

        A file that was removed can be written to without an error for as long as it is open.
        """
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()
        try:
            there = os.stat(self._file.name)
        except (FileNotFoundError, NotADirectoryError):
            self._lose()
            return
        if not os.path.samestat(there, os.fstat(self._file.fileno())):
            self._lose()

    def _lose(self) -> None:
        if not self.lost:
            self.lost = True
            warnings.warn(
                f"journal {str(self.folder)!r} was removed or renamed during the run; the run goes on, but it cannot "
                "be resumed.",
                JournalWarning,
                stacklevel=2,
            )

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def merge_journals(
    target: str | os.PathLike[str],
    sources: Iterable[str | os.PathLike[str]],
    identity: dict[str, Any] | None = None,
) -> int:
    """Join the journals of shards into one folder; returns the number of files copied.

    All must be of the same data and settings; otherwise nothing is written. Running it again copies nothing twice.

    Parameters
    ----------
    target : path
        Folder of the joined journal; made if it is not there.
    sources : paths
        Folders of the journals to join.
    identity : dict, optional
        Data and settings that all of them must have, as `identify` gives them; by default those of the first.
    """
    folder, copied = Path(target), 0
    places = [Path(source) for source in ([sources] if isinstance(sources, (str, os.PathLike)) else sources)]
    whose = "this run"
    refuse_files(folder)
    if identity is None and places:
        identity, whose = read_manifest(places[0]), f"journal {str(places[0])!r}"
    if identity is None:
        return 0
    for source in places:
        check_same(source, identity, whose)
    claim(folder, identity, whose)
    for source in places:
        for path in sorted(source.glob("tasks-*.jsonl")):
            there = folder / path.name
            if there.exists() and there.stat().st_size >= path.stat().st_size:
                continue
            with clear_errors(folder):
                part = folder / f".{path.name}.part"
                shutil.copyfile(path, part)
                os.replace(part, there)
            copied += 1
    return copied


def _lines(folder: Path, files: str) -> Iterator[bytes]:
    for path in sorted(folder.glob(files)):
        for line in path.read_bytes().split(b"\n"):
            if line.strip():
                yield line


def _asked(address: Address, work: Work) -> bool:
    """Whether a chain belongs to this run, or to one of the same settings with other sizes or more chains."""
    size, fold, chain = address
    return size in work.sizes and fold < len(work.folds) and chain < work.chains_of(size, fold)


@one_blas_thread()
def _judged(work: Work, fold: int, chains: list[ChainRecord]) -> list[ChainRecord]:
    """The chains of one fold whose energy is that of their support there, by QR; each support is judged once."""
    gram = gram_of(work, fold)
    known: dict[tuple[int, ...], float] = {}

    def energy(support: tuple[int, ...]) -> float:
        if support not in known:
            columns = np.array(support, dtype=np.int64)
            at = np.minimum(gram.positions(columns), gram.n_columns - 1)
            there = (
                gram.n_columns > 0
                and np.array_equal(gram.candidates[at], columns)
                and np.unique(columns).size == columns.size
            )
            known[support] = gram.energy(at) if there else np.nan  # else: not columns to choose from in this fold
        return known[support]

    room = _ROUNDING * gram.yy
    return [chain for chain in chains if abs(energy(tuple(chain.support)) - chain.energy) <= room]


def _write_all(file: Any, data: bytes) -> None:
    """Write every byte; a full disk leaves a broken last line, which the next reader drops."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


Address = tuple[int, int, int]
"""(size, fold, chain)"""

_BYTES = 6  # of a check: one changed line in 3e14 would pass
_CHECK = b',"check":"'
_SEAL = len(_CHECK) + 2 * _BYTES + len(b'"}')


class ChainRecord(NamedTuple):
    """What one chain found; `steps` is its course (energies and acceptances), kept for some final fits."""

    address: Address
    support: list[int]
    energy: float
    steps: list[list[float]] | None


def run_key(identity: dict[str, Any]) -> bytes:
    """A digest of data and settings; two runs that may share their chains have the same digest."""
    return sha256(json.dumps(identity, sort_keys=True).encode()).digest()


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
    body = json.dumps(record, separators=(",", ":")).encode()[:-1]
    return body + _CHECK + _seal(body, key) + b'"}'


def from_line(line: bytes, key: bytes) -> ChainRecord | None:
    """The chain of a line, or None if the line is damaged or belongs to another run."""
    body, seal = line[:-_SEAL], line[-_SEAL:]
    if seal != _CHECK + _seal(body, key) + b'"}':
        return None
    try:
        record = json.loads(body + b"}")
        fold = ALL_ROWS if record["fold"] is None else record["fold"]
        address = (record["size"], fold, record["chain"])
        return ChainRecord(address, record["support"], record["energy"], record.get("steps"))
    except (ValueError, KeyError, TypeError):
        return None


def _seal(body: bytes, key: bytes) -> bytes:
    return blake2b(body, key=key, digest_size=_BYTES).hexdigest().encode()
