r"""Probabilities of columns and models under Zellner's g-prior: all models one by one, or a walk among them.

With k columns beside the forced ones, E the energy, :math:`E_0` that of no columns, and :math:`\nu` rows less forced
columns (the constant among them), the posterior weight of a model is its prior times

.. math:: (1 + g)^{-k/2} \left(E + E_0 / g\right)^{-\nu/2}
          \quad\text{or}\quad (1 + g)^{-k/2} \exp\left(-\frac{g}{1+g} \frac{E}{v}\right)

for an unknown variance of the noise (prior :math:`1/\sigma^2`) or a known one, v. Coefficients then have the mean
:math:`\frac{g}{1+g} x` and the covariance :math:`\frac{g}{1+g} \sigma^2 G_{SS}^{-1}`, where :math:`\sigma^2` is v or
:math:`2 (E_0 + g E) / ((1+g) (\nu - 2))` (Liang, Paulo, Molina, Clyde & Berger, JASA 103, 2008).

Their hyper-g prior, :math:`p(g) = \frac12 (1 + g)^{-3/2}` (a = 3), leaves g to the data. With :math:`R^2 = 1 - E / E_0`
the weight of a model of d columns is then its prior times

.. math:: \int p(g)\, (1 + g)^{(\nu - d)/2} (1 + (1 - R^2) g)^{-\nu/2}\, dg ,

and coefficients are averaged over g, too. The integrals are tabulated once, by d and E (`hyper_g`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import comb, log
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from pairflip.blas import one_blas_thread
from pairflip.engines.base import RankTooSmall
from pairflip.engines.numba import announce_compilation
from pairflip.inputs import as_table, find_columns
from pairflip.jobs import local_threads
from pairflip.journal_file import Folder
from pairflip.least_squares import Floats
from pairflip.philox import STREAM_MODELS, chain_keys, check_seed, philox4x32, start_order
from pairflip.problem import SubsetProblem
from pairflip.search.draws import (
    BATCHES,
    MOST_INDICATORS,
    Chain,
    before_counting,
    chain_numbers,
    chain_settings,
    check_counts,
    draws_tree,
    frequencies,
    walk_missing,
)
from pairflip.search.effort import is_number, is_whole
from pairflip.sparse import dense
from pairflip.supports import distinct_supports
from pairflip.text import column_labels, listed, percent, plural, shorten

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes

    from pairflip.engines.numba.models import Mixture, ModelSums

ENUMERATED = 2**20
"""Up to so many models all of them are visited (a second or so)."""
_MOST_ENUMERATED = 2**30
_TOP = 1000  # models that an enumeration keeps
_EDGE = 0x6D6F646C  # in place of a size in the addresses of walks among models
_MASS = 0.9999  # of the models, by which standard deviations of predictions are computed ...
_MODELS = 5000  # ... and at most so many

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ModelPrior:
    """What was assumed, in numbers."""

    g: float | None  # of the g-prior; None: integrated out under the hyper-g prior
    name: str  # prior of the models, in words
    log_prior: Floats  # (n + 1,), of each single model of a size; minus infinity where a size is not allowed
    variance: float | None  # of the noise; None: unknown
    freedom: float  # rows less forced columns, nu above; a row of weight 2 counts as two rows

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
        """What coefficients are multiplied by, g / (1 + g); 1 where that depends on the model."""
        return 1.0 if self.g is None else self.g / (1.0 + self.g)

    @property
    def coefficients(self) -> str:
        """The prior of the coefficients, in words."""
        return "the hyper-g prior (a = 3)" if self.g is None else f"Zellner's prior with g = {self.g:g}"

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
        below = self.freedom - 2.0
        return 2.0 * empty * (1.0 - self.shrink) / below, 2.0 * self.shrink / below


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

    def any_of(self, columns: Any) -> tuple[float, float]:
        """Probability that at least one of some columns is in the model: columns that stand in for each other share it.

        Parameters
        ----------
        columns : sequence of int or str
            Columns of X, by index or by name.

        Returns
        -------
        probability, error : float
            The probability, and its Monte Carlo standard error (0 where all models were visited).
        """
        wanted = find_columns(columns, self.names, "columns")
        if np.isin(wanted, self.problem.always).any():
            return 1.0, 0.0
        units = self.problem.units
        wanted = wanted if units is None else units.units_of(wanted)
        if self.sizes.size:
            inside = np.isin(self.draws, wanted).any(axis=2, keepdims=True)
            (share,), (error,) = frequencies(np.where(inside, 0, -1), 1)
            return float(share), float(error)
        space = _ModelSpace(self.problem, self.prior)
        among = np.isin(self.problem.form.candidates, wanted)
        # With these units first, models that have one of them are those whose smallest unit is one of them.
        parts = _visit_all(space, local_threads(None), np.argsort(~among, kind="stable"), top=0)
        logs = np.array([sums.scalars[0] for sums in parts])
        totals = np.exp(logs - logs.max()) * [sums.scalars[1] for sums in parts]
        return float(totals[1 : 1 + among.sum()].sum() / totals.sum()), 0.0

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
        weight, square, middle = 0.0, np.zeros(rows.shape[0]), np.zeros(rows.shape[0])
        mixture = None
        if self.prior.g is None:
            mixture = _mixture(self.prior, 0.5 * self.problem.form.yy, max(len(model) for model in self.models))
        enough = int(np.searchsorted(np.cumsum(self.model_probability), _MASS)) + 1
        for share, support in zip(self.model_probability, self.models[: min(enough, _MODELS)], strict=False):
            model_mean, model_variance = _predict(self.problem, self.prior, mixture, support, rows)
            weight += share
            middle += share * model_mean
            square += share * (model_mean**2 + model_variance)
        middle /= weight
        return mean, np.sqrt(np.maximum(square / weight - middle**2, 0.0))

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
        about = {"g": "hyper" if self.prior.g is None else self.prior.g, "prior": self.prior.name}
        return draws_tree(series, inside, column_labels(self.names, often.tolist()), range(len(self.sizes)), about, {})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw inclusion probabilities with matplotlib, on `ax` or in a new pyplot figure."""
        from pairflip.report.notebook import plot

        return plot(self, ax)

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

    def __repr__(self) -> str:
        best = [shorten(label, 40) for label in column_labels(self.names, self.models[0].tolist())]
        return (
            f"Posterior({self.visited:,} {'models' if self.method == 'enumeration' else 'moves between models'}, "
            f"{len(self.names)} columns of which "
            f"{self.median_probability_model.size} have a probability of at least one half, most probable model "
            f"{listed(best, 10)} with {percent(float(self.model_probability[0]))}, {self.seconds:.2g} s)"
        )

    @property
    def assumptions(self) -> str:
        """What the probabilities are conditional on, in one sentence."""
        noise = "of unknown variance" if self.prior.variance is None else f"of variance {self.prior.variance:g}"
        visits = "all models" if self.method == "enumeration" else f"{self.visited:,} moves between models"
        noun = "columns" if self.problem.units is None else "groups of columns"
        return (
            f"Probabilities given that the target is linear in some of the {noun} with normal noise {noise}, "
            f"coefficients have {self.prior.coefficients}, and models before the data: "
            f"{self.prior.name} ({visits})."
        )


