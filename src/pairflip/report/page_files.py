"""What every page is made with: its templates and style sheet, which stand beside this file, and its policy."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def template_environment() -> Environment:
    """Where pages find their templates: beside this file, everything in them escaped."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    look: dict[str, Any] = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    return Environment(loader=FunctionLoader(page_text), autoescape=True, **look)


def page_text(name: str) -> str:
    """A template, the style sheet or the script."""
    return (files("pairflip.report") / name).read_text(encoding="utf-8")


def content_policy(style: str, script: str | None = None) -> str:
    """Content security policy: our style and our script by their hashes, nothing else, nothing from elsewhere."""

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    own = f"style-src {digest(style)}" + ("" if script is None else f"; script-src {digest(script)}")
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
