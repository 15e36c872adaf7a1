"""LaTeX: texts and numbers that compile whatever they hold, tables with booktabs, and a document that shows all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from pairflip.report.registry import FigureTable
from pairflip.text import clean, shorten

_LETTERS = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon varphi chi "
    "psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega varsigma"
)
_GREEK = dict(zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩς", _LETTERS.split(), strict=True))
_MATH = {"±": "pm", "×": "times", "·": "cdot", "÷": "div", "−": "-", "≤": "le", "≥": "ge", "→": "to", "°": "circ"}
_MATH |= {"↵": "hookleftarrow", "∞": "infty", "≈": "approx", "√": "surd", "¬": "neg", "µ": "mu", **_GREEK}
_TEXT = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "`": r"\textasciigrave{}", "“": "``", "”": "''", "‘": "`", "’": "'", "–": "--",
    "—": "---", "…": r"\ldots{}", "\xa0": "~", "[": "{[}", "]": "{]}",
}  # fmt: skip
_LATIN = frozenset("ÆØÐÞßæøðþıĐđŁłŒœ") | {
    c for c in map(chr, range(0xC0, 0x17F)) if unicodedata.decomposition(c) and unicodedata.decomposition(c)[0] != "<"
}  # accented letters, and others, that are set up for pdflatex
_NUMBER = re.compile(r"([-+]?)(\d[\d,.]*)(?:e([-+]\d+))?")
_LONG = 40  # rows of a table that does not fit one page
_CELL = 60  # characters
_HEAD = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[a4paper,margin=13mm]{geometry}
\usepackage{amsmath,booktabs,graphicx,longtable,textcomp}
\renewcommand{\topfraction}{0.95}
\renewcommand{\textfraction}{0.05}
\renewcommand{\floatpagefraction}{0.5}
\emergencystretch=3em
\begin{document}
\section*{%s}"""
_FIGURE = r"""\begin{figure}[htbp]\centering
\includegraphics[width=183mm,height=0.8\textheight,keepaspectratio]{%s}
\caption{%s}
\end{figure}"""


def escaped(text: str) -> str:
    """Any text as LaTeX that shows it: what pdflatex has no letter for is shown as its code point, such as U+6F22."""
    plain = unicodedata.normalize("NFC", text).replace("--", "-\u200b-")
    return "".join(map(_character, plain))


def _character(c: str) -> str:
    if c in _TEXT:
        return _TEXT[c]
    if c in _MATH:
        inside = _MATH[c] if c == "−" else rf"^\{_MATH[c]}" if c == "°" else rf"\{_MATH[c]}"
        return rf"\ensuremath{{{inside}}}"
    if c == "\u200b":
        return "{}"
    if c.isascii() or c in _LATIN:
        return c
    kind, _, code = unicodedata.decomposition(c).partition(" ")
    if kind in ("<super>", "<sub>"):
        command = "textsuperscript" if kind == "<super>" else "textsubscript"
        return rf"\{command}{{{_character(chr(int(code, 16)))}}}"
    return rf"\texttt{{U+{ord(c):04X}}}"


def math_number(text: str) -> str:
    """A number as it stands in a formula: ``1.2e-05`` becomes a power of ten."""
    parts = _NUMBER.fullmatch(text)
    if parts is None:
        return escaped(text)
    exponent = rf" \times 10^{{{int(parts[3])}}}" if parts[3] else ""
    return f"{parts[1]}{parts[2].replace(',', '{,}')}{exponent}"


def _cell(text: str) -> str:
    """A cell of a table: numbers, and ``value ± error``, in mathematics."""
    parts = text.split(" ± ")
    if all(_NUMBER.fullmatch(part) for part in parts):
        return "$" + r" \pm ".join(map(math_number, parts)) + "$"
    return escaped(shorten(clean(text), _CELL)) if text else ""


def table(shown: FigureTable, label: str, after: str = "") -> str:
    """A table with booktabs: a float no wider than the line, or over several pages where it has many rows.

    The sentence `after` ends the caption.
    """
    numeric = [any(cell[:1].isdigit() for cell in column) for column in zip(*shown.rows, strict=True)]
    form = "".join("r" if at >= shown.names and right else "l" for at, right in enumerate(numeric))
    head, *lines = (" & ".join(map(_cell, row)) + r" \\" for row in (shown.heads, *shown.rows))
    caption = rf"\caption{{{escaped(shown.caption + after)}}}\label{{tab:{label}}}"
    body = "\n".join(lines)
    if len(lines) > _LONG:
        rules = f"\\toprule\n{head}\n\\midrule\n\\endhead\n\\bottomrule\n\\endfoot\n{body}"
        return f"{{\\footnotesize\n\\begin{{longtable}}{{{form}}}\n{caption} \\\\\n{rules}\n\\end{{longtable}}}}\n"
    rules = f"\\toprule\n{head}\n\\midrule\n{body}\n\\bottomrule"
    fit = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    tabular = f"{fit}\n\\begin{{tabular}}{{{form}}}\n{rules}\n\\end{{tabular}}}}"
    return f"\\begin{{table}}[htbp]\n\\centering\n{caption}\\par\\smallskip\n{tabular}\n\\end{{table}}\n"


def document(title: str, parts: Sequence[tuple[str, Sequence[str]]], figures: Sequence[tuple[str, str]]) -> str:
    """A document of sections (heading, files to put in) and figures (file, caption), for pdflatex."""
    sections = [
        "\n".join([rf"\subsection*{{{heading}}}", *(rf"\input{{{file}}}" for file in files)])
        for heading, files in parts
    ]
    shown = [_FIGURE % (file, escaped(caption)) for file, caption in figures]
    return "\n".join([_HEAD % escaped(title), *sections, r"\clearpage", *shown, r"\end{document}", ""])