def _forced(problem: SubsetProblem, X: Any) -> Floats:
    """The constant, if there is one, and the columns that are always in (R, f)."""
    return np.column_stack([np.ones((X.shape[0], int(problem.center is not None))), dense(X[:, problem.always])])


def _predict(
    problem: SubsetProblem, prior: ModelPrior, mixture: Mixture | None, support: Ints, X: Any
) -> tuple[Floats, Floats]:
    """Mean and variance (R,) of new observations under the g-prior, or a mixture of them, and one model."""
    from pairflip.engines.numba.models import mixed

    w, Z, new = np.sqrt(problem.sample_weight)[:, None], _forced(problem, problem.X), _forced(problem, X)
    inverse, chosen, X = np.linalg.pinv(w * Z), problem.values(support), dense(X[:, support])
    lift = inverse @ (w * chosen)
    columns = (chosen - Z @ lift) * w
    scale = np.linalg.norm(columns, axis=0)
    # Columns of a group may depend on each other: what they span is all that counts.
    basis, values, right = np.linalg.svd(columns / scale, full_matrices=False)
    rank = int(np.sum(values > 1e-9 * values.max(initial=0.0)))
    back = right[:rank].T / values[:rank] / scale[:, None]
    target = w[:, 0] * problem.y - (w * Z) @ (inverse @ (w[:, 0] * problem.y))
    fitted = basis[:, :rank].T @ target
    energy, empty = 0.5 * max(float(target @ target - fitted @ fitted), 0.0), 0.5 * float(target @ target)
    spread, slope = prior.noise(empty)
    u, square, noise = prior.shrink, prior.shrink**2, spread + slope * energy
    shrunken = u * noise
    if mixture is not None:  # means over g
        u, square = (float(mixed.py_func(mixture, rank, energy, part)) for part in (1, 2))
        noise = 2.0 * (empty * (1.0 - u) + u * energy) / (prior.freedom - 2.0)
        shrunken = 2.0 * (empty * (u - square) + square * energy) / (prior.freedom - 2.0)
    coef = u * back @ fitted
    constant = inverse @ (w[:, 0] * (problem.y - chosen @ coef))
    away = (X - new @ lift) @ back
    leverage = np.einsum("rf,fe,re->r", new, inverse @ inverse.T, new)
    variance = noise * (1.0 + leverage) + shrunken * np.einsum("rk,rk->r", away, away)
    variance += (square - u**2) * (away @ fitted) ** 2
    return X @ coef + new @ constant, variance


