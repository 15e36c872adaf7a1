r"""Two classes: :math:`\ell = \ln(1 + e^\eta) - y \eta`, with y = 1 for the second class in sorted order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import as_labels
from pairflip.least_squares import Floats
from pairflip.losses.base import Link, Words
from pairflip.losses.likelihood import CERTAIN, Likelihood, Rows

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem


class LogisticLoss(Likelihood):
    """Logistic regression."""

    name = "logistic"
    words = Words(
        error="wrong",
        share="AUC",
        ranking="auc",
        long_error="Misclassification",
        explained="deviance",
        meaning="wrong, the fraction put into the other class (probability above one half); AUC, the probability that "
        "a row of the event is ranked above one of the other class (chance gives 0.5)",
    )
    link = Link("1/(1 + exp(-eta))", r"\frac{1}{1 + e^{-\eta}}", "Sigmoid", "probability of {}", (-700.0, 700.0))

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """0 or 1 for each row, and the two labels."""
        return as_labels(y, n_rows, self.name)

    def lacking(self, problem: SubsetProblem, kept: NDArray[np.int64]) -> str | None:
        """Rows of one class teach nothing."""
        return "one class only" if np.unique(problem.y[kept[problem.sample_weight[kept] > 0]]).size < 2 else None

    def level(self, rows: Rows, offset: Floats) -> Floats:
        """The logarithm of the odds."""
        mean = float(rows.w @ rows.y) / float(rows.w.sum())
        return np.array([np.log(mean / (1.0 - mean))])

    def derivatives(self, rows: Rows, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """Half the deviance, y - p and p (1 - p), times the weights; p is the probability of the second class."""
        at = eta[..., 0]
        small = np.exp(-np.abs(at))
        larger = 1.0 / (1.0 + small)
        p = np.where(at >= 0.0, larger, small * larger)
        value = (np.maximum(at, 0.0) + np.log1p(small) - rows.y * at) @ rows.w
        return value, (rows.w * (rows.y - p))[..., None], rows.w * (small * larger * larger)

    def mean(self, eta: Floats) -> Floats:
        """Probability of the second class."""
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(1.0 / (1.0 + np.exp(-eta)), CERTAIN, 1.0 - CERTAIN))

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """Twice the log loss."""
        p = np.clip(predicted, CERTAIN, 1.0 - CERTAIN)
        return np.asarray(-2.0 * (observed * np.log(p) + (1.0 - observed) * np.log1p(-p)))

    def separates(self, y: Floats, eta: Floats) -> bool:
        """Whether every row is on the side of its class."""
        return bool(np.all(np.where(y > 0.5, eta[:, 0], -eta[:, 0]) > 0))

    def strata(self, y: Floats) -> NDArray[Any] | None:
        """Folds keep the shares of the classes."""
        return y
