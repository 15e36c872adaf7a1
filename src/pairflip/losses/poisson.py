r"""Counts: :math:`\ell = e^\eta - y - y (\eta - \ln y)`, the logarithm of the mean is linear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import as_target
from pairflip.least_squares import Floats
from pairflip.losses.base import Link, Words
from pairflip.losses.likelihood import CERTAIN, Likelihood, Rows

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem


class PoissonLoss(Likelihood):
    """Poisson regression; an offset is added to the linear predictor."""

    name, takes_offset = "poisson", True
    words = Words(
        error="RMSE",
        share="D2",
        explained="deviance",
        meaning="RMSE of the counts; D2, one minus the deviance over that of the mean (with an offset, of the mean "
        "rate)",
    )
    link = Link("exp(eta)", r"e^{\eta}", "Exp", "expected {}", (-700.0, 300.0))

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """Whole numbers from 0 on."""
        counts = as_target(y, n_rows)
        bad = counts[(counts < 0) | (counts != np.floor(counts))]
        if bad.size:
            kind = "negative numbers" if bad[0] < 0 else "fractions"
            raise ValueError(
                f"y holds {kind} such as {bad[0]:g} with loss='poisson'; expected counts: whole numbers from 0 on."
            )
        return counts, None

    def lacking(self, problem: SubsetProblem, kept: NDArray[np.int64]) -> str | None:
        """Rows without any count teach nothing."""
        some = np.any(problem.y[kept[problem.sample_weight[kept] > 0]] > 0)
        return None if some else "no count above 0"

    def level(self, rows: Rows, offset: Floats) -> Floats:
        """The logarithm of the mean rate."""
        return np.array([np.log(float(rows.w @ rows.y) / float(rows.w @ np.exp(offset)))])

    def derivatives(self, rows: Rows, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """Half the deviance, y - mu and mu, times the weights; mu is the expected count."""
        at, y = eta[..., 0], rows.y
        mu = np.exp(at)
        value = (mu - y - y * (at - np.log(np.where(y > 0, y, 1.0)))) @ rows.w
        return value, (rows.w * (y - mu))[..., None], rows.w * mu

    def mean(self, eta: Floats) -> Floats:
        """Expected count."""
        return np.asarray(np.maximum(np.exp(np.minimum(eta, 300.0)), CERTAIN))

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """The Poisson deviance."""
        mean, some = np.maximum(predicted, CERTAIN), np.where(observed > 0, observed, 1.0)
        return np.asarray(2.0 * (observed * np.log(some / mean) - (observed - mean)) + 0.0)