def posterior(
    problem: SubsetProblem,
    g: float | Literal["unit", "bric", "hyper"] = "unit",
    prior: str | float | tuple[float, float] = "beta-binomial",
    sizes: Iterable[int] | None = None,
    *,
    variance: float | None = None,
    method: Literal["auto", "enumerate", "sample"] = "auto",
    sweeps: int = 2000,
    burn_in: int | None = None,
    chains: int = 4,
    seed: int = 0,
    first_chain: int = 0,
    journal: Folder | None = None,
    n_jobs: int | None = None,
) -> Posterior:
    r"""Probabilities of columns and models, and everything averaged over models.

    Parameters
    ----------
    problem : SubsetProblem
        Table and target: squared error of one target, no ridge. A row of weight 2 counts as two rows. With groups of
        columns, models are sets of groups: sizes, priors and probabilities are those of groups, and the g-prior counts
        their independent columns.
    g : float, "unit", "bric" or "hyper"
        Of Zellner's g-prior: coefficients are expected to be about as large as g rows allow to see. ``"unit"``: the
        number of rows; ``"bric"``: the larger of that and the squared number of columns; ``"hyper"``: integrated out
        under the hyper-g prior (a = 3), so that the data say how large coefficients are.
    prior : "beta-binomial", "uniform", float or (a, b)
        Of models: all sizes alike; all models alike (with many columns, that expects half of them to be in); the
        probability of each column; or a beta distribution of that probability.
    sizes : iterable of int, optional
        Numbers of columns that are possible, without gaps; all by default.
    variance : float, optional
        Variance of the noise, if it is known.
    method : {"auto", "enumerate", "sample"}
        Visit all models, or walk among them; "auto": all, if there are at most a million.
    sweeps, burn_in : int
        Sweeps of a walk that count, and those before; a sweep is as many attempted moves as there are columns. By
        default a fifth of `sweeps` comes before.
    chains, seed : int
        Independent walks, and what their random numbers depend on.
    first_chain : int
        Number of the first walk; with one `journal` for all, walks may be made in several places.
    journal : path, optional
        Folder in which finished walks are kept. Run the same again to resume, or with more chains to go on.
    n_jobs : int, optional
        Threads; the result does not depend on them.
    """
    began = time.perf_counter()
    _check_problem(problem)
    assumed = read_prior(problem, g, prior, sizes, variance)
    n, largest = problem.form.n_columns, assumed.largest
    count = sum(comb(n, k) for k in range(largest + 1))
    if method not in ("auto", "enumerate", "sample"):
        raise ValueError(f"method is {method!r}; expected 'auto', 'enumerate' or 'sample'.")
    if method == "enumerate" and (count > _MOST_ENUMERATED or n > 62):
        raise ValueError(
            f"there are {count:.2g} models of up to {largest} of {n} columns; expected at most "
            f"{_MOST_ENUMERATED:.2g} to visit all: use method='sample', or fewer sizes."
        )
    if method == "enumerate" or (method == "auto" and count <= ENUMERATED):
        return _by_enumeration(problem, assumed, local_threads(n_jobs), began)
    check_counts(BATCHES, sweeps=sweeps)
    numbers, before = chain_numbers(chains, first_chain), before_counting(sweeps, burn_in)
    settings = chain_settings(
        problem, run="posterior", g="hyper" if assumed.g is None else assumed.g, prior=np.array(prior).tolist(),
        smallest=assumed.smallest, largest=assumed.largest, variance=None if variance is None else float(variance),
        sweeps=int(sweeps), burn_in=before, seed=check_seed(seed),
    )  # fmt: skip
    return _by_walks(problem, assumed, settings, numbers, journal, local_threads(n_jobs), began)


