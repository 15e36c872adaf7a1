"""The options of the commands, each declared once, and what their texts mean.

Options that belong together are the fields of a dataclass. Typer makes a command line of a signature, so that every
option has to be a parameter: the command

    def fit(*, table: TableOptions, search: Annotated[SearchOptions, Without("polish")], k: K) -> None:

is given to Typer as `expanded(fit)`, which takes every field of the two dataclasses but one, in their order, and calls
`fit` with both of them filled; a field that is left out keeps its default. What goes wrong becomes one sentence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from pairflip.cli.config import use_config
from pairflip.cli.errors import plain_errors

in_table, in_model, in_search, in_results = (
    partial(typer.Option, rich_help_panel=panel) for panel in ("The table", "The model", "The search", "Results")
)
"""An option in that panel of the help."""

Names = list[str] | None
LossName = Literal["squares", "logistic", "poisson", "multinomial", "cox"]
EffortName = Literal["quick", "normal", "thorough"]


class Without:
    """Beside a dataclass of options: these are not among those of the command."""

    def __init__(self, *names: str) -> None:
        self.names = names


def expanded(function: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer is to see it: with the fields of its dataclasses of options as parameters."""
    hints = get_type_hints(function, include_extras=True)
    taken: dict[str, tuple[Any, Any]] = {}  # type and default of everything that the command takes
    groups: dict[str, tuple[Any, list[str]]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind, *beside = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        if not is_dataclass(kind):
            taken[name] = hints[name], parameter.default
            continue
        left_out = {option for each in beside if isinstance(each, Without) for option in each.names}
        field_hints = get_type_hints(kind, include_extras=True)
        if not left_out <= field_hints.keys():
            raise TypeError(f"{kind} does not have all of the options {sorted(left_out)} that are to be left out.")
        options = {each.name: (field_hints[each.name], each.default) for each in fields(kind)}
        options = {option: options[option] for option in options if option not in left_out}
        groups[name] = kind, list(options)
        taken |= options

    def command(**given: Any) -> None:
        with plain_errors(given.get("journal"), given["context"].obj if "journal" in given else None):
            filled = {
                name: kind(**{option: given.pop(option) for option in options})
                for name, (kind, options) in groups.items()
            }
            function(**given, **filled)

    look: Any = command
    look.__name__, look.__doc__, look.__module__ = function.__name__, function.__doc__, function.__module__
    look.__annotations__ = {name: hint for name, (hint, _) in taken.items()}
    look.__signature__ = inspect.Signature([  # by name, so that options without defaults may stand anywhere
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for name, (hint, default) in taken.items()
    ])  # fmt: skip
    return command


def out_folder(suffix: str, help: str = "Result folder.", **more: Any) -> Any:
    """The option --out of a command that writes a folder."""
    shown = f"name of the table + -{suffix}"
    return typer.Option("--out", "-o", metavar="DIR", help=help, show_default=shown, **more)


def out_file(help: str) -> Any:
    """The option --out of a command that may write a file."""
    return typer.Option("--out", "-o", metavar="FILE", help=help)


Sheet = Annotated[str | None, in_table(metavar="NAME", help="Sheet of a workbook.")]
Decimal = Annotated[str | None, in_table(metavar="MARK", help="Decimal mark of a text table: . or ,")]
Thousands = Annotated[
    str | None, in_table(metavar="MARK", help="Mark between thousands in a text table: , (1,499) or . (1.499,5).")
]
Ridge = Annotated[
    float | None,
    in_model(help="Penalty on the squares of the coefficients.", show_default="0; 1e-5 for classes, counts and times"),
]
K = Annotated[int, typer.Option("--k", "-k", metavar="K", min=1, help="Number of columns.")]
Sizes = Annotated[str | None, in_search("--sizes", metavar="SIZES", show_default="1-10", help=
    "Numbers of columns to try: 1-10, or 1,2,5, or both: 1-5,8.")]  # fmt: skip
Seed = Annotated[int, in_search(help="What folds and searches are drawn from: same seed, same result.", min=0)]
Jobs = Annotated[int, in_search(help="Threads; -1 means all cores.")]
EngineName = Annotated[str, in_search("--engine", metavar="NAME", help="auto, numba, cuda or reference.")]
JournalFolder = Annotated[
    Path | None, in_search("--journal", metavar="DIR", help="Keep finished work here; the same command resumes.")
]
Saved = Annotated[Path, typer.Argument(help="A result folder, its result.json, or a file of SizeCurve.save.")]
Force = Annotated[bool, in_results("--force", help="Replace an older result.")]
ForceFile = Annotated[bool, typer.Option("--force", help="Replace an existing --out file.")]
AsJson = Annotated[bool, in_results("--json", help="Print JSON for machines instead of text.")]
Quiet = Annotated[bool, in_results("--quiet", "-q", help="No progress, no remarks.")]


@dataclass(frozen=True)
class TableOptions:
    """The table: its file, what its columns are, how it is read."""

    data: Annotated[Path | None, typer.Argument(help=
        "Table: .csv, .tsv, .txt, .dat (also .gz), .parquet, .feather, .arrow, .npz, .npy or .xlsx; a pattern in "
        "quotes, such as 'part-*.parquet', or a folder, for a table in parts.")] = None  # fmt: skip
    target: Annotated[
        str | None, in_table("--target", "-t", metavar="NAME", help="Column to predict; several: a,b,c.")
    ] = None
    drop: Annotated[Names, in_table(metavar="NAME", help=
        "Leave this column out; /^ab/ is a regular expression. Several: a,b, or repeat.")] = None  # fmt: skip
    keep: Annotated[Names, in_table(metavar="NAME", help=
        "Choose only from this column; /^ab/ is a regular expression. Several: a,b, or repeat.")] = None  # fmt: skip
    index: Annotated[str | None, in_table(metavar="NAME", help="Column of row names.")] = None
    leave_out: Annotated[Names, in_table("--leave-out", metavar="ROW", help=
        "Leave this row out, by its name or number. Several: a,b, or repeat.")] = None  # fmt: skip
    drop_text: Annotated[bool, in_table("--drop-text", help="Leave columns of text and dates out.")] = False
    categories: Annotated[Names, in_table(metavar="NAME", help=
        "Read the categories of this column as columns of 0 and 1, chosen together; /^ab/ is a regular expression. "
        "Several: a,b, or repeat.")] = None  # fmt: skip
    reference: Annotated[Names, in_table(metavar="NAME=CATEGORY", show_default="the most frequent one", help=
        "Category with which the others of its column are compared. Several: a=u,b=v, or repeat.")] = None  # fmt: skip
    missing: Annotated[Literal["drop-rows", "drop-columns"] | None, in_table("--missing", help=
        "What to leave out if values are missing.")] = None  # fmt: skip
    impute: Annotated[Literal["median", "knn"] | None, in_table("--impute", help=
        "Fill missing values from the training rows of each fold: by the median of the column, or from the nearest "
        "rows.")] = None  # fmt: skip
    preprocess: Annotated[str | None, in_table(metavar="STEPS", help=
        "What to do with the columns first, in each fold anew: some of snv, msc, savgol:WINDOW:ORDER:DERIVATIVE, "
        "log:SHIFT, centre, scale, standardize, with commas between.")] = None  # fmt: skip
    powers: Annotated[int, in_table(metavar="D", min=1, help="Add powers of the columns up to this one.")] = 1
    interactions: Annotated[bool, in_table("--interactions", help="Add the products of every two columns.")] = False
    sheet: Sheet = None
    decimal: Decimal = None
    thousands: Thousands = None
    stream: Annotated[bool | None, in_table("--stream/--no-stream", show_default="for large and tall tables", help=
        "Read the table once, in batches of rows, and keep only moments.")] = None  # fmt: skip
    weights: Annotated[str | None, in_table(metavar="NAME", help="Column of row weights.")] = None
    groups: Annotated[
        str | None, in_table(metavar="NAME", help="Column of groups; rows of a group are left out together.")
    ] = None


PlainTable = Annotated[TableOptions, Without("categories", "reference", "groups")]
"""Where nothing is held out, and single columns are chosen."""


@dataclass(frozen=True)
class ModelOptions:
    """What every model has: an intercept, columns that are always in."""

    center: Annotated[Literal["fold", "global", "none"], in_model("--center", help=
        "Intercept in every fold, means removed once, or no intercept.")] = "fold"  # fmt: skip
    always: Annotated[
        Names, in_model(metavar="NAME", help="Column that is in every model. Several: a,b, or repeat.")
    ] = None


@dataclass(frozen=True)
class LossOptions:
    """What is minimized."""

    loss: Annotated[LossName | None, in_model("--loss", show_default="squares; classes for text", help=
        "squares: the target is a number; logistic: one of two classes; multinomial: of more; poisson: a count; cox: "
        "a survival time.")] = None  # fmt: skip
    offset: Annotated[str | None, in_model(metavar="NAME", help=
        "Column that is added to the logarithm of the expected count (--loss poisson).")] = None  # fmt: skip
    time: Annotated[str | None, in_model(metavar="NAME", help="Column of survival times (--loss cox).")] = None
    event: Annotated[str | None, in_model(metavar="NAME", help=
        "Column that is 1 where the event happened at that time, 0 where it had not (--loss cox).")] = None  # fmt: skip


@dataclass(frozen=True)
class SearchOptions:
    """How supports are searched."""

    effort: Annotated[EffortName, in_search("--effort", help="How long to search.")] = "normal"
    method: Annotated[Literal["auto", "descend", "anneal"] | None, in_search(
        "--method", show_default="anneal with --schedule or --chains, else auto", help=
        "How to search: all methods, descents with kicks, or simulated annealing.")] = None  # fmt: skip
    schedule: Annotated[Literal["auto", "paper"], in_search("--schedule", help="How the walks are cooled.")] = "auto"
    chains: Annotated[int | None, in_search(help="Walks for each fit; the best one counts.", min=1)] = None
    polish: Annotated[bool, in_search("--polish/--no-polish", help=
        "Improve final fits by what the folds found and by a descent.")] = True  # fmt: skip
    prove: Annotated[bool, in_search("--prove/--no-prove", help=
        "Prove that fits are the best, and solve folds exactly, where it is cheap.")] = True  # fmt: skip


@dataclass(frozen=True)
class RunOptions:
    """What it runs on."""

    seed: Seed = 0
    jobs: Jobs = -1
    engine: EngineName = "auto"


@dataclass(frozen=True)
class ResultOptions:
    """How results are shown, and whether they may replace older ones."""

    force: Force = False
    as_json: AsJson = False
    quiet: Quiet = False
    config: Annotated[Path | None, in_results("--config", metavar="FILE", is_eager=True, callback=use_config, help=
        "Options from a TOML file; the command line takes precedence.")] = None  # fmt: skip

    @property
    def progress(self) -> bool | None:
        """For functions that show a bar where there is a terminal."""
        return False if self.quiet else None


EVERY_COLUMN = "all"
"""In place of a name, for signs."""
_SIGN = "Column whose coefficient must not be {}; all: every column. Several: a,b, or repeat."


@dataclass(frozen=True)
class LimitOptions:
    """What was asked about columns that belong together, and about signs of coefficients."""

    column_groups: Annotated[Path | None, in_model("--column-groups", metavar="FILE", help=
        "Table with the columns column and group: whole groups of columns are chosen, and sizes count groups.")
    ] = None  # fmt: skip
    one_per_group: Annotated[
        bool, in_model("--one-per-group", help="At most one column of each group instead.")
    ] = False  # fmt: skip
    min_distance: Annotated[float | None, in_model("--min-distance", metavar="D", min=0.0, help=
        "No two chosen columns closer than this: in units of their names if those are numbers, such as wavelengths, "
        "otherwise in places.")] = None  # fmt: skip
    hierarchy: Annotated[bool | None, in_model(
        "--hierarchy/--no-hierarchy", show_default="with --powers and --interactions", help=
        "A product such as a:b, a*b or a^2 only together with its factors.")] = None  # fmt: skip
    positive: Annotated[Names, in_model(metavar="NAME", help=_SIGN.format("negative"))] = None
    negative: Annotated[Names, in_model(metavar="NAME", help=_SIGN.format("positive"))] = None


def parse_sizes(text: str | None, least: int = 1) -> list[int] | None:
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
        if not least <= start <= end:
            raise ValueError(
                f"--sizes is {text!r}; expected numbers from {least} up, the smaller one first, such as 1-10."
            )
        if end > 1_000_000:
            raise ValueError(f"--sizes is {text!r}; expected numbers of columns, at most as many as the table has.")
        sizes.extend(range(start, end + 1))
    return sorted(set(sizes))


def parse_ridge(text: str) -> float | Literal["auto"] | list[float]:
    """A penalty from ``0.5``, "auto", or relative ridge terms to choose from, ``0,0.1,1``."""
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


def check_cv(text: str) -> None:
    """Refuse a kind of cross validation that `select_size` does not know."""
    from pairflip.selection.folds import EXPECTED_CV, parse_cv

    try:
        parse_cv(text)
    except ValueError:
        raise ValueError(f"--cv is {text!r}; expected {EXPECTED_CV}.") from None
