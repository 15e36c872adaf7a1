"""How names and numbers are shown to a reader: as text and never obeyed, never NaN, never longer than the room.

On a page and in a figure `clean` replaces what cannot be shown; on a terminal `visible` writes it as an escape; in a
sentence `quoted` sets it in quotes. A reader is told of rows and folds counted from 1, or of their names; numbers that
a user gives in Python, arrays and files count from 0, and a message about such a number says so (`numbered`).
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

NOTHING = "–"  # where there is no number
# Would turn around what follows them, so that a name could change how its neighbours read.
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# A byte order mark within a text, which matplotlib's PDF cannot hold, and what XML cannot hold.
_STRAY = frozenset("\ufeff\ufffe\uffff")
_UNSHOWN = ("Cc", "Cs", "Zl", "Zp")  # control characters, half pairs, line and paragraph separators


def is_control(character: str) -> bool:
    """Whether a character steers the display instead of being shown by it."""
    return character in _BIDI or character in _STRAY or unicodedata.category(character) in _UNSHOWN


def clean(name: object) -> str:
    """A name on one line: line ends become ``↵``, tabs spaces, other control characters and half pairs ``�``."""
    text = str(name)
    if not (text.isascii() and text.isprintable()):
        for end in ("\r\n", "\n", "\r", "\u2028", "\u2029"):
            text = text.replace(end, "↵")
        text = "".join("�" if is_control(c) else c for c in text.replace("\t", " "))
    return text if text.strip() else "(no name)"


def visible(text: str) -> str:
    r"""Text with control characters as escapes one can see: a line end is ``\n``, what starts a colour ``\x1b``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(repr(c)[1:-1] if is_control(c) else c for c in text)


def one_line(text: str) -> str:
    """A message on one line, safe to show on a terminal."""
    return visible(" ".join(text.split()))


def short(name: str) -> str:
    """A name for a terminal, short enough to leave room for others."""
    return shorten(visible(name) if name.strip() else repr(name), 40)


def quoted(name: object, most: int = 25) -> str:
    """A name or value as it may stand in a sentence: quoted, on one line, the middle left out when it is long."""
    return repr(shorten(str(name), most))


def listed(names: Iterable[object], most: int = 3) -> str:
    """The first few names, quoted, and how many more there are."""
    names = list(names)
    text = ", ".join(quoted(name) for name in names[:most])
    return text + (f" and {len(names) - most:,} more" if len(names) > most else "")


def shorten(text: str, length: int) -> str:
    """At most `length` characters; what is left out is in the middle, since names differ at both ends."""
    if len(text) <= length:
        return text
    head = (length - 1) * 2 // 3
    tail = length - 1 - head
    return f"{text[:head]}…{text[len(text) - tail :]}"


def column_labels(names: Sequence[str], columns: Sequence[int], length: int | None = None) -> list[str]:
    """Labels of columns that tell them apart.

    A name that several columns of the table have, or that shortening made equal to another one, carries its
    column index (from 0, as in `SizeCurve.supports`) in square brackets.
    """
    repeated = _repeated(tuple(names))
    cleaned = [clean(names[j]) for j in columns]
    texts = [shorten(text, length) if length else text for text in cleaned]
    alike = Counter(text for text, _ in {*zip(texts, columns, strict=True)})  # a column that is asked for twice is one
    return [
        f"{text} [{j}]" if alike[text] > 1 or full in repeated else text
        for text, full, j in zip(texts, cleaned, columns, strict=True)
    ]


@lru_cache(maxsize=4)
def _repeated(names: tuple[str, ...]) -> frozenset[str]:
    counts = Counter(clean(name) for name in names)
    return frozenset(name for name, times in counts.items() if times > 1)