def _check_problem(problem: SubsetProblem) -> None:
    """Refuse what these probabilities are not defined for."""
    if not isinstance(problem, SubsetProblem):
        raise TypeError(f"problem is a {type(problem).__name__}; expected a pairflip.SubsetProblem.")
    obstacle, form = None, problem.form
    if not form.quadratic or len(form.B) > 1 or form.rules.any:
        obstacle = "classes, counts, several targets, signs or rules about columns"
    elif problem.ridge or problem.shrinkage:
        obstacle = "a ridge"
    elif not problem.form.dense:
        obstacle = "a table so wide that its matrix of inner products exceeds the memory budget"
    if obstacle is not None:
        raise ValueError(f"the problem has {obstacle}; expected squared error of one target, and the g-prior alone.")


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
    if variance is not None and not (is_number(variance) and variance > 0):
        raise ValueError(f"variance is {variance!r}; expected the variance of the noise, a number above 0, or None.")
    named = {"unit": rows, "bric": max(rows, float(problem.candidates.size) ** 2)}
    if isinstance(g, str) and g == "hyper":
        if variance is not None:
            raise ValueError("g is 'hyper' and variance is given; expected one of them: leave variance out.")
        return ModelPrior(None, name, log_prior, variance, freedom)
    value: Any = named.get(g) if isinstance(g, str) else g
    if not (is_number(value) and value > 0):
        raise ValueError(f"g is {g!r}; expected a number above 0, 'unit' (the number of rows), 'bric' or 'hyper'.")
    return ModelPrior(float(value), name, log_prior, variance, freedom)


def _of_models(prior: Any, n: int) -> tuple[Floats, str]:
    """Logarithm of the prior probability of each single model by size, and its name."""
    k = np.arange(n + 1)
    if isinstance(prior, str) and prior == "uniform":
        return np.full(n + 1, -n * np.log(2.0)), "all models alike"
    if isinstance(prior, str) and prior == "beta-binomial":
        choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        return np.asarray(-np.log(n + 1.0) - choose), "all sizes alike, and all models of a size"
    if isinstance(prior, tuple) and len(prior) == 2 and all(is_number(each) and each > 0 for each in prior):
        a, b = prior
        return np.asarray(betaln(k + a, n - k + b) - betaln(a, b)), f"beta-binomial with a = {a:g} and b = {b:g}"
    if is_number(prior) and 0 < prior < 1:
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
        if not is_whole(size) or not 0 <= size <= most:
            raise ValueError(f"sizes has {size!r}; expected whole numbers of columns from 0 to {most}.")
        allowed[size] = True
    if not wanted:
        raise ValueError("sizes is empty; expected at least one number of columns, or None for all of them.")
    if np.any(np.diff(np.flatnonzero(allowed)) > 1):
        raise ValueError("sizes has gaps; expected consecutive numbers of columns: the walk adds one column at a time.")
    return allowed


_HYPER = 3.0  # a of the hyper-g prior
_TAIL = 25.0  # logarithm of what is negligible of an integral


def hyper_g(d: int, s: Floats, freedom: float) -> Floats:
    r"""Logarithm of the weight, and means of u = g / (1 + g) and of its square (Z, 3), of models of d columns.

    The energies E are those with :math:`s = \nu (E_0 / E - 1)` (Z,). With t = ln g the integrand has exponential tails
    on both sides, and the trapezoidal rule converges exponentially. Its mode is a root of a quadratic equation.
    """
    ratio = 1.0 / (1.0 + s / freedom)  # E / E_0
    # d/dt = 1 + b g / (1 + g) - c r g / (1 + r g) = 0
    b, c = 0.5 * (freedom - d - _HYPER), 0.5 * freedom
    A, B = ratio * (1.0 + b - c), 1.0 + ratio + b - c * ratio
    root = np.sqrt(B**2 - 4.0 * A)
    mode = np.where(B < 0, 2.0 / (np.abs(B) + root), (np.abs(B) + root) / (-2.0 * A))
    step = min(0.25, 0.5 / np.sqrt(d + 1.0))
    t = np.arange(-_TAIL, 2.0 * _TAIL / (d + 1.0) + 3.0, step) + np.log(mode)[:, None]
    log_g1 = np.logaddexp(0.0, t)
    logs = np.log(0.5 * (_HYPER - 2.0)) + t + b * log_g1 - c * np.logaddexp(0.0, t + np.log(ratio)[:, None])
    highest = logs.max(axis=1, keepdims=True)
    weights, u = np.exp(logs - highest), np.exp(t - log_g1)
    total = weights.sum(axis=1)
    means = np.stack([(weights * u**power).sum(axis=1) / total for power in (1, 2)], axis=1)
    return np.column_stack([highest[:, 0] + np.log(step * total), means])


