"""The options of each subject, declared once; a command has a parameter for a subject (see signature.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pairflip.cli import options as o
from pairflip.cli.options import in_model, in_search, in_table
from pairflip.cli.signature import Without

Names = list[str] | None


@dataclass(frozen=True)
class TableOptions:
    """The table: its file, what its columns are, how it is read."""

    data: Annotated[
        Path | None,
        typer.Argument(help="Table: .csv, .tsv, .txt, .dat (also .gz), .parquet, .feather, .arrow, .npz, .npy or "
                       ".xlsx."),
    ] = None  # fmt: skip
    target: Annotated[
        str | None, in_table("--target", "-t", metavar="NAME", help="Column to predict; several: a,b,c.")
    ] = None
    drop: Annotated[
        Names,
        in_table(metavar="NAME", help="Leave this column out; /^ab/ is a regular expression. Several: a,b, or repeat."),
    ] = None
    keep: Annotated[
        Names,
        in_table(
            metavar="NAME", help="Choose only from this column; /^ab/ is a regular expression. Several: a,b, or repeat."
        ),
    ] = None
    index: Annotated[str | None, in_table(metavar="NAME", help="Column of row names.")] = None
    drop_text: Annotated[bool, in_table("--drop-text", help="Leave columns of text and dates out.")] = False
    categories: Annotated[
        Names,
        in_table(metavar="NAME", help="Read the categories of this column as columns of 0 and 1, chosen together; "
                 "/^ab/ is a regular expression. Several: a,b, or repeat."),
    ] = None  # fmt: skip
    missing: Annotated[o.Missing | None, in_table("--missing", help="What to leave out if values are missing.")] = None
    sheet: o.Sheet = None
    decimal: o.Decimal = None
    thousands: o.Thousands = None
    weights: Annotated[str | None, in_table(metavar="NAME", help="Column of row weights.")] = None
    groups: Annotated[
        str | None, in_table(metavar="NAME", help="Column of groups; rows of a group are left out together.")
    ] = None


PlainTable = Annotated[TableOptions, Without("categories", "groups")]
"""Where nothing is held out, and single columns are chosen."""


@dataclass(frozen=True)
class ModelOptions:
    """What every model has: an intercept, columns that are always in."""

    center: Annotated[
        o.Center, in_model("--center", help="Intercept in every fold, means removed once, or no intercept.")
    ] = o.Center.FOLD
    always: Annotated[
        Names, in_model(metavar="NAME", help="Column that is in every model. Several: a,b, or repeat.")
    ] = None


@dataclass(frozen=True)
class LossOptions:
    """What is minimized."""

    loss: Annotated[
        o.LossName | None,
        in_model("--loss", help="squares: the target is a number; logistic: one of two classes; multinomial: of more; "
                 "poisson: a count; cox: a survival time.", show_default="squares; classes for text"),
    ] = None  # fmt: skip
    offset: Annotated[
        str | None,
        in_model(metavar="NAME", help="Column that is added to the logarithm of the expected count (--loss poisson)."),
    ] = None
    time: Annotated[str | None, in_model(metavar="NAME", help="Column of survival times (--loss cox).")] = None
    event: Annotated[
        str | None,
        in_model(metavar="NAME", help="Column that is 1 where the event happened at that time, 0 where it had not "
                 "(--loss cox)."),
    ] = None  # fmt: skip


@dataclass(frozen=True)
class SearchOptions:
    """How supports are searched."""

    effort: Annotated[o.EffortName, in_search("--effort", help="How long to search.")] = o.EffortName.NORMAL
    method: Annotated[
        o.MethodName | None,
        in_search("--method", help="How to search: all methods, descents with kicks, or simulated annealing.",
                  show_default="anneal with --schedule or --chains, else auto"),
    ] = None  # fmt: skip
    schedule: Annotated[o.ScheduleName, in_search("--schedule", help="How the walks are cooled.")] = o.ScheduleName.AUTO
    chains: Annotated[int | None, in_search(help="Walks for each fit; the best one counts.", min=1)] = None
    polish: Annotated[
        bool,
        in_search("--polish/--no-polish", help="Improve final fits by what the folds found and by a descent."),
    ] = True
    prove: Annotated[
        bool,
        in_search("--prove/--no-prove", help="Prove that fits are the best, and solve folds exactly, where it is "
                  "cheap."),
    ] = True  # fmt: skip


@dataclass(frozen=True)
class RunOptions:
    """What it runs on."""

    seed: o.Seed = 0
    jobs: o.Jobs = -1
    engine: o.EngineName = "auto"


@dataclass(frozen=True)
class ResultOptions:
    """How results are shown, and whether they may replace older ones."""

    force: o.Force = False
    as_json: o.AsJson = False
    quiet: o.Quiet = False
    config: o.Config = None

    @property
    def progress(self) -> bool | None:
        """For functions that show a bar where there is a terminal."""
        return False if self.quiet else None
