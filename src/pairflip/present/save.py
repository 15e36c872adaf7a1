"""All figures of a curve as files."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflip.present.cooling import plot_anneal
from pairflip.present.files import write_whole
from pairflip.present.paths import plot_paths
from pairflip.present.predictions import plot_predictions
from pairflip.present.selection_counts import plot_selection_counts
from pairflip.present.size_curve import plot_size_curve
from pairflip.present.style import figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pairflip.crossval.curve import SizeCurve

_SAME_BYTES: dict[Any, Any] = {
    "svg.hashsalt": "pairflip",
    "svg.fonttype": "none",
}  # text stays text, ids do not depend on the day
_KINDS: dict[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None}},
    "png": {"dpi": 150, "metadata": {"Software": None}},
}


def save_figures(curve: SizeCurve, folder: str | os.PathLike[str]) -> list[Path]:
    """Write every figure as SVG and PNG into `folder` (made if missing); the same curve gives the same bytes.

    Returns the paths: ``size_curve``, ``selection_counts``, ``paths``, ``predictions``, ``annealing``, each as
    ``.svg`` and ``.png``.
    """
    home = Path(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise type(error)(
            f"Cannot make the folder {str(home)!r} for the figures: {reason}; name another one."
        ) from None
    return [path for stem, figure in draw_all(curve) for path in _save(figure, home, stem)]


def draw_all(curve: SizeCurve) -> Iterator[tuple[str, Figure]]:
    """(name, figure) of each figure, drawn one by one."""
    yield "size_curve", figure_of(plot_size_curve(curve))
    yield "selection_counts", figure_of(plot_selection_counts(curve))
    yield "paths", figure_of(plot_paths(curve))
    yield "predictions", _pair(plot_predictions, curve, ("prediction", "residual"), 8.6, 4.2)
    yield "annealing", _pair(plot_anneal, curve, ("energy", "acceptance"), 8.6, 3.6)


def _pair(
    plot: Callable[..., Any], curve: SizeCurve, quantities: tuple[str, str], width: float, height: float
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    for ax, quantity in zip(figure.subplots(1, 2), quantities, strict=True):
        plot(curve, ax=ax, quantity=quantity)
    return figure


def _save(figure: Figure, home: Path, stem: str) -> list[Path]:
    import matplotlib

    paths = []
    for kind, options in _KINDS.items():
        buffer = io.BytesIO()
        with matplotlib.rc_context(_SAME_BYTES), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")  # emoji in names
            figure.savefig(buffer, format=kind, **options)
        paths.append(write_whole(home / f"{stem}.{kind}", buffer.getvalue(), "the figure"))
    return paths