def _mixture(prior: ModelPrior, empty: float, most: int) -> Mixture:
    """The table of the hyper-g prior for models of up to so many columns, when no columns leave the energy `empty`."""
    from pairflip.engines.numba.models import PLACES, STEP, Mixture

    s = np.expm1(STEP * np.arange(PLACES))
    table = np.zeros((most + 1, PLACES, 3))
    for d in range(1, most + 1):
        table[d] = hyper_g(d, s, prior.freedom)
    return Mixture(table, empty, prior.freedom)


class _ModelSpace:
    """Models of a problem under a prior: units of columns, and what sets of them weigh.

    `start` (U + 1,) is where the columns of each unit begin among the D columns of the matrix.
    """

    def __init__(self, problem: SubsetProblem, prior: ModelPrior) -> None:
        from pairflip.engines.numba.models import INFLATED, NO_MIXTURE, ModelWeight

        self.problem, self.prior, self.inflated, form = problem, prior, INFLATED, problem.form
        self.start, self.widths = form.start, form.widths
        self.n, self.matrix, self.b, self.yy = form.n_columns, form.matrix, form.b, form.yy
        spread, slope = prior.noise(0.5 * self.yy)
        known = prior.variance is not None
        a = prior.shrink / prior.variance if prior.variance is not None else 0.5 * prior.freedom
        column, offset, mixture, most = 0.0, 0.0, NO_MIXTURE, max(int(prior.freedom) - 2, 0)
        if prior.g is None:
            widest = int(np.sort(self.widths)[::-1][: prior.largest].sum())
            mixture = _mixture(prior, 0.5 * self.yy, min(most, widest))
        else:
            column, offset = 0.5 * np.log1p(prior.g), 0.0 if known else 0.5 * self.yy / prior.g
        self.weight = ModelWeight(prior.log_prior, column, a, offset, prior.shrink, spread, slope, most, mixture)
        # What gives coefficients of what is always in (f, M), and those of each coordinate.
        w = np.sqrt(problem.sample_weight)[:, None]
        self.inverse: Any = np.linalg.pinv(w * _forced(problem, problem.X))
        beside = self.inverse[int(problem.center is not None) :]
        self.lift = np.zeros((len(beside), self.b.size))
        for u in range(self.n if len(beside) else 0):
            columns, to = self.to_table(u)
            self.lift[:, self.start[u] : self.start[u + 1]] = beside @ (w * dense(problem.X[:, columns])) @ to

    def fit(self, units: Ints) -> tuple[float, Floats, Floats]:
        """Energy, coefficients of the columns, and their inverse Gram matrix, for some units."""
        at = self.problem.form.places(units)
        P: Floats = np.asarray(np.linalg.inv(self.matrix[np.ix_(at, at)]), dtype=np.float64)
        x = P @ self.b[at]
        return max(0.5 * (self.yy - float(x @ self.b[at])), 0.0), x, P

    def weigh(self, units: Ints) -> tuple[float, float]:
        """Logarithm of the weight of some units, and their energy; minus infinity if they depend on each other."""
        from pairflip.engines.numba.models import weight_of_model

        w, d = self.weight, int(self.widths[units].sum())
        if d > w.most:
            return -np.inf, np.inf
        try:
            energy, _, P = self.fit(units)
        except np.linalg.LinAlgError:
            return -np.inf, np.inf
        if P.size and not (P.diagonal().min() > 0 and P.diagonal().max() < self.inflated):
            return -np.inf, np.inf
        return float(weight_of_model(w, energy, units.size, d)), energy

    def moments(self, supports: list[Ints], share: Floats) -> tuple[Floats, Floats, Floats]:
        """Means over models with these shares: of coefficients (D,), their products in units (D, widest), `lifted`."""
        from pairflip.engines.numba.models import moments_of_model

        w, first, second = self.weight, np.zeros(self.b.size), np.zeros((self.b.size, int(self.widths.max(initial=1))))
        lifted = np.zeros(1 + len(self.lift))
        for units, part in zip(supports, share, strict=True):
            energy, x, P = self.fit(units)
            u, square, noise, shrunken = moments_of_model(w, energy, x.size)
            products, places = square * np.outer(x, x) + shrunken * P, self.problem.form.places(units)
            first[places] += part * u * x
            lift = self.lift[:, places]
            lifted += part * np.append(noise, np.einsum("fa,ab,fb->f", lift, products, lift))
            for unit, a in zip(units, np.cumsum(self.widths[units]) - self.widths[units], strict=True):
                columns, at = slice(self.start[unit], self.start[unit + 1]), slice(a, a + self.widths[unit])
                second[columns, : self.widths[unit]] += part * products[at, at]
        return first, second, lifted

    def to_table(self, unit: int) -> tuple[Ints, Floats]:
        """Columns of the table of a unit, and what leads from its coordinates to their coefficients."""
        at, scale, form = self.problem.candidates, self.problem.scale, self.problem.form
        if not form.grouped:
            return at[[unit]], np.array([[1.0 / scale[unit]]])
        members, to = form.to_table(np.array([unit]), scale)  # type: ignore[attr-defined]
        return at[members], to

    def columns_of(self, units: Ints) -> Ints:
        """Columns of the table of some units, sorted."""
        return self.problem.columns_of(self.problem.form.candidates[units])


