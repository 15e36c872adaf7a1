r"""Information criteria of a final fit, for comparison with cross validation.

With :math:`\sigma^2` unknown, the deviance of a fit with energy E on M rows is :math:`M \ln(2E/M)`; with d fitted
coefficients (chosen and forced ones) and N candidates of which k were chosen,

.. math::
    \mathrm{AIC} = M \ln(2E/M) + 2 d, \quad \mathrm{BIC} = M \ln(2E/M) + d \ln M, \quad
    \mathrm{EBIC} = \mathrm{BIC} + 2 \ln \tbinom{N}{k} .

EBIC (Chen & Chen, Biometrika 2008, with gamma = 1) also counts how many supports there were to choose from.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from pairflip.least_squares import Floats
from pairflip.settle import NOTHING


def information_criteria(
    energy: Floats, sizes: Floats, *, n_rows: int, n_candidates: int, n_forced: int, yy: float
) -> tuple[Floats, Floats, Floats]:
    """(AIC, BIC, EBIC), each (S,). An energy of rounding error counts as that part of y'y, so none is infinite."""
    deviance = n_rows * np.log(np.maximum(2.0 * energy, NOTHING * yy) / n_rows)
    fitted = sizes + n_forced
    bic = deviance + fitted * np.log(n_rows)
    supports = gammaln(n_candidates + 1.0) - gammaln(sizes + 1.0) - gammaln(n_candidates - sizes + 1.0)
    return deviance + 2.0 * fitted, bic, bic + 2.0 * supports
