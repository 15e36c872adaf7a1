"""What is minimized. A loss turns a table into a quadratic form to walk on, and judges supports exactly.

To add a loss: one file here with a class that has what `Loss` lists, and one line in `LOSSES`.
"""

from __future__ import annotations

from pairflip.losses.base import Fit, HeldOutJudge, Loss, Words
from pairflip.losses.squares import SquaredError

__all__ = ["LOSSES", "Fit", "HeldOutJudge", "Loss", "Words"]

LOSSES: dict[str, Loss] = {"squares": SquaredError()}
