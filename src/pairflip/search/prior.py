r"""What a model weighs before and after the data are seen: Zellner's g-prior, and priors of the number of columns.

With k columns beside the forced ones, E the energy, :math:`E_0` that of no columns, and :math:`\nu` rows less forced
columns (the constant among them), the posterior weight of a model is its prior times

.. math:: (1 + g)^{-k/2} \left(E + E_0 / g\right)^{-\nu/2}
          \quad\text{or}\quad (1 + g)^{-k/2} \exp\left(-\frac{g}{1+g} \frac{E}{v}\right)

for an unknown variance of the noise (prior :math:`1/\sigma^2`) or a known one, v. Coefficients then have the mean
:math:`\frac{g}{1+g} x` and the covariance :math:`\frac{g}{1+g} \sigma^2 G_{SS}^{-1}`, where :math:`\sigma^2` is v or
:math:`2 (E_0 + g E) / ((1+g) (\nu - 2))` (Liang, Paulo, Molina, Clyde & Berger, JASA 103, 2008).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaln, gammaln

from pairflip.least_squares import Floats

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem

PRIORS = ("beta-binomial", "uniform")


@dataclass(frozen=True)
class ModelPrior:
    """What was assumed, in numbers.

    Attributes
    ----------
    g : float
        Of the g-prior.
    name : str
        Prior of the models, in words.
    log_prior : (n + 1,)
        Logarithm of the prior probability of each single model of a size; minus infinity where a size is not allowed.
    variance : float or None
        Of the noise; None: unknown.
    freedom : float
        Rows less forced columns, nu above; a row of weight 2 counts as two rows.
    """

    g: float
    name: str
    log_prior: Floats
    variance: float | None
    freedom: float

    @property
    def smallest(self) -> int:
        """The smallest number of columns that is allowed."""
        return int(np.flatnonzero(np.isfinite(self.log_prior))[0])

    @property
    def largest(self) -> int:
        """The largest number of columns that is allowed."""
        return int(np.flatnonzero(np.isfinite(self.log_prior))[-1])

    @property
    def shrink(self) -> float:
        """What coefficients are multiplied by, g / (1 + g)."""
        return self.g / (1.0 + self.g)

    def size_probability(self) -> Floats:
        """Probability (n + 1,) of each number of columns before the data are seen."""
        n, k = self.log_prior.size - 1, np.arange(self.log_prior.size)
        logs = self.log_prior + gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    @property
    def inclusion(self) -> float:
        """Probability that a column is in the model before the data are seen: the mean fraction of columns."""
        n = self.log_prior.size - 1
        return float(self.size_probability() @ np.arange(n + 1) / max(n, 1))

    def noise(self, empty: float) -> tuple[float, float]:
        """The variance of the noise as a + b E of a model, when no columns leave the energy `empty`."""
        if self.variance is not None:
            return self.variance, 0.0
        below = (1.0 + self.g) * (self.freedom - 2.0)
        return 2.0 * empty / below, 2.0 * self.g / below


def read_prior(problem: SubsetProblem, g: Any, prior: Any, sizes: Iterable[int] | None, variance: Any) -> ModelPrior:
    """What a user asked for, checked."""
    n = problem.form.n_columns
    forced = problem.forced_basis.shape[1] + (problem.center == "global")
    rows = float(problem.sample_weight.sum())
    freedom = rows - forced
    if freedom < 4:
        raise ValueError(f"{rows:g} rows leave {freedom:g} beside the forced columns; expected at least 4 of them.")
    log_prior, name = _of_models(prior, n)
    allowed = _sizes(sizes, n, freedom)
    log_prior = np.where(allowed, log_prior, -np.inf)
    if variance is not None and not (_is_number(variance) and variance > 0):
        raise ValueError(f"variance is {variance!r}; expected the variance of the noise, a number above 0, or None.")
    return ModelPrior(_read_g(g, rows, int(problem.candidates.size)), name, log_prior, variance, freedom)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _read_g(g: Any, rows: float, n: int) -> float:
    """A number as it is; "unit" is the number of rows, "bric" the larger of that and n squared."""
    named = {"unit": float(rows), "bric": float(max(rows, n * n))}
    if isinstance(g, str) and g in named:
        return named[g]
    if not (_is_number(g) and g > 0):
        raise ValueError(f"g is {g!r}; expected a number above 0, 'unit' (the number of rows) or 'bric'.")
    return float(g)


def _of_models(prior: Any, n: int) -> tuple[Floats, str]:
    """Logarithm of the prior probability of each single model by size, and its name."""
    k = np.arange(n + 1)
    if isinstance(prior, str) and prior == "uniform":
        return np.full(n + 1, -n * np.log(2.0)), "all models alike"
    if isinstance(prior, str) and prior == "beta-binomial":
        choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        return np.asarray(-np.log(n + 1.0) - choose), "all sizes alike, and all models of a size"
    if isinstance(prior, tuple) and len(prior) == 2 and all(_is_number(each) and each > 0 for each in prior):
        a, b = prior
        return np.asarray(betaln(k + a, n - k + b) - betaln(a, b)), f"beta-binomial with a = {a:g} and b = {b:g}"
    if _is_number(prior) and 0 < prior < 1:
        return np.asarray(k * np.log(prior) + (n - k) * np.log1p(-prior)), f"each column with probability {prior:g}"
    raise ValueError(
        f"prior is {prior!r}; expected 'uniform', 'beta-binomial', a pair (a, b) for the beta distribution, or the "
        "prior probability of a column, between 0 and 1."
    )


def _sizes(sizes: Iterable[int] | None, n: int, freedom: float) -> Any:
    """Which sizes (n + 1,) are allowed; by default those that leave at least two rows for the noise."""
    most, allowed = max(0, min(n, int(freedom) - 2)), np.zeros(n + 1, dtype=bool)
    if sizes is None:
        allowed[: most + 1] = True
        return allowed
    wanted = [sizes] if isinstance(sizes, int) else list(sizes)
    for size in wanted:
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 0 <= size <= most:
            raise ValueError(f"sizes has {size!r}; expected whole numbers of columns from 0 to {most}.")
        allowed[size] = True
    if not wanted:
        raise ValueError("sizes is empty; expected at least one number of columns, or None for all of them.")
    if np.any(np.diff(np.flatnonzero(allowed)) > 1):
        raise ValueError("sizes has gaps; expected consecutive numbers of columns: the walk adds one column at a time.")
    return allowed