def number(value: float, digits: int = 4) -> str:
    """`digits` significant digits without needless exponent; ``–`` for what is not finite."""
    value = float(value)
    if not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    if 10.0**digits <= abs(value) < 1e7:
        return f"{value:.0f}"
    text = f"{value:.{digits}g}"
    if "e" in text and 1e-4 <= abs(value) < 1e7:  # rounding moved it over a power of ten
        text = f"{float(text):.0f}" if abs(value) >= 1 else f"{float(text):.{digits + 3}f}"
    return text


def compared(one: float, other: float, digits: int) -> tuple[str, str]:
    """Two numbers of `digits` significant digits, or of as many as it takes to see which of them is lower."""
    largest = max(abs(one), abs(other))
    before = 1 + math.floor(math.log10(largest)) if 0 < largest < math.inf else 1  # the point
    digits = before + decimals_apart(one, other, digits - before)
    return number(one, digits), number(other, digits)


def decimals_apart(one: float, other: float, least: int) -> int:
    """At least so many decimals, and as many as it takes to see which of two numbers is lower."""
    apart, rounding = abs(one - other), 1e-9 * max(abs(one), abs(other))
    return max(least, -math.floor(round(math.log10(apart), 6))) if rounding < apart < math.inf else least


def percent(part: float, decimals: int = 0) -> str:
    """A fraction in per cent; without decimals, never 0 % or 100 % unless it is exactly that."""
    part = float(part)
    if not math.isfinite(part):
        return NOTHING
    if decimals:
        return f"{100 * part:.{decimals}f} %"
    if 0 < part < 0.01:
        return "<1 %"
    if -0.005 < part < 0:
        return "<0 %"
    if 0.99 < part < 1:
        return ">99 %"
    return f"{100 * part:.0f} %"


def plus_minus(value: float, error: float, other: float | None = None) -> str:
    """``value ± error`` with as many decimals as two digits of the error, or a comparison with `other`, ask for."""
    value, error = float(value), float(error)
    if not math.isfinite(value):
        return NOTHING
    if not math.isfinite(error) or error <= 0:
        return number(value)
    top = math.floor(math.log10(max(abs(value), error)))
    decimals = decimals_apart(value, value if other is None else other, 1 - math.floor(math.log10(error)))
    if top < -4 or top > 6 or decimals > 9:
        return f"{value:.3e} ± {error:.1e}"
    if decimals < 0:
        unit = 10.0**-decimals
        return f"{round(value / unit) * unit:.0f} ± {round(error / unit) * unit:.0f}"
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def label_text(value: Any) -> str:
    """The label of a class: ``1`` for 1.0, ``sick``, ``True``."""
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return str(value)


def explained(r2: float) -> str:
    """How a sentence says R2: below zero the mean predicts better, and it does not matter by how much."""
    r2 = float(r2)
    if not math.isfinite(r2):
        return "explained variance unknown (the target does not vary)"
    return "worse than the mean" if r2 < 0 else f"explained {percent(r2)} of the variance"


def r2_text(r2: float, decimals: int = 2) -> str:
    """R2 in a table: so many decimals, down to -1; more where it is nearly 1, so that it is not rounded to that."""
    r2 = float(r2)
    if not math.isfinite(r2):
        return NOTHING
    decimals = min(6, max(decimals, -math.floor(math.log10(1.0 - r2)))) if r2 < 1 else decimals
    return "worse than the mean" if r2 < -1 else f"{round(r2, decimals) + 0.0:.{decimals}f}"


def aligned(values: Iterable[float], digits: int = 4, least: int = 2) -> list[str]:
    """A column of numbers that can be compared at a glance: all with the same decimals, or all with an exponent.

    Where that takes too many decimals, the column has one exponent; where the numbers differ by more than three orders
    of magnitude, each has its own and the same digits.
    """
    numbers = [float(v) for v in values]
    sizes = [abs(v) for v in numbers if math.isfinite(v) and v != 0]
    if not sizes:
        return ["0" if v == 0 else NOTHING for v in numbers]
    top, bottom = _power(max(sizes), digits), _power(min(sizes), least)
    if top - bottom > 3:
        return [_finite(v, f".{digits - 1}e") for v in numbers]
    if bottom < -4 or top > 6:
        decimals = max(digits - 1, least - 1 + top - bottom)
        unit = 10.0**top
        return [f"{v / unit:.{decimals}f}e{top:+03d}" if math.isfinite(v) else NOTHING for v in numbers]
    return [_finite(v, f".{max(0, digits - 1 - top, least - 1 - bottom)}f") for v in numbers]


