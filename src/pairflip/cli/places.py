"""Places of results that would destroy what they are made from: refused before any work."""

from __future__ import annotations

from pathlib import Path


def refuse_input(out: Path, source: Path | None, what: str) -> None:
    """Refuse to write onto the file that is read, however it is spelled or linked; `what` names it."""
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


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, through links or other spellings."""
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return one.resolve() == other.resolve()
