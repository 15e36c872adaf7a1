"""What is minimized. A loss turns a table into a quadratic form to walk on, and judges supports exactly.

To add a loss: one file here with a class that has what `Loss` lists, and one line in `LOSSES`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pairflip.least_squares import Floats
from pairflip.losses.base import Fit, HeldOutJudge, Link, Loss, Words
from pairflip.losses.cox import CoxLoss
from pairflip.losses.likelihood import RIDGE, Likelihood
from pairflip.losses.logistic import LogisticLoss
from pairflip.losses.multinomial import MultinomialLoss
from pairflip.losses.poisson import PoissonLoss
from pairflip.losses.signs import SignedError
from pairflip.losses.squares import SEVERAL, SquaredError
from pairflip.rules import Limits

__all__ = [
    "LOSSES",
    "RIDGE",
    "SEVERAL",
    "Fit",
    "HeldOutJudge",
    "Link",
    "Loss",
    "SquaredError",
    "Words",
    "as_loss",
    "loss_named",
    "signed_loss",
]

LOSSES: dict[str, Loss] = {
    each.name: each for each in (SquaredError(), LogisticLoss(), PoissonLoss(), MultinomialLoss(), CoxLoss())
}
_OWN: dict[str, Loss] = {}  # losses of the user's own by name, as results know them
_OPTIONAL = (
    "words", "takes_offset", "read_target", "predictors", "rows", "level", "derivatives", "system", "ranking", "mean",
    "observed", "baseline", "expected", "row_errors", "lacking", "remark", "exchangeable", "strata", "separates",
    "told_by_the_mean", "link", "row_gradients",
)  # fmt: skip


class OwnLoss(Likelihood):
    """A loss of the user's own: any object with `name` and `derivatives`, and what else of `Likelihood` it has."""

    own = True

    def __init__(self, given: Any) -> None:
        self.name = str(given.name)
        self.link = None if hasattr(given, "mean") else Loss.link
        for each in _OPTIONAL:
            if hasattr(given, each):
                setattr(self, each, getattr(given, each))

    def level(self, rows: Any, offset: Floats) -> Floats:
        """The one of 0 and some quantiles of the target (less the offset) at which the loss is lowest."""
        y = getattr(rows, "y", offset)
        if np.shape(y) != offset.shape:
            return np.zeros(1)
        at = np.append(0.0, np.quantile(y - offset, np.linspace(0.0, 1.0, 21), method="lower"))
        with np.errstate(all="ignore"):
            losses = self.derivatives(rows, (at[:, None] + offset)[..., None])[0]
        return at[[np.argmin(np.where(np.isfinite(losses), losses, np.inf))]]


def as_loss(loss: Any) -> Loss:
    """A loss by name, or one of the user's own, which results will know by its name from now on."""
    known = LOSSES | _OWN
    if isinstance(loss, str) and loss in known:
        return known[loss]
    if isinstance(loss, str) or not (hasattr(loss, "name") and callable(getattr(loss, "derivatives", None))):
        raise ValueError(
            f"loss is {loss!r}; expected {', '.join(map(repr, LOSSES))}, or an object with name and derivatives."
        )
    if loss.name in (*LOSSES, SEVERAL):
        raise ValueError(f"the loss of your own has the name {loss.name!r}, which is taken; expected another name.")
    _OWN[str(loss.name)] = OwnLoss(loss)
    return _OWN[str(loss.name)]


def loss_named(name: str, scaled: bool = True) -> Loss:
    """The loss of a result: one of `LOSSES`, of the user's own, or that of several targets, not asked for by name.

    `scaled`: whether several targets are divided by their standard deviations.
    """
    if name == SEVERAL:
        return SquaredError(several=True, scaled=scaled)
    known = LOSSES | _OWN
    if name not in known:
        raise ValueError(
            f"the loss {name!r} is not known here: if it is one of your own, make a SubsetProblem with it first."
        )
    return known[name]


def signed_loss(loss: Loss, limits: Limits) -> Loss:
    """The loss where coefficients have given signs."""
    if not loss.squared:
        raise ValueError(f"positive is given together with loss={loss.name!r}; expected it with squared error.")
    if loss.name == SEVERAL:
        raise ValueError("positive is given together with several targets; expected one target.")
    if limits.whole_groups:
        raise ValueError("positive is given together with groups; expected one of the two (or one_per_group=True).")
    return SignedError()
