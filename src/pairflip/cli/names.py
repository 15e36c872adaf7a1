"""Names from other people's tables on a terminal: shown as text, never obeyed."""

from __future__ import annotations

import unicodedata

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ESCAPED = ("Cc", "Cs", "Zl", "Zp")  # control characters, half pairs, line and paragraph separators


def visible(text: str) -> str:
    r"""Text with control characters as escapes one can see: a line end is ``\n``, what starts a colour ``\x1b``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(repr(c)[1:-1] if c in _BIDI or unicodedata.category(c) in _ESCAPED else c for c in text)


def one_line(text: str) -> str:
    """A message on one line, safe to show."""
    return visible(" ".join(text.split()))


def short(name: str, most: int = 40) -> str:
    """A name with room for others beside it; what is left out is in the middle, since names differ at both ends."""
    shown = visible(name) if name.strip() else repr(name)
    if len(shown) <= most:
        return shown
    tail = most // 3
    return f"{shown[: most - tail - 1]}…{shown[-tail:]}"
