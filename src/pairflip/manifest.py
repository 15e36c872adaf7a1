"""Which run a journal belongs to: its manifest, and the messages that refuse the journal of another run."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

SCHEMA = 2
MANIFEST = "manifest.json"


class JournalError(ValueError):
    """A journal cannot be used as asked."""


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
    if schema != SCHEMA:
        raise JournalError(
            f"journal {str(folder)!r} has schema {schema}, but this version of pairflip reads schema {SCHEMA}; name "
            "another folder to start again."
        )
    return identity


def refuse_files(folder: Path) -> None:
    """Refuse a file where the folder, or one above it, should be."""
    for place in (folder, *folder.parents):
        if place.is_file():
            what = "is a file" if place == folder else f"is below {str(place)!r}, which is a file"
            raise JournalError(f"journal {str(folder)!r} {what}; expected a folder, or the name of a new one.")


def _write_manifest(folder: Path, identity: dict[str, Any]) -> None:
    """Write the manifest as a whole, before any chain: what a power cut leaves can be resumed."""
    part = folder / f".{MANIFEST}.{secrets.token_hex(4)}"
    try:
        with part.open("x") as file:
            file.write(json.dumps({"schema": SCHEMA, "identity": identity}, indent=1) + "\n")
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
    sync_folder(folder)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def difference(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[str, str, str] | None:
    """The first setting in which two runs differ, and both values as texts; None if there is no such setting."""
    found = _difference("", ours, theirs)
    return None if found is None else (found[0], _short(found[1]), _short(found[2]))


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


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:36] + " ..."


class clear_errors:
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