@one_blas_thread()
def _visit_all(space: _ModelSpace, threads: int, order: Ints, top: int) -> list[ModelSums]:
    """Sums over all models of the units in some order: those of no units, then those with the same first unit."""
    from pairflip.engines.numba.models import new_sums, visit_models
    from pairflip.engines.numba.table import new_tables, plain_form

    announce_compilation(visit_models)
    largest, places = space.prior.largest, space.problem.form.places(order)
    start = np.concatenate([[0], np.cumsum(space.widths[order])])
    form, matrix = plain_form(space.b[None, places], space.yy), space.matrix[np.ix_(places, places)]
    widest = min(int(np.sort(space.widths)[::-1][:largest].sum()), space.weight.most)

    def visit(part: tuple[int, int]) -> ModelSums:
        sums, tables = (
            new_sums(start, top, space.lift[:, places]),
            new_tables(largest + 1, max(widest, 1), space.b.size, 1),
        )
        visit_models(form, matrix, start, space.weight, sums, tables, largest, *part)
        return sums

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(visit, [(-1, 0), *((u, u + 1) for u in range(space.n))]))


def _by_enumeration(problem: SubsetProblem, prior: ModelPrior, threads: int, began: float) -> Posterior:
    """All models, those with the same smallest unit together."""
    space = _ModelSpace(problem, prior)
    n = space.n
    visited_parts = _visit_all(space, threads, np.arange(n), _TOP)
    highest = max(float(sums.scalars[0]) for sums in visited_parts)
    factor = np.exp([float(sums.scalars[0]) - highest for sums in visited_parts])
    total = float(factor @ [sums.scalars[1] for sums in visited_parts])
    logs = np.concatenate([sums.top for sums in visited_parts])
    masks = np.concatenate([sums.masks for sums in visited_parts])
    best = np.argsort(-logs, kind="stable")[:_TOP]
    best = best[np.isfinite(logs[best])]
    bits = (masks[best, None] >> np.arange(n)) & 1
    first, second, lifted, inclusion, by_size = (
        np.einsum("p,p...->...", factor, np.stack([getattr(sums, name) for sums in visited_parts])) / total
        for name in ("first", "second", "lifted", "inclusion", "sizes")
    )
    left_out = int(sum(sums.scalars[3] for sums in visited_parts))
    return _assembled(
        space, inclusion, np.zeros(n), by_size, first, second, lifted,
        models=tuple(space.columns_of(np.flatnonzero(each)) for each in bits),
        model_probability=np.exp(logs[best] - highest) / total,
        method="enumeration", visited=int(sum(sums.scalars[2] for sums in visited_parts)), acceptance={},
        sizes=np.zeros((0, 0), np.int64), energies=np.zeros((0, 0)), draws=np.zeros((0, 0, 0), np.int64),
        seconds=time.perf_counter() - began,
        note="models whose columns depend on each other are left out" if left_out else "",
    )  # fmt: skip


