"""Files of a journal: a manifest that says which data and settings it belongs to, and sealed lines of finished work.

A journal is a folder with ``manifest.json``; every process that works on it appends to a ``tasks-*.jsonl`` file of its
own, one JSON object a line. A line that was cut off, was changed or belongs to another run does not carry its seal, a
digest under a key that is made of the data and settings; it is dropped, and its work is done again.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Self

from pairflip.text import plural

Folder = str | os.PathLike[str]
MANIFEST = "manifest.json"
_SCHEMA = 2
_SYNC_SECONDS = 2.0
_BYTES = 6  # of a seal: one changed line in 3e14 would pass
_CHECK = b',"check":"'
_SEAL = len(_CHECK) + 2 * _BYTES + len(b'"}')


class JournalError(ValueError):
    """A journal cannot be used as asked."""


class JournalWarning(UserWarning):
    """A run goes on, but its journal cannot be kept."""


@contextmanager
def clear_errors(folder: Path, doing: str = "written") -> Iterator[None]:
    """Turn an error of the file system into one sentence."""
    try:
        yield
    except OSError as error:
        raise JournalError(
            f"journal {str(folder)!r} cannot be {doing} ({error.strerror or error}); finished work is "
            "kept: make room or name a folder that can be used, and run the same again to resume."
        ) from None


# The manifest ---------------------------------------------------------------------------------------------------------


def claim(folder: Path, identity: dict[str, Any], whose: str = "this run") -> None:
    """Make the folder and its manifest, or make sure that the one there belongs to the same run."""
    refuse_files(folder)
    with clear_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / MANIFEST).exists():
            _write_manifest(folder, identity)
    check_same(folder, identity, whose)


def check_same(folder: Path, identity: dict[str, Any], whose: str) -> None:
    """Refuse a journal of other data or settings."""
    other = difference(identity, read_manifest(folder))
    if other is not None:
        key, ours, theirs = other
        raise JournalError(
            f"journal {str(folder)!r} was made with {key} = {theirs}, but {whose} has {key} = {ours}; "
            "use the same data and settings to resume, or name another folder."
        )


def read_manifest(folder: Path) -> dict[str, Any]:
    """The identity of the run that made a journal."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        schema, identity = manifest["schema"], manifest["identity"]
        if not isinstance(identity, dict):
            raise KeyError("identity")
    except OSError:
        raise JournalError(f"{str(folder)!r} is not a journal (it has no readable {MANIFEST}).") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise JournalError(f"{str(folder / MANIFEST)!r} cannot be understood; name another journal folder.") from None
    if schema != _SCHEMA:
        raise JournalError(
            f"journal {str(folder)!r} has schema {schema}, but this version of pairflip reads schema {_SCHEMA}; name "
            "another folder to start again."
        )
    return identity


def refuse_files(folder: Path) -> None:
    """Refuse a file where the folder, or one above it, should be."""
    for place in (folder, *folder.parents):
        if place.is_file():
            where = "is a file" if place == folder else f"is below {str(place)!r}, which is a file"
            raise JournalError(f"journal {str(folder)!r} {where}; expected a folder, or the name of a new one.")


def _write_manifest(folder: Path, identity: dict[str, Any]) -> None:
    """Write the manifest as a whole, before any chain: what a power cut leaves can be resumed."""
    part = folder / f".{MANIFEST}.{secrets.token_hex(4)}"
    try:
        with part.open("x") as file:
            file.write(json.dumps({"schema": _SCHEMA, "identity": identity}, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(part, folder / MANIFEST)  # of several that start together one wins, and never half a file
        except FileExistsError:
            pass
        except OSError:
            os.replace(part, folder / MANIFEST)  # a file system without hard links
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(folder)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def difference(ours: Any, theirs: Any, key: str = "") -> tuple[str, str, str] | None:
    """The first setting in which two runs differ, and both values as texts; None if there is no such setting."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        settings = (difference(ours.get(name), theirs.get(name), f"{key} {name}".strip()) for name in [*ours, *theirs])
        return next(filter(None, settings), None)
    if ours == theirs:
        return None
    long = any(len(json.dumps(value)) > 40 for value in (ours, theirs))
    if long and isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return f"{key} count", str(len(ours)), str(len(theirs))
        entries = (difference(ours[i], theirs[i], f"{key}[{i}]") for i in range(len(ours)))
        return next(filter(None, entries))
    first, second = (text if len(text) <= 40 else text[:36] + " ..." for text in map(json.dumps, (ours, theirs)))
    return key, first, second


# Sealed lines ---------------------------------------------------------------------------------------------------------


def run_key(identity: dict[str, Any]) -> bytes:
    """A digest of data and settings; two runs that may share their chains have the same digest."""
    return sha256(json.dumps(identity, sort_keys=True).encode()).digest()


def sealed(record: dict[str, Any], key: bytes) -> bytes:
    """The line of a record, without its line end."""
    body = json.dumps(record, separators=(",", ":")).encode()[:-1]
    return body + _seal(body, key)


def unsealed(line: bytes, key: bytes) -> dict[str, Any] | None:
    """The record of a line, or None if the line is damaged or belongs to another run."""
    body, seal = line[:-_SEAL], line[-_SEAL:]
    if seal != _seal(body, key):
        return None
    try:
        record = json.loads(body + b"}")
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _seal(body: bytes, key: bytes) -> bytes:
    return _CHECK + blake2b(body, key=key, digest_size=_BYTES).hexdigest().encode() + b'"}'


class SealedLines:
    """The lines in `folder` of a run with this `identity` (settings and data hash); the folder is made if need be.

    Where a run has several parts, each has files of its own, known by the `part` in their key.
    """

    def __init__(self, folder: Folder, identity: dict[str, Any], part: str | None = None) -> None:
        self.folder = Path(folder)
        self._absolute = self.folder.absolute()  # the caller may change the current folder
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

    def lines(self) -> Iterator[bytes]:
        """The lines of all writers, as they are."""
        with clear_errors(self.folder, "read"):
            for path in sorted(self.folder.glob(self._files)):
                yield from (line for line in path.read_bytes().split(b"\n") if line.strip())

    def append(self, lines: Iterable[bytes]) -> None:
        """Append sealed lines: they survive whatever happens to this process next."""
        if self.lost:
            return
        with clear_errors(self.folder):
            if self._file is None:
                name = f"tasks-{self._key.hex()[:8]}-{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(4)}"
                try:
                    self._file = open(self._absolute / f"{name}.jsonl", "ab", buffering=0)  # noqa: SIM115  (see close)
                except (FileNotFoundError, NotADirectoryError):
                    self._lose()
                    return
                _sync_folder(self._absolute)
            data = memoryview(b"\n".join(lines) + b"\n")
            while data:  # a full disk leaves a broken last line, which the next reader drops
                data = data[self._file.write(data) :]
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                self._sync()

    def close(self) -> None:
        """Close the file of this writer."""
        if self._file is not None:
            with clear_errors(self.folder):
                self._sync()
                self._file.close()
            self._file = None

    def _sync(self) -> None:
        """Put what was written on the disk, and look whether it can still be found there.

        A file that was removed can be written to without an error for as long as it is open.
        """
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()
        try:
            on_disk = os.stat(self._file.name)
        except (FileNotFoundError, NotADirectoryError):
            self._lose()
            return
        if not os.path.samestat(on_disk, os.fstat(self._file.fileno())):
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
