"""A page without a script: an answer, then sections of text, figures and tables.

Comparisons, probabilities of models and samples of sets have one; each says what stands on it, and none has markup.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from pairflip.report.done import Pairs
from pairflip.report.halves import Piece
from pairflip.report.page_files import content_policy, page_text, template_environment
from pairflip.report.registry import FigureTable
from pairflip.report.save import write_whole
from pairflip.report.style import page_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Section:
    """A part of the page: texts, a figure (for a wide page and for a narrow one), tables by name.

    A table with a `summary` is closed at first. `dropped` is what was left out of the table; None: nothing is said.
    """

    title: str
    texts: Sequence[str] = ()
    svgs: Sequence[Markup] = ()
    caption: str = ""
    tables: Mapping[str, FigureTable] = field(default_factory=dict)
    dropped: Pairs | None = None
    note: str = ""


@dataclass(frozen=True)
class Sheet:
    """What the page says.

    Attributes
    ----------
    title, version, lead : str
        Heading, version of pairflip that computed it, and what it was computed from.
    answer, cautions : pieces (text, is a name), sequence of str
        What a reader is told first, and what to doubt.
    sections : sequence of Section
        The rest, in order.
    target : str, optional
        Name of the target.
    conditions : sequence of str
        What the numbers are conditional on.
    mood : {"", "fairly", "not"}
        Whether the answer is shown as sure, as one with reasons to doubt it, or as neither.
    """

    title: str
    version: str
    lead: str
    answer: Sequence[Piece]
    cautions: Sequence[str]
    sections: Sequence[Section]
    target: str | None = None
    conditions: Sequence[str] = ()
    mood: Literal["", "fairly", "not"] = ""

    def render(self) -> str:
        """The page as text; the same sheet gives the same text."""
        style = page_text("style.css")
        template = template_environment().get_template("sheet.html.j2")
        return template.render(sheet=self, style=Markup(style), policy=content_policy(style))

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page as one HTML file that needs nothing else, whole or not at all, and return its path."""
        return write_whole(path, self.render().encode("utf-8", "replace"), "the report")


def both_widths(
    draw: Callable[[Any, Axes], None],
    numbers: Any,
    label: str,
    shape: Callable[[Any, bool], tuple[float, float]],
) -> list[Markup]:
    """A figure for a wide page and for a narrow one; the style sheet shows one of them."""
    from pairflip.report.renderer import drawn

    return [
        drawn(draw, numbers, page_axes(*shape(numbers, wide), fixed=False), label, {"class": f"chart {kind}"})
        for kind, wide in (("wide", True), ("narrow", False))
    ]
