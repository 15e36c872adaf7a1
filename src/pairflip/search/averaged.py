"""What is known of all models together: `Posterior`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import as_table
from pairflip.least_squares import Floats
from pairflip.search.datatree import MOST_INDICATORS, draws_tree
from pairflip.search.prior import ModelPrior
from pairflip.text import column_labels, percent, plural

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes

    from pairflip.problem import SubsetProblem

Ints = NDArray[np.int64]
_MASS = 0.9999  # of the models, by which standard deviations of predictions are computed ...
_MODELS = 5000  # ... and at most so many


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probabilities of columns and models, given the data and what was assumed.

    Attributes
    ----------
    inclusion_probability, inclusion_se : (N,)
        Probability that a column is in the model, and its Monte Carlo standard error (0 where all models were visited).
        Columns that are always in have probability 1, those that do not vary 0.
    size_probability : (n + 1,)
        Probability of each number of columns, from 0.
    models, model_probability : tuple of (k,), (m,)
        Models as sorted column indices of X, the most probable first, and their probabilities. Where models were
        visited at random, the fraction of the visits.
    coef_mean, coef_sd : (N,)
        Mean and standard deviation of the coefficients, in the units of the table; zero where a column is not in.
    intercept, always_coef : float, (a,)
        Means of the constant and of the coefficients of columns that are always in (these are in `coef_mean`, too).
    prior : ModelPrior
        What was assumed.
    method : {"enumeration", "sampling"}
        Whether all models were visited, or some at random.
    visited : int
        How many models were visited: all, or the moves of all chains.
    acceptance : dict
        Fractions of accepted moves that add, drop and flip columns; empty for an enumeration.
    sizes, energies : (chain, draw)
        Numbers of columns and energies along the chains; empty for an enumeration.
    draws : (chain, draw, largest)
        Columns of X that were in, -1 behind them; empty for an enumeration.
    seconds, note : float, str
        Time taken, and what a reader should know besides.
    """

    problem: SubsetProblem = field(repr=False)
    inclusion_probability: Floats
    inclusion_se: Floats
    size_probability: Floats
    models: tuple[Ints, ...]
    model_probability: Floats
    coef_mean: Floats
    coef_sd: Floats
    intercept: float
    always_coef: Floats
    prior: ModelPrior
    method: str
    visited: int
    acceptance: dict[str, float]
    sizes: Ints
    energies: Floats
    draws: Ints
    seconds: float
    note: str

    @property
    def names(self) -> list[str]:
        """Names of the columns of X."""
        return self.problem.names

    @property
    def highest_probability_model(self) -> Ints:
        """The single most probable model (of those visited), without the columns that are always in."""
        return self.models[0]

    @property
    def median_probability_model(self) -> Ints:
        """Columns whose inclusion probability is at least one half, without those that are always in."""
        often = np.flatnonzero(self.inclusion_probability >= 0.5)
        return np.setdiff1d(often, self.problem.always)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict new rows, averaged over models.

        Parameters
        ----------
        X : (R, N)
            New rows, with the columns of the table.
        return_std : bool
            Whether to give the standard deviation of a new observation, too: noise, uncertain coefficients and
            uncertain models together.

        Returns
        -------
        mean, or (mean, std) : (R,)
        """
        rows = as_table(X, least_rows=1)[0]
        if rows.shape[1] != self.problem.n_columns:
            raise ValueError(
                f"X has {plural(rows.shape[1], 'column')}; expected the {self.problem.n_columns} columns of the table."
            )
        mean = rows @ self.coef_mean + self.intercept
        if not return_std:
            return mean
        weight, square, middle = 0.0, np.zeros(len(rows)), np.zeros(len(rows))
        for share, model in zip(self.model_probability, self._fitted, strict=False):
            told, spread = model.predict(rows)
            weight += share
            middle += share * told
            square += share * (told**2 + spread)
        middle /= weight
        return mean, np.sqrt(np.maximum(square / weight - middle**2, 0.0))

    @cached_property
    def _fitted(self) -> list[_Model]:
        """The models by which predictions are judged, the most probable first."""
        enough = int(np.searchsorted(np.cumsum(self.model_probability), _MASS)) + 1
        return [_Model(self.problem, self.prior, support) for support in self.models[: min(enough, _MODELS)]]

    def to_pandas(self) -> pd.DataFrame:
        """One row for each column of X: probability, its error, mean and standard deviation of the coefficient."""
        import pandas as pd

        return pd.DataFrame(
            {
                "column": self.names,
                "inclusion_probability": self.inclusion_probability,
                "inclusion_se": self.inclusion_se,
                "coef_mean": self.coef_mean,
                "coef_sd": self.coef_sd,
            }
        )

    def to_datatree(self) -> xr.DataTree:
        """The draws as ArviZ reads them: group ``posterior`` with dims chain and draw.

        It has the number of columns, the energy, and whether each of the columns that are in most often was in.
        """
        if not self.sizes.size:
            raise ValueError("all models were visited, so there are no chains; expected method='sample'.")
        often = np.argsort(-self.inclusion_probability, kind="stable")
        often = often[~np.isin(often, self.problem.always)][:MOST_INDICATORS]
        units = self.problem.units
        inside = (self.draws[..., None] == (often if units is None else units.first[often])).any(axis=2)
        series = {"size": self.sizes, "energy": self.energies}
        about = {"g": self.prior.g, "prior": self.prior.name}
        return draws_tree(series, inside, self.names, often.tolist(), range(len(self.sizes)), {}, about)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw inclusion probabilities with matplotlib, on `ax` or in a new pyplot figure."""
        from pairflip.report.notebook import plot_probabilities

        return plot_probabilities(self, ax)

    def _repr_html_(self) -> str:
        """Inclusion probabilities, coefficients and what they are conditional on, for notebooks."""
        from pairflip.report.notebook import posterior_html

        return posterior_html(self)

    def __str__(self) -> str:
        order = np.argsort(-self.inclusion_probability, kind="stable")[:10]
        labels = column_labels(self.names, order.tolist())
        width = max(len(label) for label in labels)
        lines = [self.assumptions, "", f"{'column':{width}}  in model  coefficient (sd)"]
        for j, label in zip(order.tolist(), labels, strict=True):
            chance = percent(float(self.inclusion_probability[j]))
            lines.append(f"{label:{width}}  {chance:>8}  {self.coef_mean[j]:.4g} ({self.coef_sd[j]:.2g})")
        best = ", ".join(column_labels(self.names, self.models[0].tolist())) or "no columns"
        lines += ["", f"Most probable model ({percent(float(self.model_probability[0]))}): {best}."]
        return "\n".join(lines)

    @property
    def assumptions(self) -> str:
        """What the probabilities are conditional on, in one sentence."""
        noise = "of unknown variance" if self.prior.variance is None else f"of variance {self.prior.variance:g}"
        seen = "all models" if self.method == "enumeration" else f"{self.visited:,} moves between models"
        what = "columns" if self.problem.units is None else "groups of columns"
        return (
            f"Probabilities given that the target is linear in some of the {what} with normal noise {noise}, "
            f"coefficients have Zellner's prior with g = {self.prior.g:g}, and models before the data: "
            f"{self.prior.name} ({seen})."
        )


