"""Formulas as MathML, which browsers draw themselves: the site needs no script and no network for them."""

from __future__ import annotations

from typing import Any

import latex2mathml.converter
from docutils import nodes


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(latex2mathml.converter.convert(node.astext()))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    made = latex2mathml.converter.convert(node.astext(), display="block")
    translator.body.append(f'<div class="math-block">{made}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer and make it the one that is used."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
