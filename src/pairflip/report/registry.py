"""What a figure is: numbers (computed from a record, and not while drawing), a drawing of them, the words around it.

To add one, write these and `register` a `PageFigure`: it is then in the page, with its text alternative and its table,
and among the files of `save_figures`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.report.style import LEGEND_LINES, TEXT, new_axes
from pairflip.text import aligned, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.selection.curve import SizeCurve

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
LABEL = 28
"""Characters of a name beside a figure."""
BELOW = "The table below the figure has the numbers."
"""How most text alternatives end."""


@dataclass(frozen=True)
class FigureLimits:
    """How much of a curve there is room for, and what its rows are called (None: numbers from 1)."""

    columns: int = 40
    paths: int = 60
    points: int = 5000
    chains: int = 64
    steps: int | None = None
    rows: Sequence[str] | None = None


@dataclass(frozen=True)
class FigureTable:
    """The numbers behind a figure as texts; one with a `summary` is closed at first."""

    summary: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    names: int = 1  # how many of the first columns are words
    by_size: bool = False  # whether each line is a size
    recommended: int | None = None  # the line of the recommended size
    lowest: Mapping[int, int] = field(default_factory=dict)  # by column: the line of its lowest value

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Sequence[str]] | Iterable[tuple[str, Sequence[str]]],
        caption: str,
        summary: str = "",
        **more: Any,
    ) -> FigureTable:
        """A table of columns by their heads, or, where heads may be alike, of pairs (head, texts)."""
        heads, texts = zip(*(columns.items() if isinstance(columns, Mapping) else columns), strict=True)
        return cls(summary, heads, list(zip(*texts, strict=True)), caption, **more)


@dataclass(frozen=True)
class FigureWords:
    """What is said about a figure."""

    labels: Sequence[str]  # text alternatives, one for each panel
    caption: str = ""
    table: FigureTable | None = None  # the numbers


def _shape(numbers: Any, wide: bool) -> tuple[float, float]:
    return (820.0, 380.0) if wide else (350.0, 340.0)


@dataclass(frozen=True)
class PageFigure:
    """One figure of the page and of the files.

    Parameters
    ----------
    name
        Name of the files, and of the table in the page.
    title
        Heading in the page.
    numbers
        (curve, size shown, limits) to whatever `draw` needs.
    draw
        One function (numbers, axes) for each panel of the figure.
    words
        (curve, numbers, limits) to text alternatives, caption and table; by default the title is the text alternative.
    titles
        Numbers to titles of the panels in files, where no caption stands below them.
    shape
        (numbers, wide page or narrow one) to width and height of a panel in pixels.
    follows
        Whether it shows one size, that of the slider; its panels stand side by side.
    place
        Where in the page: at the errors by size, after the columns, or in the closed part about the search.
    applies
        Whether a curve has what it shows.
    """

    name: str
    title: str
    numbers: Callable[[SizeCurve, int, FigureLimits], Any]
    draw: tuple[Callable[[Any, Axes], None], ...]
    words: Callable[[SizeCurve, Any, FigureLimits], FigureWords] | None = None
    titles: Callable[[Any], Sequence[str]] | None = None
    shape: Callable[[Any, bool], tuple[float, float]] = _shape
    follows: bool = False
    place: Literal["sizes", "main", "search"] = "main"
    applies: Callable[[SizeCurve], bool] = lambda curve: True

    def words_about(self, curve: SizeCurve, numbers: Any, limits: FigureLimits) -> FigureWords:
        """What is said about the figure."""
        return self.words(curve, numbers, limits) if self.words else FigureWords([f"{self.title}."] * len(self.draw))

    def plot(self, numbers: Any, ax: Axes | None, width: float = 6.0, height: float = 3.6, panel: int = 0) -> Axes:
        """A panel with its title, on the given axes or in a new figure of this size in inches."""
        ax = new_axes(ax, width, height)
        self.draw[panel](numbers, ax)
        title = self.titles(numbers)[panel] if self.titles else ""
        if title:
            look: dict[str, Any] = {"fontsize": TEXT + 0.5, "loc": "left", "parse_math": False}
            ax.set_title(title, pad=6 + 1.75 * TEXT * LEGEND_LINES.get(ax, 0), **look)
        return ax


def part_of(shown: int, total: int, word: str) -> str:
    """``5 of 12 columns``, or ``all 12 columns``."""
    return f"{shown:,} of {plural(total, word)}" if shown < total else f"all {plural(total, word)}"


def aligned_rows(values: NDArray[np.float64], digits: int = 4, least: int = 2) -> list[list[str]]:
    """A table of numbers as texts, all of them with the same decimals or the same digits."""
    texts = np.array(aligned(values.ravel(), digits, least), dtype=object)
    return list(texts.reshape(values.shape).tolist())


def evenly(count: int, most: int) -> Ints:
    """At most so many places of 0, 1, ..., count - 1, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


FIGURES: dict[str, PageFigure] = {}
"""All figures by name, in the order of the page."""


def figures_of(curve: SizeCurve) -> list[PageFigure]:
    """The registered figures that apply to a curve."""
    return [figure for figure in FIGURES.values() if figure.applies(curve)]


def register(figure: PageFigure) -> None:
    """Put a figure into the page and among the files."""
    if figure.name in FIGURES:
        raise ValueError(f"a figure named {figure.name!r} is registered already; give the new one another name.")
    FIGURES[figure.name] = figure
