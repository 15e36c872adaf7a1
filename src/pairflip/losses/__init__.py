"""What is minimized. A loss turns a table into a quadratic form to walk on, and judges supports exactly.

To add a loss: one file here with a class that has what `Loss` lists, and one line in `LOSSES`.
"""

from __future__ import annotations

from pairflip.losses.base import Fit, HeldOutJudge, Loss, Words
from pairflip.losses.likelihood import RIDGE, LogisticLoss, PoissonLoss
from pairflip.losses.several import SeveralTargets
from pairflip.losses.squares import SquaredError

__all__ = ["LOSSES", "RIDGE", "Fit", "HeldOutJudge", "Loss", "SeveralTargets", "Words", "loss_named"]

LOSSES: dict[str, Loss] = {each.name: each for each in (SquaredError(), LogisticLoss(), PoissonLoss())}


def loss_named(name: str) -> Loss:
    """The loss of a result: one of `LOSSES`, or that of several targets, which is not asked for by name."""
    return SeveralTargets() if name == SeveralTargets.name else LOSSES[name]
