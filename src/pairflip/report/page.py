"""The page: one HTML file that needs nothing else, made of an answer, sections of text, figures and tables.

A curve, a comparison, probabilities of models and samples of sets each say what stands on their page; the markup is in
the template alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from pairflip.report.registry import FigureTable, PageFigure
from pairflip.report.save import write_whole
from pairflip.report.vocabulary import Paragraph, ToldNumber, pieces
from pairflip.selection.after_selection import with_posterior
from pairflip.selection.curve import SizeCurve
from pairflip.text import clean, number, shorten

if TYPE_CHECKING:
    from pairflip.comparison.record import Comparison
    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples


Pairs = list[tuple[str, str]]
_LEFT_OUT = 200  # columns and rows left out of the table that are listed
_ENTRIES = 12  # of a nested setting


@dataclass(frozen=True)
class About:
    """What is known about a run beside its record; the parameters of `write_report`."""

    title: str | None = None
    target: str | None = None
    dropped: Iterable[str | tuple[str, str]] = ()
    command: str | None = None
    extra: Mapping[str, object] | None = None
    row_names: Sequence[object] | None = None

    def facts(self, record_facts: Pairs) -> Pairs:
        """Facts of a record, with the command before them and what the caller adds behind."""
        first = [("Command", self.command)] if self.command else []
        more = [(str(key), _text(value)) for key, value in (self.extra or {}).items()]
        return [(clean(key), clean(value)) for key, value in (*first, *record_facts, *more)]


@dataclass(frozen=True)
class Drawing:
    """A figure in the page: one variant, or one for each size where it follows the slider."""

    variants: Sequence[tuple[Sequence[Markup], str]]  # panels (or widths) and caption
    name: str = ""
    title: str = ""
    follows: bool = False
    table: FigureTable | None = None  # closed at first


@dataclass(frozen=True)
class Section:
    """A section of the page; a table with a `summary` is closed at first."""

    title: str
    parts: Sequence[str | Drawing | Mapping[str, FigureTable]]  # sentences, figures, tables by name
    name: str = ""  # of the heading, for links
    follows: bool = False  # whether the heading ends with the size of the slider
    following: str = ""  # the text of each size that stands first
    closed: bool = False  # whether all of it is closed at first
    stand_ins: FigureTable | None = None
    dropped: Pairs | None = None  # what was left out of the table; None: nothing is said
    notes: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True)
class Page:
    """What the page says."""

    title: str
    version: str  # of pairflip that computed it
    lead: str  # what it was computed from
    cautions: Sequence[str]
    sections: Sequence[Section]
    answer: str = ""
    headline: str = ""
    tiles: Sequence[ToldNumber] = ()
    bullets: Sequence[Paragraph] = ()
    more: Sequence[Paragraph] = ()  # closed at first, with the cautions where there are bullets
    mood: str = ""  # "fairly" sure, "not" sure, "nothing" found
    conditions: Sequence[str] = ()
    conditions_title: str = "What these numbers suppose"
    data: Mapping[str, Any] | None = None  # what the slider needs: sizes, the one shown, texts and tables of each


def what_was_done(
    about: About, facts: Pairs, settings: Mapping[str, Any], caption: str, note: str, notes: Sequence[str] = ()
) -> Section:
    """The last section: data, version, time and settings, what was left out, notes of the run."""
    tables = {"facts": FigureTable("", ["What", "Value"], about.facts(facts), "Data, version, time", 2)}
    if settings:
        tables["settings"] = FigureTable("Settings", ["Setting", "Value"], flat(settings), caption, 2)
    pairs = [(item, "") if isinstance(item, str) else (item[0], item[1]) for item in about.dropped]
    dropped = [(clean(name), clean(why) if why else "") for name, why in pairs[:_LEFT_OUT]]
    if len(pairs) > _LEFT_OUT:
        dropped.append((f"and {len(pairs) - _LEFT_OUT:,} more", ""))
    return Section("What was done", [tables], closed=True, dropped=dropped, notes=notes, note=note)


def drawing(figure: PageFigure, numbers: Any, label: str, caption: str) -> Drawing:
    """A figure of one panel in the page, without the slider."""
    from pairflip.report.renderer import page_svgs

    return Drawing([(page_svgs(figure, [numbers], [[label]])[0], caption)])


def flat(settings: Mapping[str, Any], prefix: str = "") -> Pairs:
    """Settings as flat pairs, nested ones with a dot and of these no more than can be read."""
    pairs: Pairs = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            pairs += flat(dict(islice(value.items(), _ENTRIES)), f"{prefix}{key}.")
            if len(value) > _ENTRIES:
                pairs.append((clean(f"{prefix}{key}"), f"and {len(value) - _ENTRIES:,} more"))
        else:
            pairs.append((clean(f"{prefix}{key}"), clean(_text(value))))
    return pairs


def _text(value: object) -> str:
    """A setting on one line; long lists are cut."""
    if isinstance(value, float):
        return number(value, 6)
    if isinstance(value, str):
        return shorten(value, 400)
    if isinstance(value, (list, tuple)) and len(value) > 12:
        return f"{_text(list(value[:3]))[:-1]}, …, {_text(value[-1])}] ({len(value)} values)"
    if isinstance(value, (list, tuple)) and all(isinstance(v, float) for v in value):
        return f"[{', '.join(number(v, 6) for v in value)}]"
    return shorten(json.dumps(value, ensure_ascii=False, default=str), 200)


def write_report(
    record: SizeCurve | Posterior | Samples | Comparison,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    target: str | None = None,
    dropped: Iterable[str | tuple[str, str]] = (),
    command: str | None = None,
    extra: Mapping[str, object] | None = None,
    row_names: Sequence[object] | None = None,
    posterior: Posterior | None = None,
) -> Path:
    """Write a record as one self-contained HTML page that opens offline, and return its path.

    Parameters
    ----------
    record
        What `select_size`, `posterior`, `sample`, `temper` or `compare` returned.
    path
        The file to write; it is replaced as a whole or not at all.
    title, target
        Heading of the page; name of the target.
    dropped
        What was left out of the table: sentences, or (what, why).
    command
        The command that made it.
    extra
        More lines for "What was done", for example versions of other packages.
    row_names
        Of a curve: a name for each row of the table, in its order; None: rows are numbered from 1.
    posterior
        Beside a curve: what `posterior` returned for the same problem.
    """
    if isinstance(record, SizeCurve):
        record = record if posterior is None else with_posterior(record, posterior)
    else:
        for name, value in (("row_names", row_names), ("posterior", posterior)):
            if value is not None:
                raise TypeError(f"{name} is given with a {type(record).__name__}; expected it with a SizeCurve only.")
    about = {"title": title, "target": target, "dropped": dropped, "command": command, "extra": extra}
    html = render(record, row_names=row_names, **about)
    return write_whole(path, html.encode("utf-8", "replace"), "the report")


def render(record: Any, **options: Any) -> str:
    """The page as text; options as in `write_report`. The same record gives the same text."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from pairflip.report.compared import comparison_page
    from pairflip.report.curve_page import curve_page
    from pairflip.report.probability_words import posterior_page, samples_page

    kind, about = type(record).__name__, About(**options)
    pages: dict[str, Callable[[Any, About], Page]] = {
        "SizeCurve": curve_page,
        "Posterior": posterior_page,
        "Samples": samples_page,
        "Comparison": comparison_page,
    }
    if kind not in pages:
        raise TypeError(
            f"the record is a {kind}; expected a SizeCurve, Posterior, Samples or Comparison: what select_size, "
            "posterior, sample, temper or compare returned."
        )
    page = pages[kind](record, about)
    style, script = page_text("style.css"), page_text("report.js")
    # The content security policy allows this style and this script, and nothing else.
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    scripts = "" if page.data is None else f"; script-src 'sha256-{digests[1]}'"
    policy = f"default-src 'none'; style-src 'sha256-{digests[0]}'{scripts}; base-uri 'none'; form-action 'none'"
    # JSON inside a script element: nothing in it can end the element or start another.
    data = json.dumps(page.data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    look: dict[str, Any] = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=FunctionLoader(page_text), autoescape=True, **look)
    environment.filters |= {"clean": clean, "pieces": pieces, "unbroken": lambda text: text.replace(" %", "\u00a0%")}
    texts = {"style": Markup(style), "script": Markup(script), "data": Markup(data), "policy": policy}
    return environment.get_template("template.html.j2").render(page=page, about=about, **texts)


def page_text(name: str) -> str:
    """The template, the style sheet or the script, which stand beside this file."""
    return (files("pairflip.report") / name).read_text(encoding="utf-8")
