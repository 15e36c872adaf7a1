"""What is minimized. A loss turns a table into a quadratic form to walk on, and judges supports exactly.

To add a loss: one file here with a class that has what `Loss` lists, and one line in `LOSSES`.
"""

from __future__ import annotations

from pairflip.limits import Limits
from pairflip.losses.base import Fit, HeldOutJudge, Loss, Words
from pairflip.losses.cox import CoxLoss
from pairflip.losses.likelihood import RIDGE
from pairflip.losses.logistic import LogisticLoss
from pairflip.losses.multinomial import MultinomialLoss
from pairflip.losses.poisson import PoissonLoss
from pairflip.losses.signs import SignedError
from pairflip.losses.squares import SEVERAL, SquaredError

__all__ = [
    "LOSSES",
    "RIDGE",
    "SEVERAL",
    "Fit",
    "HeldOutJudge",
    "Loss",
    "SquaredError",
    "Words",
    "limited",
    "loss_named",
]

LOSSES: dict[str, Loss] = {
    each.name: each for each in (SquaredError(), LogisticLoss(), PoissonLoss(), MultinomialLoss(), CoxLoss())
}


def loss_named(name: str) -> Loss:
    """The loss of a result: one of `LOSSES`, or that of several targets, which is not asked for by name."""
    return SquaredError(several=True) if name == SEVERAL else LOSSES[name]


def limited(loss: Loss, limits: Limits) -> Loss:
    """The loss under limits on what may be chosen."""
    if not loss.squared and limits.signs is not None:
        raise ValueError(f"positive is given together with loss={loss.name!r}; expected it with squared error.")
    if loss.name == SEVERAL and limits.signs is not None:
        raise ValueError("positive is given together with several targets; expected one target.")
    if limits.signs is not None and limits.whole_groups:
        raise ValueError("positive is given together with groups; expected one of the two (or one_per_group=True).")
    return loss if limits.signs is None else SignedError()
