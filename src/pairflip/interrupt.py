"""Ctrl-C: the message, in one place, and the end of a process that has not begun its work."""

from __future__ import annotations

import os

CODE = 130
"""Exit code of a process that was interrupted, as shells count it."""


def interrupted(journal: str | os.PathLike[str] | None = None, again: str | None = None) -> str:
    """The sentence after Ctrl-C: what is kept and how to resume.

    Parameters
    ----------
    journal : path, optional
        Folder of the journal, if one is kept.
    again : str, optional
        What to do to resume; None where no journal can be given.
    """
    if journal is not None and os.path.isdir(journal):
        return f"interrupted; finished work is kept in {os.fspath(journal)!r}. Resume with: {again}"
    hint = " (a journal keeps finished work)" if journal is None and again is not None else ""
    return f"interrupted; nothing was kept and nothing was written{hint}."


def leave(*_: object) -> None:
    """End the process at once, as a signal handler: while modules load, an exception could be caught or changed."""
    os.write(2, f"pairflip: {interrupted()}\n".encode())
    os._exit(CODE)
