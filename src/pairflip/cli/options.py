"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from pairflip.cli.config import use_config

_TABLE, _MODEL, _SEARCH, _OUTPUT = "The table", "The model", "The search", "Results"


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


Data = Annotated[
    Path | None,
    typer.Argument(help="Table: .csv, .tsv, .txt, .dat (also .gz), .parquet, .feather, .arrow, .npz, .npy or .xlsx."),
]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", metavar="NAME", help="Column to predict; several: a,b,c.", rich_help_panel=_TABLE),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Leave this column out; /^ab/ is a regular expression. Repeat for more.",
                 rich_help_panel=_TABLE),
]  # fmt: skip
Keep = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Choose only from this column; /^ab/ is a regular expression. Repeat for more.",
                 rich_help_panel=_TABLE),
]  # fmt: skip
Index = Annotated[str | None, typer.Option(metavar="NAME", help="Column of row names.", rich_help_panel=_TABLE)]
DropText = Annotated[
    bool, typer.Option("--drop-text", help="Leave columns of text and dates out.", rich_help_panel=_TABLE)
]
Categories = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Read the categories of this column as columns of 0 and 1, chosen together; "
                 "/^ab/ is a regular expression. Repeat for more.", rich_help_panel=_TABLE),
]  # fmt: skip
MissingValues = Annotated[
    Missing | None, typer.Option("--missing", help="What to leave out if values are missing.", rich_help_panel=_TABLE)
]
Sheet = Annotated[str | None, typer.Option(metavar="NAME", help="Sheet of a workbook.", rich_help_panel=_TABLE)]
Decimal = Annotated[
    str | None, typer.Option(metavar="MARK", help="Decimal mark of a text table: . or ,", rich_help_panel=_TABLE)
]
Thousands = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="Mark between thousands in a text table: , (1,499) or . (1.499,5).",
                 rich_help_panel=_TABLE),
]  # fmt: skip
Weights = Annotated[str | None, typer.Option(metavar="NAME", help="Column of row weights.", rich_help_panel=_TABLE)]
Groups = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column of groups; rows of a group are left out together.",
                 rich_help_panel=_TABLE),
]  # fmt: skip
CenterOption = Annotated[
    Center,
    typer.Option("--center", help="Intercept in every fold, means removed once, or no intercept.",
                 rich_help_panel=_MODEL),
]  # fmt: skip
Always = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Column that is in every model. Repeat for more.", rich_help_panel=_MODEL),
]

ColumnGroups = Annotated[
    Path | None,
    typer.Option("--column-groups", metavar="FILE", help="Table with the columns column and group: whole groups of "
                 "columns are chosen, and sizes count groups.", rich_help_panel=_MODEL),
]  # fmt: skip
OnePerGroup = Annotated[
    bool, typer.Option("--one-per-group", help="At most one column of each group instead.", rich_help_panel=_MODEL)
]
MinDistance = Annotated[
    float | None,
    typer.Option("--min-distance", metavar="D", min=0.0, help="No two chosen columns closer than this: in units of "
                 "their names if those are numbers, such as wavelengths, otherwise in places.", rich_help_panel=_MODEL),
]  # fmt: skip
Hierarchy = Annotated[
    bool,
    typer.Option("--hierarchy", help="A product such as a:b, a*b or a^2 only together with its factors.",
                 rich_help_panel=_MODEL),
]  # fmt: skip
Positive = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Column whose coefficient must not be negative; all: every column. Repeat for "
                 "more.", rich_help_panel=_MODEL),
]  # fmt: skip
Negative = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Column whose coefficient must not be positive; all: every column. Repeat for "
                 "more.", rich_help_panel=_MODEL),
]  # fmt: skip


class LossName(StrEnum):
    """What is minimized."""

    SQUARES = "squares"
    LOGISTIC = "logistic"
    POISSON = "poisson"


LossOption = Annotated[
    LossName,
    typer.Option("--loss", help="squares: the target is a number; logistic: one of two classes; poisson: a count.",
                 rich_help_panel=_MODEL),
]  # fmt: skip
Offset = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column that is added to the logarithm of the expected count (--loss poisson).",
                 rich_help_panel=_MODEL),
]  # fmt: skip
_RIDGE = "0; 1e-5 for classes and counts"
Ridge = Annotated[
    float | None,
    typer.Option(help="Penalty on the squares of the coefficients.", show_default=_RIDGE, rich_help_panel=_MODEL),
]
RidgeOrAuto = Annotated[
    str | None,
    typer.Option("--ridge", metavar="RIDGE",
                 help="Penalty on the squares of the coefficients, in the units of the table; auto: choose the "
                 "shrinkage together with the size; 0,0.1,1: from these, in units of the scaled columns.",
                 show_default=_RIDGE, rich_help_panel=_MODEL),
]  # fmt: skip
Sizes = Annotated[
    str | None,
    typer.Option(metavar="SIZES", help="Numbers of columns to try: 1-10, or 1,2,5, or both: 1-5,8.",
                 show_default="1-10",
                 rich_help_panel=_SEARCH),
]  # fmt: skip
Cv = Annotated[
    str,
    typer.Option(metavar="CV", help="5x10: ten folds, five times; loo: leave one row out; 10: ten folds; blocks:5: "
                 "five blocks of neighbouring rows, for tables in the order of time.", rich_help_panel=_SEARCH),
]  # fmt: skip


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


