"""`pairflip compare`: its search beside other methods, on the same folds of your table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairflip.cli import options as o
from pairflip.cli.data import load
from pairflip.cli.errors import plain_errors, say, typed
from pairflip.cli.result_folder import FolderContents, default_folder, refuse_folder_of
from pairflip.cli.signature import Without
from pairflip.cli.subjects import ModelOptions, ResultOptions, TableOptions
from pairflip.cli.table_file import json_list

if TYPE_CHECKING:
    from pairflip.comparison import Comparison

FILES = frozenset({"compare.html", "comparison.csv", "methods.csv", "comparison.json", "figures"})
CONTENTS = FolderContents(FILES, "comparison.json")
_KNOWN = (
    "quick, normal, thorough, averaged (of pairflip); omp, forward, backward, lasso, lassocv, pls, amp, amp-mean, "
    "abess, skglm"
)
Methods = Annotated[
    str | None,
    typer.Option("--methods", metavar="NAMES", help=f"Which methods, separated by commas: {_KNOWN}.",
                 show_default="all"),
]  # fmt: skip
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Result folder.", show_default="name of the table + -compared"),
]
Cv = Annotated[
    str,
    typer.Option("--cv", metavar="CV", help="10: ten folds; 5x10: ten folds, five times; loo: leave one row out; "
                 "blocks:5: five blocks of neighbouring rows, for tables in the order of time."),
]  # fmt: skip


def compare(
    context: typer.Context,
    *,
    table: Annotated[TableOptions, Without("categories")],
    sizes: o.Sizes = None,
    cv: Cv = "10",
    methods: Methods = None,
    model: ModelOptions,
    seed: o.Seed = 0,
    out: Out = None,
    results: ResultOptions,
) -> None:
    """Compare pairflip with OMP, LASSO, stepwise selection, PLS, AMP, abess and skglm on the same folds.

    Example: pairflip compare data.csv --target y --sizes 1-20
    """
    with plain_errors():
        from pairflip.cli.result_folder import check_folder
        from pairflip.comparison import compare as run
        from pairflip.comparison.registry import chosen_peers
        from pairflip.interrupt import exit_code

        o.check_cv(cv)
        named = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
        chosen_peers(named, None)  # what is wrong with the names is said before the table is read
        folder = default_folder(table.data, "compared") if out is None else out
        check_folder(folder, results.force, CONTENTS)
        refuse_folder_of(folder, table.data)
        loaded = load(table)
        problem = loaded.problem(model, quiet=results.quiet)
        found = run(
            problem, o.parse_sizes(sizes), cv, methods=named, groups=loaded.groups, seed=seed,
            progress=results.progress,
        )  # fmt: skip
        about = {"source": loaded.table.source, "target": loaded.table.target}
        command = typed(context)
        _write(found, folder, results.force, command, about)
        _show(found, folder, results.as_json, about)
        if found.interrupted:
            say("interrupted; the methods that were finished are shown.")
            raise typer.Exit(exit_code())


def _write(found: Comparison, folder: Path, force: bool, command: str, about: dict[str, str]) -> None:
    """The result folder: the page, the figures, both tables, everything as JSON."""
    from pairflip.cli.result_files import write_csv
    from pairflip.cli.result_folder import new_folder
    from pairflip.report import write_report
    from pairflip.report.record_pages import save_comparison_figures

    with new_folder(folder, force, CONTENTS) as part:
        sized = found.to_pandas()
        sized["columns"] = [json_list(names) for names in sized["columns"]]
        for name, frame in (("comparison.csv", sized), ("methods.csv", found.summary_table())):
            write_csv(frame, part / name)
        record = {**found.to_json(), "table": about, "command": command}
        (part / CONTENTS.mark).write_text(json.dumps(record, allow_nan=False) + "\n", encoding="utf-8")
        title = f"{about['source']}: methods that predict {about['target']}"
        write_report(found, part / "compare.html", title=title, command=command, extra={"Table": about["source"]})
        save_comparison_figures(found, part / "figures")


def _show(found: Comparison, folder: Path, as_json: bool, about: dict[str, str]) -> None:
    from pairflip.cli.shown import print_json, print_rows, print_text
    from pairflip.report.comparison_words import HEADS, explanation, method_rows, sentence
    from pairflip.text import lower_heads, visible

    if as_json:
        print_json({**found.to_json(), "table": about})
        return
    print_text(sentence(found))
    typer.echo()
    print_rows(lower_heads(HEADS), method_rows(found))
    typer.echo()
    print_text(explanation(found))
    typer.echo(f"Page: {visible(str(folder / 'compare.html'))}")
    typer.echo(f"Tables and figures: {visible(str(folder))}")