def aligned_plus_minus(values: Sequence[float], errors: Sequence[float]) -> list[str]:
    """``value ± error`` down a column with the same decimals: two digits of the smallest error, or exponents."""
    pairs = [(float(v), float(e)) for v, e in zip(values, errors, strict=True)]
    known = [e for v, e in pairs if math.isfinite(v) and math.isfinite(e) and e > 0]
    if not known:
        return aligned(values)
    top = _power(max(abs(v) for v, _ in pairs if math.isfinite(v)) or max(known), 4)
    decimals = 1 - _power(min(known), 2)
    few = top + decimals <= 6 and -4 <= top <= 6 and decimals <= 9
    value, error = (f".{max(0, decimals)}f",) * 2 if few else (".3e", ".1e")
    return [
        _finite(v, value) + (f" ± {e:{error}}" if math.isfinite(v) and math.isfinite(e) and e > 0 else "")
        for v, e in pairs
    ]


def _power(value: float, digits: int) -> int:
    """Power of ten of a positive number after rounding to `digits` digits."""
    return int(f"{value:.{digits - 1}e}".split("e")[1])


def _finite(value: float, form: str) -> str:
    return f"{value:{form}}" if math.isfinite(value) else NOTHING


def signed_sum(terms: Iterable[tuple[float, str]]) -> str:
    """Texts with the signs of their values, as a sum such as ``-2 + 3*a``; ``0`` for none."""
    text = " ".join(f"{'-' if value < 0 else '+'} {text}" for value, text in terms) or "0"
    return f"-{text[2:]}" if text.startswith("- ") else text.removeprefix("+ ")


def text_width() -> int:
    """Width of lines of text: that of the terminal, at most 100 since longer lines are hard to read; else 80."""
    return min(100, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 80


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of a text, broken between words, but not before a per cent sign; all but the first begin with `indent`."""
    wrap = textwrap.TextWrapper(width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in wrap.wrap(text.replace(" %", "\0%"))]


def table_lines(rows: Sequence[Sequence[str]], names: int = 0, width: int | None = None) -> list[str]:
    """A table as plain text: the first `names` columns to the left, others to the right, the last one as it is.

    With a `width`, the last column is wrapped to it.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    start = sum(widths) + 2 * len(widths)
    lines = []
    for row in rows:
        cells = [c.ljust(w) if i < names else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=False))]
        first, *rest = wrapped(row[-1], max(24, width - start)) or [""] if width else [row[-1]]
        lines += ["  ".join([*cells, first]).rstrip(), *(" " * start + line for line in rest)]
    return lines


def lower_heads(heads: Iterable[str]) -> list[str]:
    """Headings of a page as those of a plain table: in lower case, but for abbreviations (R2, CPU s)."""
    return [head if head[1:2].isupper() or head[1:2].isdigit() else head.lower() for head in heads]


def plural(count: int, word: str) -> str:
    """``1 column``, ``1,234 columns``."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def numbered(what: str, index: int, given: bool = False) -> str:
    """How a sentence names the row, fold or column at a Python index."""
    return f"{what} index {index} (counting from 0)" if given else f"{what} {index + 1:,}"


def row_numbers(count: int) -> list[str]:
    """Names of rows that have none: ``1``, ``2``, ... up to `count`."""
    return [str(row) for row in range(1, count + 1)]


def json_list(names: Sequence[str]) -> str:
    """Several names in one cell, so that commas in them do not matter."""
    return json.dumps(list(names), ensure_ascii=False)
