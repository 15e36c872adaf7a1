"""Work in progress on disk: an append-only journal that a killed run resumes from.

A journal is a folder: ``manifest.json`` says of which data and settings it is, and every process that works on it
appends to a ``tasks-*.jsonl`` file of its own, one line a chain. A line that was cut off is no line: its
chain is walked again, with the same result.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.crossval.tasks import ALL_ROWS, Task, Work
from pairflip.crossval.walks import Outcome
from pairflip.least_squares import Floats

SCHEMA = 1
MANIFEST = "manifest.json"
_SYNC_SECONDS = 2.0


class JournalError(ValueError):
    """A journal cannot be used as asked."""


@dataclass
class Found:
    """What is known so far: for every (size, fold, chain) its support and energy, and the course of some."""

    supports: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)
    energies: dict[tuple[int, int, int], float] = field(default_factory=dict)
    steps: dict[tuple[int, int, int], list[list[float]]] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        """Take in what a task found."""
        for address, support, energy, steps in _chains(outcome):
            self.put(address, support, energy, steps)

    def put(
        self, address: tuple[int, int, int], support: list[int], energy: float, steps: list[list[float]] | None
    ) -> None:
        """Take in one chain."""
        self.supports[address] = support
        self.energies[address] = energy
        if steps is not None:
            self.steps[address] = steps

    def clear(self) -> None:
        """Forget everything."""
        for known in (self.supports, self.energies, self.steps):
            known.clear()

    @property
    def done(self) -> set[tuple[int, int, int]]:
        """Addresses of the finished chains."""
        return set(self.supports)

    def cell(self, size: int, fold: int, chains: int) -> tuple[NDArray[np.int64], Floats]:
        """Supports (chains, k) and energies (chains,) of one size in one fold."""
        addresses = [(size, fold, c) for c in range(chains)]
        supports = np.array([self.supports[a] for a in addresses], dtype=np.int64)
        return supports, np.array([self.energies[a] for a in addresses])


class Journal:
    """The journal in `folder` of a run with this `identity` (settings and data hash); made if there is none."""

    def __init__(self, folder: str | os.PathLike[str], identity: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self._file: Any = None
        self._synced = time.monotonic()
        self.dropped = 0
        with _clear_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            _claim(self.folder, identity)

    def read(self, work: Work) -> Found:
        """All finished chains of any writer; broken lines are dropped and counted."""
        found = Found()
        n_columns = work.problem.n_columns
        self.dropped = 0
        with _clear_errors(self.folder, "read"):
            for line in _lines(self.folder):
                chain = _parse(line, work, n_columns)
                if chain is None:
                    self.dropped += 1
                else:
                    found.put(*chain)
        return found

    def write(self, outcomes: Iterable[Outcome]) -> None:
        """Append finished tasks: they survive whatever happens to this process next."""
        lines = []
        for outcome in outcomes:
            for (size, fold, chain), support, energy, steps in _chains(outcome):
                record: dict[str, Any] = {
                    "size": size,
                    "fold": None if fold == ALL_ROWS else fold,
                    "chain": chain,
                    "support": support,
                    "energy": energy,
                }
                if steps is not None:
                    record["steps"] = steps
                lines.append(json.dumps(record, separators=(",", ":")))
        with _clear_errors(self.folder):
            if self._file is None:
                name = f"tasks-{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
                self._file = open(self.folder / name, "ab", buffering=0)  # noqa: SIM115  (closed by close)
            _write_all(self._file, ("\n".join(lines) + "\n").encode())
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()

    def close(self) -> None:
        """Close the file of this writer."""
        if self._file is not None:
            with _clear_errors(self.folder):
                os.fsync(self._file.fileno())
                self._file.close()
            self._file = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def merge_journals(target: str | os.PathLike[str], sources: Iterable[str | os.PathLike[str]]) -> int:
    """Join the journals of shards into one folder; returns the number of files copied.

    All must be of the same data and settings. Running it again copies nothing twice.
    """
    folder, copied = Path(target), 0
    if isinstance(sources, (str, os.PathLike)):
        sources = [sources]
    manifests = [(Path(source), _manifest(Path(source))["identity"]) for source in sources]
    for source, identity in manifests:
        with _clear_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            _claim(folder, identity)
        for path in sorted(source.glob("tasks-*.jsonl")):
            there = folder / path.name
            if there.exists() and there.stat().st_size >= path.stat().st_size:
                continue
            with _clear_errors(folder):
                part = folder / f".{path.name}.part"
                shutil.copyfile(path, part)
                os.replace(part, there)
            copied += 1
    return copied


def _claim(folder: Path, identity: dict[str, Any]) -> None:
    """Write the manifest, or make sure that the one there is of the same run."""
    path = folder / MANIFEST
    if not path.exists():
        part = folder / f".{MANIFEST}.{secrets.token_hex(4)}"
        part.write_text(json.dumps({"schema": SCHEMA, "identity": identity}, indent=1) + "\n")
        try:
            os.link(part, path)  # of several that start together one wins, and never half a file
        except FileExistsError:
            pass
        except OSError:
            os.replace(part, path)  # a file system without hard links
        part.unlink(missing_ok=True)
    other = _difference("", identity, _manifest(folder)["identity"])
    if other is not None:
        key, ours, theirs = other
        raise JournalError(
            f"journal {str(folder)!r} was made with {key} = {_short(theirs)}, but this run has {key} = {_short(ours)}; "
            "use the same data and settings to resume, or name another folder."
        )


def _difference(key: str, ours: Any, theirs: Any) -> tuple[str, Any, Any] | None:
    """The first place where two settings differ, and both values there."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in [*ours, *theirs]:
            found = _difference(f"{key} {name}".strip(), ours.get(name), theirs.get(name))
            if found is not None:
                return found
        return None
    if ours == theirs:
        return None
    if isinstance(ours, list) and isinstance(theirs, list) and "..." in _short(ours) + _short(theirs):
        if len(ours) != len(theirs):
            return f"{key} count", len(ours), len(theirs)
        return next(f for i in range(len(ours)) if (f := _difference(f"{key}[{i}]", ours[i], theirs[i])))
    return key, ours, theirs


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        schema = manifest["schema"]
        if not isinstance(manifest["identity"], dict):
            raise KeyError("identity")
    except OSError:
        raise JournalError(f"{str(folder)!r} is no journal (it has no readable {MANIFEST}).") from None
    except (ValueError, KeyError, TypeError):
        raise JournalError(f"{str(folder / MANIFEST)!r} cannot be understood; name another journal folder.") from None
    if schema != SCHEMA:
        raise JournalError(f"journal {str(folder)!r} has schema {schema}, but this version of pairflip reads {SCHEMA}.")
    return dict(manifest)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:36] + " ..."


