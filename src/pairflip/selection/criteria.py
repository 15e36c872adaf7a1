r"""Information criteria of a final fit, for comparison with cross validation.

With :math:`\sigma^2` unknown, the deviance of a fit with energy E on M rows is :math:`M \ln(2E/M)`; with d fitted
coefficients (chosen and forced ones) and N candidates of which k were chosen,

.. math::
    \mathrm{AIC} = M \ln(2E/M) + 2 d, \quad \mathrm{BIC} = M \ln(2E/M) + d \ln M, \quad
    \mathrm{EBIC} = \mathrm{BIC} + 2 \ln \tbinom{N}{k} .

EBIC (Chen & Chen, Biometrika 2008, with gamma = 1) also counts how many supports there were to choose from.

To add a criterion: a function of `FinalFits`, and a call of `register`. Curves, files and tables then have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from pairflip.engines.base import NOTHING
from pairflip.least_squares import Floats


@dataclass(frozen=True)
class FinalFits:
    """The final fits of all sizes (S,), and the table they come from.

    `yy` is y'y after the forced columns were projected out.
    """

    energy: Floats
    sizes: Floats
    n_rows: int
    n_candidates: int
    n_forced: int
    yy: float
    likelihood: bool = False
    """Whether E is half the deviance of a likelihood without a scale: classes and counts."""
    n_targets: int = 1
    """With q targets there are M q residuals and q coefficients for each column."""
    coefficients: Floats | None = None
    """Chosen coefficients (S,), where sizes count groups of columns."""

    @property
    def deviance(self) -> Floats:
        """M ln(2E/M), or 2E for classes and counts.

        An energy that is only rounding error counts as that fraction of y'y, so none is infinite.
        """
        if self.likelihood:
            return 2.0 * self.energy
        rows = self.n_rows * self.n_targets
        return np.asarray(rows * np.log(np.maximum(2.0 * self.energy, NOTHING * self.yy) / rows))

    @property
    def fitted(self) -> Floats:
        """Number d of fitted coefficients."""
        chosen = self.sizes if self.coefficients is None else self.coefficients
        return self.n_targets * (chosen + self.n_forced)


Criterion = Callable[[FinalFits], Floats]
CRITERIA: dict[str, Criterion] = {}


def register(name: str, criterion: Criterion) -> None:
    """Add a criterion (lower is better) to every curve from now on, as ``curve.criteria[name]``."""
    CRITERIA[name] = criterion


def information_criteria(fits: FinalFits) -> dict[str, Floats]:
    """All registered criteria by name, each (S,)."""
    return {name: criterion(fits) for name, criterion in CRITERIA.items()}


def aic(fits: FinalFits) -> Floats:
    """Akaike's criterion."""
    return fits.deviance + 2.0 * fits.fitted


def bic(fits: FinalFits) -> Floats:
    """Schwarz's criterion."""
    return np.asarray(fits.deviance + fits.fitted * np.log(fits.n_rows))


def ebic(fits: FinalFits) -> Floats:
    """The extended criterion, for many candidates."""
    n, k = fits.n_candidates, fits.sizes
    return np.asarray(bic(fits) + 2.0 * (gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)))


register("aic", aic)
register("bic", bic)
register("ebic", ebic)
