"""Held-out error over size and temperature: whether it pays not to cool all the way down, in words and as a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.present.registry import FigureTable, PageFigure, Room
from pairflip.present.style import COLOURS, MARKERS, grid, label_axes, legend_above, new_axes, plain_log, tell
from pairflip.selection.surface import Surface, SurfacePoint, Warmer
from pairflip.text import aligned, aligned_plus_minus, number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.selection.curve import SizeCurve

_DRAWN = 6  # sizes that have a line of their own
_HIGH = 3.0  # errors above so many times the lowest are cut off, unless the coldest ones are as high
_TOO_FAR = 100.0  # a first step so much hotter than the second is left out
_STILL = 0.05  # of the lowest error: what changes less is not drawn any more
_AXIS = {"greedy": "inverse temperature β (scale-free)", "absolute": "inverse temperature β"}


@dataclass(frozen=True)
class SurfaceLines:
    """Errors (n, T) of some sizes (n,) against `betas` (T,): of single supports and of averaged predictions.

    `axis` is what the axis of errors shows; `lowest` and `averaged_lowest` are (size, beta, error).
    """

    sizes: NDArray[np.int64]
    betas: Floats
    unit: str
    single: Floats
    averaged: Floats
    axis: tuple[float, float]
    lowest: tuple[int, float, float]
    averaged_lowest: tuple[int, float, float]
    chains: int
    tried: int


def surface_lines(curve: SizeCurve) -> SurfaceLines:
    """The numbers of the figure, of a curve with errors over size and temperature."""
    surface = _surface(curve)
    sizes, steps = _sizes(surface), _steps(surface)
    single, averaged = surface.cv_error[np.ix_(sizes, steps)], surface.averaged_error[np.ix_(sizes, steps)]
    low = float(min(single.min(), averaged.min()))
    high = min(float(single.max()), max(_HIGH * low, 1.1 * float(single[:, -1].max())))
    return SurfaceLines(
        sizes=surface.sizes[sizes],
        betas=surface.betas[steps],
        unit=surface.unit,
        single=single,
        averaged=averaged,
        axis=(low, high),
        lowest=_lowest(surface, averaged=False),
        averaged_lowest=_lowest(surface, averaged=True),
        chains=surface.chains,
        tried=surface.sizes.size,
    )


def _lowest(surface: Surface, *, averaged: bool) -> tuple[int, float, float]:
    """Size, beta of the schedule and error where the error is lowest."""
    place = surface.place(averaged=averaged)
    return place.size, float(surface.betas[place.step]), place.error


def _surface(curve: SizeCurve) -> Surface:
    if curve.surface is None:
        raise ValueError(
            "this curve has no errors at other temperatures; expected one of select_size(..., surface=True)."
        )
    return curve.surface


def _sizes(surface: Surface) -> NDArray[np.int64]:
    """Places of the sizes that are drawn: those that did best, the first, the last, and some between."""
    s = surface.sizes.size
    wanted = [
        *(surface.cv_error[:, t].argmin() for t in (surface.place().step, -1)),
        surface.averaged_error.min(axis=1).argmin(),
        *(0, s - 1),
        *np.linspace(0, s - 1, _DRAWN).round().astype(int),
    ]
    return np.sort(np.array(list(dict.fromkeys(int(at) for at in wanted))[:_DRAWN]))


def _steps(surface: Surface) -> NDArray[np.int64]:
    """Steps that are drawn: without a start at infinite temperature, and without the end, where little changes.

    The lowest errors are drawn in any case.
    """
    steps = np.flatnonzero(surface.betas > 0)
    while steps.size > 1 and surface.betas[steps[1]] > _TOO_FAR * surface.betas[steps[0]]:
        steps = steps[1:]
    both = np.concatenate([surface.cv_error, surface.averaged_error])[:, steps]
    moving = np.flatnonzero((np.abs(both - both[:, -1:]) > _STILL * both.min()).any(axis=0))
    last = max(surface.place(averaged=averaged).step for averaged in (False, True))
    end = max(moving[-1] + 3 if moving.size else 0, int(np.searchsorted(steps, last)) + 1)
    return np.asarray(steps[:end] if moving.size else steps[-1:])


def surface_words(curve: SizeCurve) -> str:
    """Sentences of the answer: the best size and temperature, and whether colder ones do as well; "" without them."""
    surface = curve.surface
    if surface is None:
        return ""
    best, coldest = surface.place(), surface.place(coldest=True)
    text = (
        f" Of single sets drawn at the temperatures of the annealing, those of {plural(best.size, 'column')} at "
        f"β = {number(best.beta, 3)} had the lowest error on held-out rows (RMSE {_rmse(best)}); "
        f"{_against(surface.warmer, coldest)}."
    )
    if surface.chains > 1:
        best, coldest = (surface.place(averaged=True, coldest=cold) for cold in (False, True))
        text += (
            f" The mean prediction of {surface.chains} such sets did best with {plural(best.size, 'column')} at "
            f"β = {number(best.beta, 3)} (RMSE {_rmse(best)}); {_against(surface.averaged_warmer, coldest)}."
        )
    return f"{text} sample(problem, {best.size}, {best.beta:.4g}) draws such sets from all rows."


def _against(warmer: Warmer, coldest: SurfacePoint) -> str:
    """How the coldest sets compare, in words."""
    if not warmer.overall > 0:
        return "the coldest ones did as well"
    times = f"{warmer.overall / warmer.overall_se:.1f} standard errors" if warmer.overall_se > 0 else "without noise"
    how = "a clear difference" if warmer.clearly else "no clear difference"
    return f"the coldest ones had {_rmse(coldest)} at best, with {plural(coldest.size, 'column')}: {how} ({times})"


def _rmse(place: SurfacePoint) -> str:
    return number(float(np.sqrt(2.0 * place.error)), 3)


def plot_surface(curve: SizeCurve, ax: Axes | None = None, averaged: bool = False) -> Axes:
    """Draw cv_error against inverse temperature, one line for each of some sizes.

    Parameters
    ----------
    curve
        A curve of ``select_size(..., surface=True)``.
    ax
        Where to draw; a new figure if absent.
    averaged
        Errors of predictions averaged over the chains, instead of those of single supports.
    """
    ax = new_axes(ax)
    (draw_averaged if averaged else draw_single)(surface_lines(curve), ax)
    return ax


def draw_single(lines: SurfaceLines, ax: Axes) -> None:
    """Errors of single supports."""
    _draw(lines, lines.single, lines.lowest, "cv_error, single sets", ax)


def draw_averaged(lines: SurfaceLines, ax: Axes) -> None:
    """Errors of averaged predictions."""
    _draw(lines, lines.averaged, lines.averaged_lowest, f"cv_error, mean of {lines.chains} chains", ax)


def _draw(lines: SurfaceLines, errors: Floats, lowest: tuple[int, float, float], what: str, ax: Axes) -> None:
    plain_log(ax, "x", float(lines.betas[0]), float(lines.betas[-1]))
    grid(ax)
    betas = [number(beta, 3) for beta in lines.betas]
    for at, (size, error) in enumerate(zip(lines.sizes.tolist(), errors, strict=True)):
        columns = plural(size, "column")
        (line,) = ax.plot(
            lines.betas,
            error,
            color=COLOURS[at],
            marker=MARKERS[at],
            markersize=3.5,
            linewidth=2.0 if size == lowest[0] else 1.1,
            label=f"size {size}",
        )
        tell(line, "{0}, β {1}: {2} {3}", columns, betas, what, [number(e, 3) for e in error])
    ax.plot(
        [lowest[1]], [lowest[2]], marker="o", markersize=12, linestyle="none", markerfacecolor="none",
        markeredgewidth=1.8, color=COLOURS[1], label="lowest",
    )  # fmt: skip
    low, high = lines.axis
    ax.set_ylim(low - 0.08 * (high - low or low), high + 0.04 * (high - low or low))
    label_axes(ax, _AXIS[lines.unit], what)
    legend_above(ax)


def _labels(lines: SurfaceLines) -> list[str]:
    return [
        f"Line chart of {what} against inverse temperature, one line for each of {plural(lines.sizes.size, 'size')}. "
        f"Lowest: {plural(size, 'column')} at β {number(beta, 3)}. The table below the figure has the numbers."
        for what, (size, beta, _) in (
            ("cv_error of single sets", lines.lowest),
            ("cv_error of predictions averaged over chains", lines.averaged_lowest),
        )
    ]


def _caption(curve: SizeCurve, lines: SurfaceLines) -> str:
    some = f", for {lines.sizes.size} of {lines.tried} sizes" if lines.sizes.size < lines.tried else ""
    scale = (
        " β is in units of one over the energy that forward selection leaves on the same rows, so that folds can be "
        "averaged."
    )
    return (
        f"Error on held-out rows of the sets where the annealing of each fold stood while it was cooled{some}: first "
        f"the mean error of single sets, then the error of the mean of the predictions of {lines.chains} chains. It "
        "gets colder to the right. To the left of a minimum sets are still drawn too much at random, to the right they "
        f"fit the noise of their training rows.{scale if lines.unit == 'greedy' else ''} Much higher errors of hot "
        "sets are cut off. The lowest of so many errors is low by luck, too; what is recommended above does not "
        "depend on it."
    )


def _table(curve: SizeCurve, lines: SurfaceLines, room: Room) -> FigureTable:
    surface = _surface(curve)
    columns: list[list[str]] = [[str(size) for size in surface.sizes.tolist()]]
    kinds = ((surface.cv_error, surface.warmer), (surface.averaged_error, surface.averaged_warmer))
    for error, warmer in kinds:
        at = error.argmin(axis=1)
        columns += [
            aligned(error[:, -1], least=3),
            aligned(error.min(axis=1), least=3),
            [number(beta, 3) for beta in np.take_along_axis(surface.absolute_betas, at[:, None], axis=1)[:, 0]],
            aligned_plus_minus(warmer.gain.tolist(), warmer.gain_se.tolist()),
        ]
    heads = [
        "Size",
        *(f"{kind}: {what}" for kind in ("Single", "Mean") for what in ("coldest", "lowest", "at β", "gain")),
    ]
    rows = list(map(list, zip(*columns, strict=True)))
    return FigureTable(
        "Table: error by size and temperature",
        heads,
        rows,
        "cv_error of single sets and of the mean of the chains: at the coldest temperature, at the best one, and how "
        "much is gained (with the standard error of the difference); β on all rows",
    )


SURFACE = PageFigure(
    "surface",
    "How cold",
    lambda curve, size, room: surface_lines(curve),
    (draw_single, draw_averaged),
    labels=_labels,
    titles=lambda lines: ["Single sets", f"Mean of {lines.chains} chains"],
    caption=_caption,
    table=_table,
    shape=lambda lines, wide: (400.0, 340.0),
    applies=lambda curve: curve.surface is not None,
)
