"""Writing the report: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from pairflip.present.content import page_content
from pairflip.present.save import write_whole
from pairflip.selection.further import with_posterior

if TYPE_CHECKING:
    from jinja2 import Environment

    from pairflip.search.averaged import Posterior
    from pairflip.selection.curve import SizeCurve


def write_report(
    curve: SizeCurve,
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
    """Write a curve as one self-contained HTML page that opens offline, and return its path.

    Parameters
    ----------
    curve
        What `select_size` returned.
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
        A name for each row of the table, in its order; None: rows are numbered from 1.
    posterior
        What `posterior` returned for the same problem, shown beside the selection.
    """
    if posterior is not None:
        curve = with_posterior(curve, posterior)
    html = render(curve, title=title, target=target, dropped=dropped, command=command, extra=extra, row_names=row_names)
    return write_whole(path, html.encode("utf-8", "replace"), "the report")


def render(curve: SizeCurve, **options: Any) -> str:
    """The page as text; options as in `write_report`. The same curve gives the same text."""
    style, script = _text("style.css"), _text("report.js")
    defaults = {"title": None, "target": None, "dropped": (), "command": None, "extra": None, "row_names": None}
    content = page_content(curve, **{**defaults, **options})
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


def template_environment() -> Environment:
    """Where pages find their templates: beside this file, everything in them escaped."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    look: dict[str, Any] = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    return Environment(loader=FunctionLoader(_text), autoescape=True, **look)


def _text(name: str) -> str:
    return (files("pairflip.present") / name).read_text(encoding="utf-8")


def content_policy(style: str, script: str | None = None) -> str:
    """Content security policy: our style and our script by their hashes, nothing else, nothing from elsewhere."""

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    own = f"style-src {digest(style)}" + ("" if script is None else f"; script-src {digest(script)}")
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def _embedded(data: Any) -> Markup:
    """JSON that is safe inside a script element: nothing in it can end the element or start another."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
