"""What is said where coefficients were kept to signs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairflip.report.halves import Piece, listed
from pairflip.rules import ALL_POSITIVE

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve


def sign_words(curve: SizeCurve, size: int) -> list[Piece]:
    """That coefficients were kept to signs, and which columns carry no weight for that; nothing without signs."""
    signs = curve.settings.get("signs")
    if not signs:
        return []
    how = "positive" if signs == ALL_POSITIVE else "to the signs that were asked for"
    at = curve.at(size)
    idle = curve.supports[at][np.asarray(curve.coefs[at]) == 0].tolist()
    if not idle:
        return [(f" Coefficients were kept {how}.", False)]
    carries = "carries" if len(idle) == 1 else "carry"
    coefficient = "its coefficient is" if len(idle) == 1 else "their coefficients are"
    return [
        (f" Coefficients were kept {how}; ", False),
        *listed(curve, idle),
        (f" {carries} no weight in this fit: {coefficient} zero at the bound, so a smaller size does the same.", False),
    ]
