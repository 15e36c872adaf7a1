"""What journals hold, for the tests of resuming."""

from pathlib import Path


def files(folder):
    """The files of all writers."""
    return sorted(Path(folder).glob("tasks-*.jsonl"))


def lines_of(folder):
    """The lines of all writers."""
    return [line for path in files(folder) for line in path.read_bytes().splitlines()]
