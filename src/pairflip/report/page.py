"""Writing the report: one HTML file that needs nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from pairflip.report.content import page_content
from pairflip.report.done import About
from pairflip.report.page_files import content_policy, page_text, template_environment
from pairflip.report.save import write_whole
from pairflip.selection.after_selection import with_posterior
from pairflip.selection.curve import SizeCurve

if TYPE_CHECKING:
    from pairflip.comparison.record import Comparison
    from pairflip.report.sheet import Sheet
    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples


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
    about = About(title, target, dropped, command, extra)
    if not isinstance(record, SizeCurve):
        _refuse(record, row_names=row_names, posterior=posterior)
        return _sheet(record, about).write(path)
    curve = record if posterior is None else with_posterior(record, posterior)
    html = render(curve, row_names=row_names, **vars(about))
    return write_whole(path, html.encode("utf-8", "replace"), "the report")


def _refuse(record: Any, **given: Any) -> None:
    """Refuse what belongs to a curve."""
    for name, value in given.items():
        if value is not None:
            raise TypeError(f"{name} is given with a {type(record).__name__}; expected it with a SizeCurve only.")


def _sheet(record: Any, about: About) -> Sheet:
    """The page of a record that is not a curve."""
    from pairflip.comparison.record import Comparison
    from pairflip.report.compare_page import comparison_sheet
    from pairflip.report.probability_page import posterior_sheet, samples_sheet
    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples

    if isinstance(record, Samples):
        return samples_sheet(record, about)
    if isinstance(record, Posterior):
        return posterior_sheet(record, about)
    if isinstance(record, Comparison):
        return comparison_sheet(record, about)
    raise TypeError(
        f"the record is a {type(record).__name__}; expected a SizeCurve, Posterior, Samples or Comparison: what "
        "select_size, posterior, sample, temper or compare returned."
    )


def render(curve: SizeCurve, *, row_names: Sequence[object] | None = None, **about: Any) -> str:
    """The page as text; options as in `write_report`. The same curve gives the same text."""
    style, script = page_text("style.css"), page_text("report.js")
    content = page_content(curve, About(**about), row_names)
    data = content.pop("data")
    return (
        template_environment()
        .get_template("template.html.j2")
        .render(
            **content,
            style=Markup(style),
            script=Markup(script),
            policy=content_policy(style, script),
            data=_embedded(data),
        )
    )


def _embedded(data: Any) -> Markup:
    """JSON that is safe inside a script element: nothing in it can end the element or start another."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