class _Model:
    """One model: its mean and the variance of a new observation under the g-prior."""

    def __init__(self, problem: SubsetProblem, prior: ModelPrior, support: Ints) -> None:
        w = np.sqrt(problem.sample_weight)[:, None]
        self._always, self._support = problem.always, support
        self._constant = problem.center is not None
        Z = self._forced(problem.X)
        inverse = np.linalg.pinv(w * Z)
        self._lift = inverse @ (w * problem.X[:, support])
        own = (problem.X[:, support] - Z @ self._lift) * w
        scale = np.linalg.norm(own, axis=0)
        # Columns of a group may depend on each other: what they span is all that counts.
        left, values, right = np.linalg.svd(own / scale, full_matrices=False)
        rank = int(np.sum(values > 1e-9 * values.max(initial=0.0)))
        q, back = left[:, :rank], right[:rank].T / values[:rank] / scale[:, None]
        target = w[:, 0] * problem.y - (w * Z) @ (inverse @ (w[:, 0] * problem.y))
        fitted = q.T @ target
        energy = 0.5 * max(float(target @ target - fitted @ fitted), 0.0)
        self._coef = prior.shrink * back @ fitted
        self._z = inverse @ (w[:, 0] * (problem.y - problem.X[:, support] @ self._coef))
        spread, slope = prior.noise(0.5 * float(target @ target))
        self._noise, self._shrink = spread + slope * energy, prior.shrink
        self._root = back
        self._inner = inverse @ inverse.T

    def _forced(self, X: Floats) -> Floats:
        """The constant, if there is one, and the columns that are always in (R, f)."""
        return np.column_stack([np.ones((len(X), int(self._constant))), X[:, self._always]])

    def predict(self, X: Floats) -> tuple[Floats, Floats]:
        """Mean and variance (R,) of new observations."""
        Z = self._forced(X)
        mean = X[:, self._support] @ self._coef + Z @ self._z
        away = (X[:, self._support] - Z @ self._lift) @ self._root
        leverage = np.einsum("rf,fe,re->r", Z, self._inner, Z) + self._shrink * np.einsum("rk,rk->r", away, away)
        return mean, self._noise * (1.0 + leverage)