@one_blas_thread()
def _by_walks(
    problem: SubsetProblem, prior: ModelPrior, settings: dict[str, Any], numbers: list[int], journal: Folder | None,
    threads: int, began: float,
) -> Posterior:  # fmt: skip
    """Some models, as often as they are probable."""
    space = _ModelSpace(problem, prior)
    n, largest, sweeps, chains = space.n, prior.largest, settings["sweeps"], len(numbers)
    one_walk = _unit_walk if problem.form.grouped else _column_walk

    def walk(numbers: Sequence[int]) -> list[Chain]:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda chain: one_walk(space, settings, chain), numbers))

    walked, note = walk_missing(numbers, walk, settings, journal, threads)
    records, energies, accepted = (
        np.stack([each[name] for each in walked]) for name in ("records", "energies", "accepted")
    )
    records.sort(axis=2)
    flat, _, _, counts = distinct_supports(records.reshape(chains * sweeps, largest))
    order = np.argsort(-counts, kind="stable")
    share = counts[order] / counts.sum()
    supports = [each[each >= 0].astype(np.int64) for each in flat[order]]
    inside = (records >= 0).sum(axis=2)
    inclusion, error = frequencies(records, n)
    moves = accepted.sum(axis=0)
    return _assembled(
        space, inclusion, error, np.bincount(inside.ravel(), minlength=n + 1) / inside.size,
        *space.moments(supports, share),
        models=tuple(space.columns_of(each) for each in supports), model_probability=share,
        method="sampling", visited=chains * sweeps * n,
        acceptance={
            name: float(a / max(b, 1)) for name, (a, b) in zip(("add", "drop", "flip"), moves.tolist(), strict=True)
        },
        sizes=inside.astype(np.int64), energies=energies,
        draws=np.where(records >= 0, problem.form.candidates[np.maximum(records, 0)], -1),
        seconds=time.perf_counter() - began, note=note,
    )  # fmt: skip


def _column_walk(space: _ModelSpace, settings: dict[str, Any], chain: int) -> Chain:
    """Models of one walk after every sweep: columns that are in (-1 behind them), energies, and accepted moves."""
    from pairflip.engines.numba.annealing import Walks, new_output, walk
    from pairflip.engines.numba.models import INFLATED

    announce_compilation(walk)
    sweeps, before, prior, w, n = settings["sweeps"], settings["burn_in"], space.prior, space.weight, space.n
    k = np.arange(prior.largest + 1)
    # All models of a size together, so that the ways to add and drop columns are counted.
    sizes = w.prior[k] - w.column * k + gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    first = min(max(prior.smallest, chain), prior.largest)
    keys = chain_keys(settings["seed"], _EDGE, None, np.array([chain]))
    weights: dict[str, Any] = {
        "sizes": np.append(sizes, -np.inf),
        "offset": w.c,
        "inflation": INFLATED,
        "mixture": w.mixture,
    }
    flips = np.array([before * n] * (before > 0) + [n] * sweeps, np.int64)
    output = new_output(1, flips.size, prior.largest, record=True)
    while True:
        walks = Walks(space.problem.form, first, keys, **weights)
        try:
            walks.chains(np.full(flips.size, w.a), flips, output, 0, 1, [], lambda _: None)
            break
        except RankTooSmall as error:  # begin with as many as there are
            if error.rank < prior.smallest:
                raise
            first = error.rank
    tried = (before + sweeps) * n * np.array([0.25, 0.25, 0.5])
    return {
        "records": output.record[0, -sweeps:],
        "energies": output.record_energy[0, -sweeps:],
        "accepted": np.column_stack([output.moves[0], tried.astype(np.int64)]),
    }


