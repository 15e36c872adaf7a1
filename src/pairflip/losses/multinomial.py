r"""Three and more classes, one set of columns for all of them: with :math:`\eta_c = X_S x_c + Z z_c` for each class c,

.. math:: \ell = \ln \sum_c e^{\eta_c} - \eta_y , \quad p_c = e^{\eta_c} / \sum_{c'} e^{\eta_{c'}} .

Adding the same to all :math:`\eta_c` changes nothing. The ridge makes the coefficients of a chosen column sum to zero;
those of the constant and of forced columns, which are not penalized, are made to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import as_labels
from pairflip.least_squares import Floats
from pairflip.losses.base import Link, Words
from pairflip.losses.likelihood import CERTAIN, Likelihood
from pairflip.text import label_text, quoted

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem


class MultinomialLoss(Likelihood):
    """Three and more classes: a linear predictor for each, in the sorted order of their labels."""

    name = "multinomial"
    words = Words(
        error="wrong",
        share="D2",
        long_error="Misclassification",
        explained="deviance",
        meaning="wrong, the fraction whose most probable class is not theirs; D2, one minus the deviance over that of "
        "the class frequencies",
    )
    link = Link("exp(eta)", r"e^{\eta}", "Softmax", "probability of {}", shared=True)

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """Indicators (M, c) of the classes, and the labels."""
        codes, classes = as_labels(y, n_rows, self.name)
        return np.asarray(codes[:, None] == np.arange(classes.size), dtype=np.float64), classes

    def predictors(self, y: Floats) -> int:
        """One for each class."""
        return int(y.shape[1])

    def strata(self, y: Floats) -> NDArray[np.int64]:
        """Folds keep the shares of the classes."""
        return np.asarray(np.argmax(y, axis=1))

    def rows(self, y: Floats, w: Floats) -> tuple[Floats, Floats]:
        """Indicators and weights."""
        return y, w

    def level(self, rows: tuple[Floats, Floats], offset: Floats) -> Floats:
        """Logarithms of the shares, of sum zero."""
        y, w = rows
        logs = np.log(w @ y)
        return np.asarray(logs - logs.mean())

    def derivatives(self, rows: tuple[Floats, Floats], eta: Floats) -> tuple[Floats, Floats, Floats]:
        """The log loss (T,), minus its derivative (T, m, c), and the second one (T, m, c, c).

        The latter does not depend on what all classes share; the mean square of that is added, so that it has an
        inverse: fits that begin with coefficients of sum zero stay there.
        """
        y, w = rows
        top = eta.max(axis=2)
        p = np.exp(eta - top[..., None])
        total = p.sum(axis=2)
        p /= total[..., None]
        own = np.einsum("tmc,mc->tm", eta, y)
        value = (np.log(total) + top - own) @ w
        score = w[:, None] * (y - p)
        n = eta.shape[2]
        curvature = p[..., :, None] * (np.eye(n) - p[..., None, :]) + 1.0 / n**2
        return value, score, curvature * w[:, None, None]

    def ranking(self, rows: tuple[Floats, Floats], eta: Floats) -> tuple[Floats, Floats]:
        """As many targets as classes, and the mean over classes of p (1 - p) as the weight of a row."""
        (y, w), p = rows, self.mean(eta)
        return w[:, None] * (y - p), w * np.mean(p * (1.0 - p), axis=1)

    def mean(self, eta: Floats) -> Floats:
        """Probabilities of the classes (..., c)."""
        p = np.exp(eta - eta.max(axis=-1, keepdims=True))
        p = np.maximum(p / p.sum(axis=-1, keepdims=True), CERTAIN)
        return np.asarray(p / p.sum(axis=-1, keepdims=True))

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """Twice the log loss of each row, as the mean over its classes.

        Of the indicators of a row one is 1, so that their number over their sum is the number of classes.
        """
        classes = observed.size / observed.sum()
        return np.asarray(-2.0 * classes * observed * np.log(np.maximum(predicted, CERTAIN)))

    def separates(self, y: Floats, eta: Floats) -> bool:
        """Whether the own class of every row is the most probable one."""
        return bool(np.all(np.sum(y * eta, axis=1) > np.max(np.where(y > 0, -np.inf, eta), axis=1)))

    def lacking(self, problem: SubsetProblem, kept: NDArray[np.int64]) -> str | None:
        """Which class has no row, in words; None where all have one."""
        rows = problem.y[kept[problem.sample_weight[kept] > 0]]
        gone = np.flatnonzero(rows.sum(axis=0) == 0)
        assert problem.classes is not None
        return f"no row of class {quoted(label_text(problem.classes[gone[0]]))}" if gone.size else None
