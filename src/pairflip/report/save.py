"""Writing files whole or not at all, and all figures of a curve as files."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflip.report.registry import FigureLimits, figures_of
from pairflip.report.style import any_glyph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pairflip.selection.curve import SizeCurve

# Text stays text, and ids do not depend on the day.
_SAME_BYTES: dict[Any, Any] = {"svg.hashsalt": "pairflip", "svg.fonttype": "none", "pdf.fonttype": 42}
_KINDS: dict[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None}},
    "png": {"dpi": 150, "metadata": {"Software": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}


def write_whole(path: str | os.PathLike[str], data: bytes, what: str) -> Path:
    """Write a file whole or not at all: under another name in the same folder first, then renamed."""
    path = Path(path)
    part = path.with_name(f".pairflip-{secrets.token_hex(6)}.part")
    try:
        try:
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise type(error)(
            f"Cannot write {what} {str(path)!r}: {reason}; name a file in a folder that exists and can be written."
        ) from None
    return path


def save_figures(curve: SizeCurve, folder: str | os.PathLike[str]) -> list[Path]:
    """Write every figure as SVG and PNG into `folder` (made if missing); the same curve gives the same bytes.

    Returns the paths: ``size_curve``, ``half_samples`` (where there are any), ``selection_counts``, ``paths``,
    ``predictions``, ``annealing`` and what else is registered, each as ``.svg`` and ``.png``.
    """
    from matplotlib.figure import Figure

    size, limits, drawings = curve.answer.shown, FigureLimits(), {}
    for each in figures_of(curve):
        numbers = each.numbers(curve, size, limits)
        width, height = each.shape(numbers, True)
        panels = len(each.draw)
        figure = Figure(figsize=(panels * width / 100, height / 100 + 0.3), layout="constrained")
        for panel, ax in enumerate(figure.subplots(1, panels, squeeze=False)[0]):
            each.plot(numbers, ax, panel=panel)
        drawings[each.name] = figure
    return save_all(drawings, folder)


def save_all(figures: Mapping[str, Figure], folder: str | os.PathLike[str]) -> list[Path]:
    """Write figures by name as SVG and PNG into `folder` (made if missing); the same figure gives the same bytes."""
    home = made_folder(folder, "the figures")
    return [
        write_whole(home / f"{name}.{kind}", figure_bytes(figure, kind), "the figure")
        for name, figure in figures.items()
        for kind in ("svg", "png")
    ]


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """A figure as the contents of an SVG, PNG or PDF file; the same figure gives the same bytes."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context(_SAME_BYTES), any_glyph():
        figure.savefig(buffer, format=kind, **_KINDS[kind])
    return buffer.getvalue()


def made_folder(folder: str | os.PathLike[str], what: str) -> Path:
    """A folder, made if missing."""
    home = Path(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise type(error)(f"Cannot make the folder {str(home)!r} for {what}: {reason}; name another one.") from None
    return home
