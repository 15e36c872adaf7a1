"""Single options that several commands share, the panels of the help, and what the texts of options mean."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from pairflip.cli.config import use_config

in_table, in_model, in_search, in_results = (
    partial(typer.Option, rich_help_panel=panel) for panel in ("The table", "The model", "The search", "Results")
)
"""An option in that panel of the help."""


class Center(StrEnum):
    """Where the intercept is fitted."""

    FOLD = "fold"
    GLOBAL = "global"
    NONE = "none"

    @property
    def value_for_api(self) -> Literal["fold", "global"] | None:
        """The same for `SubsetProblem`."""
        return None if self is Center.NONE else "fold" if self is Center.FOLD else "global"


class ScheduleName(StrEnum):
    """Schedules by name."""

    AUTO = "auto"
    PAPER = "paper"

    @property
    def value_for_api(self) -> Literal["auto", "paper"]:
        """The same for `select_size` and `anneal`."""
        return "auto" if self is ScheduleName.AUTO else "paper"


class Missing(StrEnum):
    """What to leave out because of missing values."""

    DROP_ROWS = "drop-rows"
    DROP_COLUMNS = "drop-columns"

    @property
    def value_for_api(self) -> Literal["drop-rows", "drop-columns"]:
        """The same for `read_table`."""
        return "drop-rows" if self is Missing.DROP_ROWS else "drop-columns"


class LossName(StrEnum):
    """What is minimized."""

    SQUARES = "squares"
    LOGISTIC = "logistic"
    POISSON = "poisson"
    MULTINOMIAL = "multinomial"
    COX = "cox"


class MethodName(StrEnum):
    """How supports are searched."""

    AUTO = "auto"
    DESCEND = "descend"
    ANNEAL = "anneal"


class EffortName(StrEnum):
    """How long."""

    QUICK = "quick"
    NORMAL = "normal"
    THOROUGH = "thorough"


Sheet = Annotated[str | None, in_table(metavar="NAME", help="Sheet of a workbook.")]
Decimal = Annotated[str | None, in_table(metavar="MARK", help="Decimal mark of a text table: . or ,")]
Thousands = Annotated[
    str | None,
    in_table(metavar="MARK", help="Mark between thousands in a text table: , (1,499) or . (1.499,5)."),
]
RIDGE = "0; 1e-5 for classes, counts and times"
Ridge = Annotated[float | None, in_model(help="Penalty on the squares of the coefficients.", show_default=RIDGE)]
K = Annotated[int, typer.Option("--k", "-k", metavar="K", min=1, help="Number of columns.")]
Sizes = Annotated[
    str | None,
    in_search(
        "--sizes",
        metavar="SIZES",
        help="Numbers of columns to try: 1-10, or 1,2,5, or both: 1-5,8.",
        show_default="1-10",
    ),
]
Seed = Annotated[int, in_search(help="What folds and searches are drawn from: same seed, same result.", min=0)]
Jobs = Annotated[int, in_search(help="Threads; -1 means all cores.")]
EngineName = Annotated[str, in_search("--engine", metavar="NAME", help="auto, numba, cuda or reference.")]
JournalFolder = Annotated[
    Path | None, in_search("--journal", metavar="DIR", help="Keep finished work here; the same command resumes.")
]
Force = Annotated[bool, in_results("--force", help="Replace an older result.")]
ForceFile = Annotated[bool, typer.Option("--force", help="Replace an existing --out file.")]
AsJson = Annotated[bool, in_results("--json", help="Print JSON for machines instead of text.")]
Quiet = Annotated[bool, in_results("--quiet", "-q", help="No progress, no remarks.")]
Config = Annotated[
    Path | None,
    in_results("--config", metavar="FILE", is_eager=True, callback=use_config,
               help="Options from a TOML file; the command line takes precedence."),
]  # fmt: skip


def parse_sizes(text: str | None) -> list[int] | None:
    """Numbers of columns from ``1-10``, ``1,2,5`` or ``1-5,8``."""
    if text is None:
        return None
    sizes: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            start = int(first)
            end = int(last) if dash else start
        except ValueError:
            raise ValueError(f"--sizes is {text!r}; expected numbers of columns such as 1-10 or 1,2,5.") from None
        if not 1 <= start <= end:
            raise ValueError(f"--sizes is {text!r}; expected numbers from 1 up, the smaller one first, such as 1-10.")
        if end > 1_000_000:
            raise ValueError(f"--sizes is {text!r}; expected numbers of columns, at most as many as the table has.")
        sizes.extend(range(start, end + 1))
    return sorted(set(sizes))


def parse_ridge(text: str | None) -> float | Literal["auto"] | list[float] | None:
    """A penalty from ``0.5``, "auto", or relative ridge terms to choose from, ``0,0.1,1``; None: that of the loss."""
    if text is None:
        return None
    if text.strip() == "auto":
        return "auto"
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--ridge is {text!r}; expected a number >= 0, auto, or several numbers such as 0,0.1,1."
        ) from None
    return values if "," in text else values[0]


def written_sizes(sizes: list[int]) -> str:
    """The shortest text that `parse_sizes` reads as these sorted numbers."""
    runs: list[list[int]] = []
    for size in sizes:
        if runs and size == runs[-1][1] + 1:
            runs[-1][1] = size
        else:
            runs.append([size, size])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def check_jobs(jobs: int) -> int:
    """Refuse 0, which is neither a number of threads nor -1."""
    if jobs == 0:
        raise ValueError("--jobs is 0; expected a number of threads, or -1 for all cores.")
    return jobs


def check_cv(text: str) -> str:
    """Refuse a kind of cross validation that `select_size` does not know."""
    from pairflip.selection.folds import EXPECTED_CV, parse_cv

    try:
        parse_cv(text)
    except ValueError:
        raise ValueError(f"--cv is {text!r}; expected {EXPECTED_CV}.") from None
    return text
