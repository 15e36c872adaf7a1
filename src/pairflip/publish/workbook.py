"""Tables as an Excel workbook, in which a text is a text, whatever it begins with."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pairflip.text import clean, shorten

if TYPE_CHECKING:
    import pandas as pd

_MOST_ROWS = 1_048_575  # that a sheet has, below its heads
_MOST_CHARACTERS = 32_000  # of a cell


def _text(value: Any) -> Any:
    return shorten(clean(value), _MOST_CHARACTERS) if isinstance(value, str) else value


def workbook(frames: Mapping[str, pd.DataFrame]) -> bytes:
    """The contents of an .xlsx file with one sheet for each data frame; longer ones than a sheet are cut at its end."""
    import pandas as pd

    buffer = io.BytesIO()
    with pd.ExcelWriter(buffer, engine="openpyxl") as writer:
        for name, frame in frames.items():
            cut = frame.head(_MOST_ROWS).rename(columns=_text).map(_text)
            cut.to_excel(writer, sheet_name=name, index=False, freeze_panes=(1, 0), inf_rep="")
            for cell in (cell for row in writer.sheets[name].iter_rows() for cell in row if cell.data_type in "fes"):
                cell.data_type = "s"  # never a formula
                cell.quotePrefix = str(cell.value)[:1] in ("=", "+", "-", "@")  # nor one when a reader edits the cell
    return buffer.getvalue()