def _lines(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.glob("tasks-*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            if line.strip():
                yield line


def _parse(
    line: bytes, work: Work, n_columns: int
) -> tuple[tuple[int, int, int], list[int], float, list[list[float]] | None] | None:
    """One chain from a line, or None if the line is broken or not of this run."""
    try:
        record = json.loads(line)
        size, chain = record["size"], record["chain"]
        fold = ALL_ROWS if record["fold"] is None else record["fold"]
        support, energy, steps = record["support"], record["energy"], record.get("steps")
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not all(type(number) is int for number in (size, fold, chain)) or size not in work.sizes:
        return None
    if not ALL_ROWS <= fold < len(work.folds) or not 0 <= chain < work.chains_of(size, fold):
        return None
    whole = isinstance(support, list) and len(support) == size and isinstance(energy, float) and isfinite(energy)
    if not whole or not all(type(j) is int and 0 <= j < n_columns for j in support):
        return None
    if steps is not None and not _is_course(steps, work.flips.size):
        return None
    return (size, fold, chain), support, energy, steps


def _is_course(steps: Any, length: int) -> bool:
    """Whether these are energies and acceptances of all steps."""
    try:
        return np.array(steps, dtype=float).shape == (2, length)
    except (ValueError, TypeError):
        return False


def _chains(outcome: Outcome) -> Iterator[tuple[tuple[int, int, int], list[int], float, list[list[float]] | None]]:
    """A task's chains, one by one."""
    task: Task = outcome.task
    supports, energies, steps = outcome.supports.tolist(), outcome.energies.tolist(), outcome.steps.tolist()
    for i, chain in enumerate(range(task.first, task.last)):
        yield (task.size, task.fold, chain), supports[i], energies[i], steps[i] if i < len(steps) else None


def _write_all(file: Any, data: bytes) -> None:
    """Write every byte; a full disk leaves a broken last line, which the next reader drops."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


class _clear_errors:
    """Turn an error of the file system into one sentence."""

    def __init__(self, folder: Path, doing: str = "written") -> None:
        self.folder, self.doing = folder, doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, OSError):
            raise JournalError(
                f"journal {str(self.folder)!r} cannot be {self.doing} ({error.strerror or error}); finished work is "
                "kept: make room or name a folder that can be used, and run the same again to resume."
            ) from None