def _unit_walk(space: _ModelSpace, settings: dict[str, Any], chain: int) -> Chain:
    """Metropolis walk among groups of columns: units in the model after every sweep, energies, accepted moves."""
    sweeps, before, prior, n = settings["sweeps"], settings["burn_in"], space.prior, space.n
    (key,) = chain_keys(settings["seed"], _EDGE, None, np.array([chain]))
    known: dict[int, tuple[float, float]] = {}

    def weigh(model: int) -> tuple[float, float]:
        """Log weight and energy of a model; bit u of `model` says whether unit u is in it."""
        if model not in known:
            known[model] = space.weigh(np.array([u for u in range(n) if model >> u & 1], dtype=np.int64))
        return known[model]

    order, k, model = start_order(key, n).tolist(), 0, 0
    for at, unit in enumerate(order):  # from some units that do not depend on each other
        if k < min(max(prior.smallest, chain), prior.largest) and np.isfinite(weigh(model | 1 << unit)[1]):
            order[k], order[at], model, k = unit, order[k], model | 1 << unit, k + 1
    weight, energy = weigh(model)
    records, energies = np.full((sweeps, prior.largest), -1, np.int32), np.zeros(sweeps)
    accepted, ways = np.zeros((3, 2), np.int64), np.log((n - np.arange(n)) / (np.arange(n) + 1.0)).tolist()
    for sweep in range(before + sweeps):
        counter = np.zeros((n, 4), np.uint64)
        t = np.arange(sweep * n, sweep * n + n)
        counter[:, 0], counter[:, 1], counter[:, 2] = t & 0xFFFFFFFF, t >> 32, STREAM_MODELS
        for w0, w1, w2, w3 in philox4x32(counter, key).tolist():
            kind = min(w0 >> 30, 2)
            accepted[kind, 1] += 1
            if (kind != 0 and k == 0) or (kind != 1 and k == n) or (kind == 0 and k == prior.largest):
                continue
            # Adding flips an empty slot behind the others; the last unit takes the slot of one that is dropped.
            slot = k if kind == 0 else ((w0 << 2) & 0xFFFFFFFF) * k >> 32
            other = k - 1 if kind == 1 else k + (w1 * (n - k) >> 32)
            then, choices = model, 0.0
            if kind != 1:
                then ^= 1 << order[other]
            if kind != 0:
                then ^= 1 << order[slot]
            if kind != 2:
                choices = ways[k] if kind == 0 else -ways[k - 1]
            proposed, proposed_energy = weigh(then)
            if log(((w2 >> 5 << 26 | w3 >> 6) + 1) * 2.0**-53) <= proposed - weight + choices:
                order[slot], order[other] = order[other], order[slot]
                model, weight, energy, k = then, proposed, proposed_energy, k + (1, -1, 0)[kind]
                accepted[kind, 0] += 1
        if sweep >= before:
            records[sweep - before, :k], energies[sweep - before] = order[:k], energy
    return {"records": records, "energies": energies, "accepted": accepted}


def _assembled(
    space: _ModelSpace, inclusion: Floats, error: Floats, by_size: Floats,
    first: Floats, second: Floats, lifted: Floats, **rest: Any,
) -> Posterior:  # fmt: skip
    """The record, in columns and units of the table."""
    problem, at = space.problem, space.problem.candidates
    probability, probability_se, coef_mean, coef_sd = np.zeros((4, problem.n_columns))
    for u in range(space.n):
        columns = space.columns_of(np.array([u]))
        probability[columns], probability_se[columns] = inclusion[u], error[u]
        part, (members, to) = slice(space.start[u], space.start[u + 1]), space.to_table(u)
        spread = second[part, : space.widths[u]] - np.outer(first[part], first[part])
        coef_mean[members] = to @ first[part]
        coef_sd[members] = np.sqrt(np.maximum(np.einsum("ia,ab,ib->i", to, spread, to), 0.0))
    probability[problem.always] = 1.0
    residual, w = problem.y - problem.X[:, at] @ coef_mean[at], np.sqrt(problem.sample_weight)
    z, constants = space.inverse @ (w * residual), int(problem.center is not None)
    constant, always = float(z[0]) if constants else 0.0, z[constants:]
    coef_mean[problem.always] = always
    # With flat priors: noise as in least squares on what is always in, and what the other coefficients take away.
    variance = lifted[0] * np.sum(space.inverse[constants:] ** 2, axis=1) + lifted[1:] - (space.lift @ first) ** 2
    coef_sd[problem.always] = np.sqrt(np.maximum(variance, 0.0))
    return Posterior(
        problem=problem, inclusion_probability=probability, inclusion_se=probability_se, size_probability=by_size,
        coef_mean=coef_mean, coef_sd=coef_sd, intercept=constant, always_coef=always, prior=space.prior, **rest,
    )  # fmt: skip
