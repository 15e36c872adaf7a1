"""A selection for a paper: tables, figures, paragraphs, and the model as equation, function and ONNX."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflip.publish import latex, model, words
from pairflip.publish.figures import published_figures
from pairflip.report.curve_tables import column_table, size_table
from pairflip.report.figures_held_out import row_labels
from pairflip.report.frames import curve_tables
from pairflip.report.save import figure_bytes, made_folder, write_whole
from pairflip.text import clean, shorten

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

__all__ = ["left_out", "publish"]

_NEEDS = {"tables.xlsx": "openpyxl", "model.onnx": "onnx"}
_PUBLISHED = "183mm"  # the figures of the document
_MOST_ROWS = 1_048_575  # that a sheet of Excel has, below its heads
_MOST_CHARACTERS = 32_000  # of its cells


def left_out() -> list[str]:
    """Files that are not written because a package is missing, each as a sentence that says which."""
    return [
        f"{file} is left out: it needs {package}; install it with: pip install 'pairflip[publish]'"
        for file, package in _NEEDS.items()
        if find_spec(package) is None
    ]


def publish(
    curve: SizeCurve,
    folder: str | os.PathLike[str],
    target: str | None = None,
    row_names: Sequence[object] | None = None,
) -> list[Path]:
    """Write what a paper needs into a folder, which is made if missing; returns the paths.

    The model is that of the recommended size. Everything is computed before the first file is written.
    """
    files = _files(curve, target or "y", row_names)
    home = made_folder(folder, "what is published")
    made_folder(home / "figures", "the figures")
    return [write_whole(home / name, contents, "the file") for name, contents in files.items()]


def _files(curve: SizeCurve, target: str, row_names: Sequence[object] | None) -> dict[str, bytes]:
    """Contents by name."""
    linear, after = model.model_of(curve, target), words.preprocessing(curve)
    figures = published_figures(curve, row_names)
    methods, results = words.methods(curve, target), words.results(curve)
    shown = [(f"figures/{name}_{_PUBLISHED}.pdf", caption + after) for name, (caption, _) in figures.items()]
    parts = [("Methods", ["methods.tex"]), ("Results", ["results.tex", "equation.tex"])]
    parts.append(("Tables", ["table_coefficients.tex", "table_sizes.tex"]))
    texts = {
        "methods.txt": f"{methods}\n",
        "methods.tex": f"{latex.escaped(methods)}\n",
        "results.txt": "\n".join([*results, ""]),
        "results.tex": "\n\n".join([*map(latex.escaped, results), ""]),
        "references.bib": words.BIBTEX.format(version=curve.version),
        "table_coefficients.tex": latex.table(column_table(curve, linear.size), "coefficients", after),
        "table_sizes.tex": latex.table(size_table(curve), "sizes", after),
        "equation.txt": model.text_equation(linear),
        "equation.tex": model.latex_equation(linear),
        "equation.json": model.json_equation(linear),
        "model.py": model.python_function(linear, curve.version),
        "paper.tex": latex.document(f"Which columns predict {clean(target)}", parts, shown),
    }
    files = {name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()}
    binary: dict[str, Callable[[], bytes]] = {
        "tables.xlsx": lambda: _workbook(curve, linear, row_labels(curve, row_names)),
        "model.onnx": lambda: model.onnx_model(linear, curve.version),
    }
    files |= {name: made() for name, made in binary.items() if find_spec(_NEEDS[name]) is not None}
    for name, (_, drawings) in figures.items():
        for width, figure in drawings.items():
            files |= {f"figures/{name}_{width}.{kind}": figure_bytes(figure, kind) for kind in ("pdf", "svg")}
    return files


def _workbook(curve: SizeCurve, linear: model.LinearModel, row_names: Sequence[str]) -> bytes:
    """All sizes in the first sheet, the recommended one in the others, then what has to be known about columns."""
    import pandas as pd

    frames = {name.removesuffix(".csv"): frame for name, frame in curve_tables(curve, row_names).items()}
    first = frames.pop("curve")
    chosen = {name: frame[frame["size"] == linear.size] if "size" in frame else frame for name, frame in frames.items()}
    notes = {"notes": pd.DataFrame({"note": linear.notes})} if linear.notes else {}
    buffer = io.BytesIO()
    with pd.ExcelWriter(buffer, engine="openpyxl") as writer:
        for name, frame in ({"sizes": first} | chosen | notes).items():
            cut = frame.head(_MOST_ROWS).rename(columns=_cell).map(_cell)
            cut.to_excel(writer, sheet_name=name, index=False, freeze_panes=(1, 0), inf_rep="")
            for cell in (cell for row in writer.sheets[name].iter_rows() for cell in row if cell.data_type in "fes"):
                cell.data_type = "s"  # a text is a text and never a formula,
                cell.quotePrefix = str(cell.value)[:1] in ("=", "+", "-", "@")  # not even when a reader edits the cell
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    return shorten(clean(value), _MOST_CHARACTERS) if isinstance(value, str) else value