MethodOption = Annotated[
    MethodName | None,
    typer.Option("--method", help="How to search: all methods, descents with kicks, or simulated annealing.",
                 show_default="anneal with --schedule or --chains, else auto", rich_help_panel=_SEARCH),
]  # fmt: skip
EffortOption = Annotated[EffortName, typer.Option("--effort", help="How long to search.", rich_help_panel=_SEARCH)]
ScheduleOption = Annotated[
    ScheduleName, typer.Option("--schedule", help="How the walks are cooled.", rich_help_panel=_SEARCH)
]
Chains = Annotated[
    int | None, typer.Option(help="Walks for each fit; the best one counts.", min=1, rich_help_panel=_SEARCH)
]
Polish = Annotated[
    bool,
    typer.Option("--polish/--no-polish", help="Improve final fits by what the folds found and by double flips.",
                 rich_help_panel=_SEARCH),
]  # fmt: skip

Prove = Annotated[
    bool,
    typer.Option("--prove/--no-prove", help="Prove that fits are the best, and solve folds exactly, where it is cheap.",
                 rich_help_panel=_SEARCH),
]  # fmt: skip


class StabilitySizes(StrEnum):
    """Which sizes half-samples look at."""

    CHOSEN = "chosen"
    ALL = "all"


DEFAULT_STABILITY = 50  # docs/decisions/027-stability.md
StabilityPairs = Annotated[
    int,
    typer.Option("--stability", metavar="N", help="Pairs of random halves of the rows in which columns are selected "
                 "again; 0: none.", rich_help_panel=_SEARCH),
]  # fmt: skip
StabilityAt = Annotated[
    StabilitySizes,
    typer.Option("--stability-at", help="At the recommended size, or at all.", rich_help_panel=_SEARCH),
]
Null = Annotated[
    int,
    typer.Option("--null", metavar="N", help="Shuffle the target so often, to see what noise would give.",
                 rich_help_panel=_SEARCH),
]  # fmt: skip
Outer = Annotated[
    int,
    typer.Option("--outer", metavar="N", help="Folds of a second cross validation around everything; takes N times as "
                 "long; 0: none.", rich_help_panel=_SEARCH),
]  # fmt: skip
ShowPosterior = Annotated[
    bool,
    typer.Option("--posterior", help="Show how probable it is that each column belongs in the model, beside how often "
                 "it was selected (pairflip posterior).", rich_help_panel=_SEARCH),
]  # fmt: skip
WithSurface = Annotated[
    bool,
    typer.Option("--surface", help="Measure errors at every temperature of the annealing, too; asks for --method "
                 "anneal.", rich_help_panel=_SEARCH),
]  # fmt: skip
Seed = Annotated[int, typer.Option(help="Same seed, same result.", min=0, rich_help_panel=_SEARCH)]
Jobs = Annotated[int, typer.Option(help="Threads; -1 means all cores.", rich_help_panel=_SEARCH)]
EngineName = Annotated[
    str, typer.Option("--engine", metavar="NAME", help="auto, numba, cuda or reference.", rich_help_panel=_SEARCH)
]
JournalFolder = Annotated[
    Path | None,
    typer.Option("--journal", metavar="DIR", help="Keep finished work here; the same command resumes.",
                 rich_help_panel=_SEARCH),
]  # fmt: skip
Shard = Annotated[
    str | None,
    typer.Option(metavar="I/N", help="Do only one part of the work, into the journal.", rich_help_panel=_SEARCH),
]
Merge = Annotated[
    list[Path] | None,
    typer.Option(metavar="DIR", help="Journal of a shard to merge first. Repeat for more.", rich_help_panel=_SEARCH),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Result folder.",
                 show_default="name of the table + -pairflip",
                 rich_help_panel=_OUTPUT),
]  # fmt: skip
Force = Annotated[bool, typer.Option("--force", help="Replace an older result.", rich_help_panel=_OUTPUT)]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON for machines instead of text.", rich_help_panel=_OUTPUT)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no remarks.", rich_help_panel=_OUTPUT)]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", is_eager=True, callback=use_config,
                 help="Options from a TOML file; the command line takes precedence.", rich_help_panel=_OUTPUT),
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
