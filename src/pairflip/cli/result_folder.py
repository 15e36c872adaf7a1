"""A result folder appears whole or not at all, and never in a place where it would destroy what it is made from."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pairflip import interrupt


@dataclass(frozen=True)
class FolderContents:
    """What a kind of result folder holds, by which an older one is recognized.

    Attributes
    ----------
    files : frozenset of str
        The only names in it; a folder with any other name is never replaced.
    mark : str
        The file that it always has.
    """

    files: frozenset[str]
    mark: str


SELECTION = FolderContents(
    frozenset(
        {
            "coefficients.csv",
            "curve.csv",
            "figures",
            "half_samples.csv",
            "inclusion.csv",
            "predictions.csv",
            "targets.csv",
            "report.html",
            "result.json",
            "run.toml",
            "selection_counts.csv",
            "surface.csv",  # of version 0.2: --force replaces its folders, too
        }
    ),
    "result.json",
)


_YOUNG = 2.0
"""Seconds in which a temporary folder that was just made gets its lock."""


def default_folder(data: Path | None, what: str = "pairflip") -> Path:
    """``data.csv`` and ``data.csv.gz`` give ``data-pairflip`` in the current folder."""
    name = Path("table" if data is None else data.name)
    stem = Path(name.stem).stem if name.suffix == ".gz" else name.stem
    return Path(f"{stem}-{what}")


def refuse_input(out: Path, source: Path | None, what: str) -> None:
    """Refuse to write over the file that is read, however it is spelled or linked."""
    if source is not None and same_file(out, source):
        raise ValueError(f"--out {str(out)!r} is {what} itself, which would be lost; name another file with --out.")


def refuse_folder_of(folder: Path, data: Path | None) -> None:
    """Refuse a result folder that holds the table."""
    if data is not None and data.resolve().is_relative_to(folder.resolve()):
        raise ValueError(
            f"--out {str(folder)!r} holds the table {str(data)!r}, which would be lost; name another folder with --out."
        )


def refuse_journal(journal: Path | None, folder: Path | None, data: Path | None) -> None:
    """Refuse a journal in the result folder, which is replaced as a whole, or among the user's data."""
    if journal is None:
        return
    place = journal.resolve()
    if folder is not None and place.is_relative_to(folder.resolve()):
        raise ValueError(
            f"--journal {str(journal)!r} is in the result folder {str(folder)!r}; expected a folder of its own."
        )
    if data is not None and place in (data.resolve(), data.resolve().parent, data.parent.resolve()):
        where = "the table" if place == data.resolve() else "the folder of the table"
        raise ValueError(
            f"--journal {str(journal)!r} is {where}; expected a folder of its own, such as --journal work."
        )


def result_file(saved: Path) -> Path:
    """The JSON file that is meant; a journal alone lacks the data."""
    folder = saved if saved.is_dir() else saved.parent
    if (saved.is_dir() and not (saved / "result.json").exists()) or saved.name == "manifest.json":
        if (folder / "manifest.json").exists():
            raise ValueError(
                f"{str(folder)!r} is a journal, which holds no data; expected a result folder: the command that made "
                "it (pairflip select ... --journal) completes it and writes the report."
            )
        raise ValueError(f"{str(saved)!r} holds no result.json; expected a result folder of pairflip select.")
    return saved / "result.json" if saved.is_dir() else saved


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, through links or other spellings."""
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return one.resolve() == other.resolve()


def check_folder(out: Path, force: bool, contents: FolderContents = SELECTION) -> None:
    """Make sure, before hours of work, that the result can be put there; leaves nothing behind."""
    _refuse_existing(out, force, contents)
    above = out.absolute().parent
    while not above.exists() and above != above.parent:
        above = above.parent
    probe = above / f".pairflip-{secrets.token_hex(4)}"
    with _plain_write_errors(out):
        probe.mkdir()
        probe.rmdir()


@contextmanager
def new_folder(out: Path, force: bool, contents: FolderContents = SELECTION) -> Iterator[Path]:
    """A temporary folder next to `out` to write into; it becomes `out` when the block ends without an error."""
    _refuse_existing(out, force, contents)
    given, out = out, out.absolute()
    _remove_left_behind(out, contents)
    part = out.with_name(f".{out.name[:100]}.{secrets.token_hex(4)}.part")
    older = part.with_suffix(".old")
    made = [folder for folder in out.parents if not folder.exists()]
    lock: int | None = None

    def remove() -> None:
        shutil.rmtree(part, ignore_errors=True)
        for folder in made:
            with suppress(OSError):
                folder.rmdir()

    interrupt.clean_up = remove
    try:
        with _plain_write_errors(given):
            part.mkdir(parents=True)
            lock = _locked(part)
            yield part
            if out.exists():
                os.rename(out, older)
            try:
                os.rename(part, out)
            except OSError:
                if older.exists():
                    os.rename(older, out)
                raise
    except BaseException:
        remove()
        raise
    finally:
        if lock is not None:
            os.close(lock)
    place = _shown(given)
    interrupt.sentence = lambda: f"interrupted; the results are in {place}."
    shutil.rmtree(older, ignore_errors=True)


def _remove_left_behind(out: Path, contents: FolderContents) -> None:
    """Remove the temporary folders of earlier runs for `out` that were killed: nobody has them locked any more."""
    ours = re.compile(rf"\.{re.escape(out.name[:100])}\.[0-9a-f]{{8}}\.part")
    with suppress(OSError):
        for part in out.parent.iterdir():
            if not ours.fullmatch(part.name) or part.is_symlink() or not part.is_dir():
                continue
            names = {each.name for each in part.iterdir() if not each.name.startswith(".pairflip-")}
            age = time.time() - part.stat().st_mtime
            if names <= contents.files and age > _YOUNG and (lock := _locked(part)) is not None:
                shutil.rmtree(part, ignore_errors=True)
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """A lock on a folder, which ends with this process; None where it is taken, or where there are no such locks."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _refuse_existing(out: Path, force: bool, contents: FolderContents) -> None:
    """An older result may be replaced if asked; anything else that is there may not."""
    with _plain_write_errors(out):
        if not out.exists() and not out.is_symlink():
            return
        if not out.is_dir() or out.is_symlink():
            raise ValueError(
                f"{_shown(out)} exists and is not a folder; expected the name of a new folder: give another --out."
            )
        names = sorted(path.name for path in out.iterdir())
    if not force:
        raise ValueError(f"the folder {_shown(out)} exists; add --force to replace it, or name another one with --out.")
    others = [name for name in names if name not in contents.files]
    if others or (names and contents.mark not in names):
        what = f"holds {others[0]!r}, which pairflip did not write" if others else "holds no result of pairflip"
        raise ValueError(f"the folder {_shown(out)} {what}, so it is not replaced; name another one with --out.")


@contextmanager
def _plain_write_errors(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        first = error.__context__ if error.strerror is None else error
        reason = getattr(first, "strerror", None) or str(error)
        raise ValueError(
            f"the result folder {_shown(out)} cannot be written ({reason}); nothing was written: make room, or name a "
            "folder that can be written with --out."
        ) from error


def _shown(path: Path) -> str:
    from pairflip.tables.errors import shown_path

    return shown_path(path)
