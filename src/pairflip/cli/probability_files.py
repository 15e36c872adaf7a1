"""What `posterior` and `sample` write: a result folder with the page, or the columns alone as a .csv or .tsv file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pairflip.cli.config import config_text, settings_comment
from pairflip.cli.result_folder import (
    FolderContents,
    check_folder,
    default_folder,
    new_folder,
    refuse_folder_of,
    refuse_input,
    refuse_journal,
)
from pairflip.cli.table_file import Cell, check_out, is_table_file, write_lines

if TYPE_CHECKING:
    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples
    from pairflip.tables import Table

Lines = tuple[Sequence[str], Sequence[Sequence[Cell]]]
"""Headings and rows of a file."""
COLUMNS = "inclusion.csv"


def folder_or_table(command: str) -> Any:
    """The option --out of a command."""
    return typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Result folder; a .csv or .tsv file: the columns alone.",
        show_default=f"name of the table + -{command}",
    )


_COMMON = {"figures", COLUMNS, "report.html", "run.toml"}
_OWN = {
    "posterior": {"models.csv", "posterior.json", "sizes.csv"},
    "sample": {"pairs.csv", "sample.json", "sets.csv", "temperatures.csv"},
}
_FORMER = {"states.csv"}
"""Written by version 0.2; named here so that --force replaces its folders, too."""


def contents_of(command: str) -> FolderContents:
    """What the result folder of a command holds, or held."""
    former = _FORMER if command == "sample" else set()
    return FolderContents(frozenset(_COMMON | _OWN[command] | former), f"{command}.json")


def checked_place(command: str, out: Path | None, force: bool, data: Path | None, journal: Path | None) -> Path:
    """Where the result goes, after making sure that it can go there."""
    place = default_folder(data, command) if out is None else out
    if is_table_file(place):
        check_out(place, force)
        refuse_input(place, data, "the table")
        refuse_journal(journal, None, data)
    else:
        check_folder(place, force, contents_of(command))
        refuse_folder_of(place, data)
        refuse_journal(journal, place, data)
    return place


@dataclass(frozen=True, eq=False)
class ProbabilityResult:
    """A finished `posterior` or `sample`: the record, the tables that are written, and all of it for machines."""

    command: str
    title: str
    found: Posterior | Samples
    tables: Mapping[str, Lines]
    record: Mapping[str, Any]

    def write(self, place: Path, force: bool, table: Table, typed: str, settings: Mapping[str, Any]) -> None:
        """Write the folder, whole or not at all; or the columns alone, where `place` is a .csv or .tsv file."""
        if is_table_file(place):
            write_lines(place, *self.tables[COLUMNS], "the probabilities")
            return
        with new_folder(place, force, contents_of(self.command)) as part:
            for name, lines in self.tables.items():
                write_lines(part / name, *lines, "the table")
            whole = {**self.record, "command": typed, "run": dict(settings)}
            text = json.dumps(whole, allow_nan=False) + "\n"
            (part / f"{self.command}.json").write_text(text, encoding="utf-8")
            self._draw(part, table, typed)
            text = config_text(settings, settings_comment(self.command))
            (part / "run.toml").write_text(text, encoding="utf-8")

    def _draw(self, part: Path, table: Table, typed: str) -> None:
        """The page, and its figures as files."""
        from pairflip.report import write_report
        from pairflip.report.record_pages import save_probability_figures

        write_report(
            self.found,
            part / "report.html",
            title=self.title,
            target=table.target,
            dropped=[str(item) for item in (*table.dropped, *table.notes)],
            command=typed,
            extra={"Table": table.source},
        )
        save_probability_figures(self.found, part / "figures")
