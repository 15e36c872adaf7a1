"""Data to try things on: the paper's planted model, correlated designs, spectra, and a small real table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

__all__ = [
    "NamedTable",
    "PlantedTable",
    "Spectra",
    "load_diabetes_products",
    "make_correlated",
    "make_planted",
    "make_spectra",
]


@dataclass(frozen=True)
class PlantedTable:
    r"""A table whose true coefficients are known: :math:`y = X x_0 + \xi`.

    Attributes
    ----------
    X : (M, N)
        Table of candidates.
    y : (M,)
        Target.
    x0 : (N,)
        True coefficients, most of them zero.
    noise : (M,)
        :math:`\xi`, what was added to :math:`X x_0`.
    """

    X: Floats
    y: Floats
    x0: Floats
    noise: Floats

    @property
    def support(self) -> NDArray[np.int64]:
        """Columns with a true coefficient other than zero, sorted."""
        return np.flatnonzero(self.x0)


@dataclass(frozen=True)
class Spectra:
    """Spectra of mixtures and the concentration to predict from them.

    Attributes
    ----------
    X : (M, N)
        Absorbance of each sample at each wavelength.
    y : (M,)
        Measured concentration of the first component.
    wavelengths : (N,)
        In nanometres.
    concentrations : (M, components)
        True concentrations.
    names : list of str
        Column names, ``"1100 nm"`` and so on.
    """

    X: Floats
    y: Floats
    wavelengths: Floats
    concentrations: Floats
    names: list[str]


@dataclass(frozen=True)
class NamedTable:
    """A real table: X (M, N), y (M,) and one name per column."""

    X: Floats
    y: Floats
    names: list[str]


def _check(condition: bool, given: str, expected: str) -> None:
    if not condition:
        raise ValueError(f"{given}; expected {expected}.")


def make_planted(
    N: int = 200,
    alpha: float = 0.5,
    rho0: float = 0.1,
    var_x: float = 10.0,
    var_noise: float = 0.1,
    seed: int = 0,
) -> PlantedTable:
    r"""The paper's planted model, with the paper's parameters as defaults.

    .. math:: y = A x_0 + \xi, \quad A_{\mu i} \sim N(0, 1/N), \quad
        x_{0i} \sim (1 - \rho_0) \delta + \rho_0 N(0, \sigma_x^2), \quad \xi_\mu \sim N(0, \sigma_\xi^2).

    There is no intercept: use ``SubsetProblem(X, y, center=None)`` to compare with the theory.

    Parameters
    ----------
    N
        Columns.
    alpha
        Rows per column: M = round(alpha N).
    rho0
        Probability that a true coefficient is not zero.
    var_x, var_noise
        Variances :math:`\sigma_x^2` and :math:`\sigma_\xi^2`.
    seed
        Equal seeds give equal data.
    """
    M = round(alpha * N)
    _check(N >= 1 and M >= 2, f"N={N} and alpha={alpha} make {M} rows", "at least one column and two rows")
    _check(0 <= rho0 <= 1, f"rho0 is {rho0}", "a probability from 0 to 1")
    _check(var_x >= 0 and var_noise >= 0, f"var_x={var_x} and var_noise={var_noise}", "variances >= 0")
    rng = np.random.default_rng(seed)
    X = rng.normal(scale=N**-0.5, size=(M, N))
    x0 = np.where(rng.random(N) < rho0, rng.normal(scale=var_x**0.5, size=N), 0.0)
    noise = rng.normal(scale=var_noise**0.5, size=M)
    return PlantedTable(X, X @ x0 + noise, x0, noise)


def make_correlated(
    M: int = 100,
    N: int = 200,
    k: int = 5,
    correlation: float = 0.9,
    snr: float = 10.0,
    seed: int = 0,
) -> PlantedTable:
    r"""Columns correlated with their neighbours (AR(1)): :math:`\mathrm{corr}(X_i, X_j) = c^{|i-j|}`.

    The k true columns stand at equal distances and have coefficients +1, -1, +1, ..., so that they cannot
    stand in for one another. The noise variance is that of the signal over `snr`.

    Parameters
    ----------
    M, N
        Rows and columns.
    k
        True columns.
    correlation
        c, of neighbouring columns: 0.9999 is like a spectrum.
    snr
        Variance of the signal over variance of the noise.
    seed
        Equal seeds give equal data.
    """
    _check(M >= 2 and 1 <= k <= N, f"M={M}, N={N} and k={k}", "M >= 2 and 1 <= k <= N")
    _check(-1 < correlation < 1, f"correlation is {correlation}", "a number between -1 and 1")
    _check(snr > 0, f"snr is {snr}", "a number > 0")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(M, N))
    innovation = (1.0 - correlation**2) ** 0.5
    for j in range(1, N):
        X[:, j] = correlation * X[:, j - 1] + innovation * X[:, j]
    support = (2 * np.arange(k) + 1) * N // (2 * k)
    signs = (-1.0) ** np.arange(k)
    x0 = np.zeros(N)
    x0[support] = signs
    variance = signs @ correlation ** np.abs(np.subtract.outer(support, support)) @ signs
    noise = rng.normal(scale=float(variance / snr) ** 0.5, size=M)
    return PlantedTable(X, X @ x0 + noise, x0, noise)


def make_spectra(M: int = 60, N: int = 400, components: int = 4, noise: float = 1e-4, seed: int = 0) -> Spectra:
    r"""Smooth spectra like those of the near infrared, where every column resembles its neighbours.

    Each component absorbs in a few broad Gaussian bands, a sample is a mixture (Beer-Lambert), and
    every sample has its own baseline:

    .. math:: X_{m}(\lambda) = \sum_c C_{mc} \sum_b h_{cb} e^{-(\lambda - \lambda_{cb})^2 / 2 w_{cb}^2}
        + \text{offset}_m + \text{slope}_m \lambda + \text{noise}, \qquad y_m = C_{m0} + \text{noise}.

    Parameters
    ----------
    M, N
        Samples, and wavelengths from 1100 to 2500 nm.
    components
        Components of the mixture; y is the concentration of the first.
    noise
        Standard deviation of the absorbances; that of y is a hundred times larger.
    seed
        Equal seeds give equal data.
    """
    _check(M >= 2 and N >= 2, f"M={M} and N={N}", "at least two samples and two wavelengths")
    _check(components >= 1, f"components is {components}", "at least one component")
    _check(noise >= 0, f"noise is {noise}", "a standard deviation >= 0")
    rng = np.random.default_rng(seed)
    bands = 5
    where = np.linspace(0.0, 1.0, N)
    centre = rng.uniform(-0.05, 1.05, size=(components, bands, 1))
    width = rng.uniform(0.04, 0.15, size=(components, bands, 1))
    height = rng.uniform(0.1, 0.5, size=(components, bands, 1))
    pure = np.sum(height * np.exp(-0.5 * ((where - centre) / width) ** 2), axis=1)
    concentrations = rng.uniform(0.0, 1.0, size=(M, components))
    offset, slope = rng.normal(scale=0.02, size=(2, M, 1))
    X = concentrations @ pure + offset + slope * where + rng.normal(scale=noise, size=(M, N))
    y = concentrations[:, 0] + rng.normal(scale=100 * noise, size=M)
    wavelengths = 1100.0 + 1400.0 * where
    return Spectra(X, y, wavelengths, concentrations, [f"{nm:.5g} nm" for nm in wavelengths])


def _standardized(columns: Sequence[NDArray[Any]]) -> Floats:
    """Columns side by side (M, n), each centred and scaled to unit norm."""
    X = np.column_stack(columns).astype(np.float64)
    X -= X.mean(axis=0)
    return np.asarray(X / np.linalg.norm(X, axis=0))


def load_diabetes_products() -> NamedTable:
    """Diabetes progression of 442 patients: 10 measurements, their squares and their products (64 columns).

    The larger of the two tables in Efron, Hastie, Johnstone & Tibshirani (2004), *Least Angle Regression*,
    and a common benchmark of best subset selection. Squares and products are those of the standardized
    measurements (no square of `sex`, which has two values); every column is centred and scaled to unit norm.
    Columns are called ``bmi``, ``bmi^2``, ``age*sex``. The measurements come with scikit-learn; nothing is
    downloaded. There `bp` and `ltg` are rounded, so residual sums of squares agree with those from the table
    of R's ``lars`` to about one in a million.
    """
    from sklearn.datasets import load_diabetes

    names = ["age", "sex", "bmi", "bp", "tc", "ldl", "hdl", "tch", "ltg", "glu"]
    raw, y = load_diabetes(return_X_y=True, scaled=False)
    main = _standardized(list(raw.T))
    squares = [i for i in range(10) if names[i] != "sex"]
    pairs = [(i, j) for i in range(10) for j in range(i + 1, 10)]
    products = [main[:, i] ** 2 for i in squares] + [main[:, i] * main[:, j] for i, j in pairs]
    labels = [f"{names[i]}^2" for i in squares] + [f"{names[i]}*{names[j]}" for i, j in pairs]
    return NamedTable(np.hstack([main, _standardized(products)]), np.asarray(y, dtype=np.float64), names + labels)
