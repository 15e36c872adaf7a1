"""What is minimized. A loss turns a table into a quadratic form to walk on, and judges supports exactly.

To add a loss: one file here with a class that has what `Loss` lists, and one line in `LOSSES`.
"""

from __future__ import annotations

from pairflip.limits import Limits
from pairflip.losses.base import Fit, HeldOutJudge, Loss, Words
from pairflip.losses.grouped import GroupedError
from pairflip.losses.likelihood import RIDGE, LogisticLoss, PoissonLoss
from pairflip.losses.ruled import RuledError
from pairflip.losses.several import SeveralTargets
from pairflip.losses.signed import SignedError
from pairflip.losses.squares import SquaredError

__all__ = ["LOSSES", "RIDGE", "Fit", "HeldOutJudge", "Loss", "SeveralTargets", "Words", "limited", "loss_named"]

LOSSES: dict[str, Loss] = {each.name: each for each in (SquaredError(), LogisticLoss(), PoissonLoss())}


def loss_named(name: str) -> Loss:
    """The loss of a result: one of `LOSSES`, or that of several targets, which is not asked for by name."""
    return SeveralTargets() if name == SeveralTargets.name else LOSSES[name]


def limited(loss: Loss, limits: Limits) -> Loss:
    """The loss under limits on what may be chosen."""
    if loss.name != "squares":
        what = "several targets" if loss.name == SeveralTargets.name else f"loss={loss.name!r}"
        raise ValueError(
            f"groups, bands, hierarchy or signs are given together with {what}; expected them with the squared error "
            "of one target."
        )
    if limits.signs is not None and limits.whole_groups:
        raise ValueError("positive is given together with groups; expected one of the two (or one_per_group=True).")
    if limits.ruled and limits.whole_groups:
        raise ValueError(
            "groups are given together with min_distance or hierarchy; expected one of them (or one_per_group=True)."
        )
    if limits.whole_groups:
        return GroupedError()
    return RuledError() if limits.signs is None else SignedError()
