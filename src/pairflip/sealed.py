"""Sealed lines: what a journal of finished work is made of.

A journal is a folder: ``manifest.json`` says which data and settings it belongs to (`manifest`), and every process that
works on it appends to a ``tasks-*.jsonl`` file of its own, one JSON object a line. A line that was cut off, was changed
or belongs to another run does not carry its seal, a digest under a key that is made of the data and settings; it is
dropped, and its work is done again.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
import warnings
from collections.abc import Iterable, Iterator
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Self

from pairflip.manifest import claim, clear_errors, sync_folder
from pairflip.text import plural

_SYNC_SECONDS = 2.0
_BYTES = 6  # of a check: one changed line in 3e14 would pass
_CHECK = b',"check":"'
_SEAL = len(_CHECK) + 2 * _BYTES + len(b'"}')


class JournalWarning(UserWarning):
    """A run goes on, but its journal cannot be kept."""


def run_key(identity: dict[str, Any]) -> bytes:
    """A digest of data and settings; two runs that may share their chains have the same digest."""
    return sha256(json.dumps(identity, sort_keys=True).encode()).digest()


def sealed(record: dict[str, Any], key: bytes) -> bytes:
    """The line of a record, without its line end."""
    body = json.dumps(record, separators=(",", ":")).encode()[:-1]
    return body + _CHECK + _digest(body, key) + b'"}'


def unsealed(line: bytes, key: bytes) -> dict[str, Any] | None:
    """The record of a line, or None if the line is damaged or belongs to another run."""
    body, seal = line[:-_SEAL], line[-_SEAL:]
    if seal != _CHECK + _digest(body, key) + b'"}':
        return None
    try:
        record = json.loads(body + b"}")
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _digest(body: bytes, key: bytes) -> bytes:
    return blake2b(body, key=key, digest_size=_BYTES).hexdigest().encode()


class SealedLines:
    """The lines in `folder` of a run with this `identity` (settings and data hash); the folder is made if need be.

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _write_all(file: Any, data: bytes) -> None:
    """Write every byte; a full disk leaves a broken last line, which the next reader drops."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
