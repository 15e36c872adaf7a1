r"""How many supports there are at every energy, from samples at a ladder of temperatures.

The samples of all temperatures are reweighted together (multistate Bennett acceptance ratio, Shirts & Chodera, J. Chem.
Phys. 129, 2008; pymbar does it). At :math:`\beta = 0` all supports weigh the same, and there are
:math:`\binom{N}{k}` of them, so that sums over supports are known, not only their ratios:

.. math:: \ln G(\beta) = \ln \sum_S e^{-\beta E(S)}, \quad s(\beta) = \ln G + \beta \langle E \rangle, \quad
          \#\{S : E(S) \le L\} .
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from pairflip.engines.base import EQUAL
from pairflip.least_squares import Floats
from pairflip.search.samples import Samples

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from pairflip.search.proof import Proof

_FAR = 1e4  # in place of an infinite energy, in units of the temperature


@dataclass(frozen=True, eq=False)
class States:
    r"""Sums over supports, with standard errors.

    Attributes
    ----------
    k, n_columns : int
        Number of columns of a support, of all candidates.
    betas : (R,)
        Inverse temperatures of the ladder.
    log_sum, log_sum_se : (R,)
        :math:`\ln G(\beta)`.
    energy, entropy, entropy_se : (R,)
        Mean energy, and the logarithm of the number of supports that matter, at each temperature.
    levels, log_count, log_count_se : (L,)
        Energies, and the logarithm of how many supports have at most that energy. Minus infinity where none was met.
    """

    k: int
    n_columns: int
    betas: Floats
    log_sum: Floats
    log_sum_se: Floats
    energy: Floats
    entropy: Floats
    entropy_se: Floats
    levels: Floats
    log_count: Floats
    log_count_se: Floats

    def to_pandas(self) -> pd.DataFrame:
        """One row for each temperature."""
        import pandas as pd

        return pd.DataFrame(
            {
                "beta": self.betas,
                "log_sum": self.log_sum,
                "log_sum_se": self.log_sum_se,
                "energy": self.energy,
                "entropy": self.entropy,
                "entropy_se": self.entropy_se,
            }
        )

    def plot(self, ax: Axes | None = None, proof: Proof | None = None) -> Axes:
        """Draw entropy against energy with matplotlib, on `ax` or in a new pyplot figure; counts of a proof beside."""
        from pairflip.present.notebook import plot_states

        return plot_states(self, ax, proof)

    def _repr_html_(self) -> str:
        """Energy and entropy at each temperature, for notebooks."""
        from pairflip.present.notebook import states_html

        return states_html(self)


def density_of_states(samples: Samples, levels: Iterable[float] | None = None) -> States:
    """Sums over all supports of a size, and how many there are up to an energy.

    Singular supports, which have no energy, count as if they were there: the number at beta = 0 is the binomial
    coefficient.

    Parameters
    ----------
    samples : Samples
        Of `temper`, the hottest at beta = 0.
    levels : iterable of float, optional
        Energies up to which supports are counted; by default quantiles of the energies that were met.
    """
    mbar = _pymbar()
    if samples.betas.size < 2 or samples.betas[0] != 0.0:
        raise ValueError(
            f"the hottest beta is {samples.betas[0]:g}, of {samples.betas.size}; expected samples of temper() that "
            "begin at beta = 0, where all supports are alike."
        )
    energies, counts = _independent(samples, mbar)
    n = samples.candidates.size
    whole = float(gammaln(n + 1) - gammaln(samples.k + 1) - gammaln(n - samples.k + 1))
    drawn = np.concatenate(energies)
    asked = _quantiles(drawn) if levels is None else np.array(list(levels), dtype=float)
    reach = asked + EQUAL * np.abs(asked)  # a support met in two walks has two energies that differ by rounding
    with _quietly():
        solved = mbar.MBAR(samples.betas[:, None] * drawn[None, :], counts, solver_protocol="robust", initialize="BAR")
        try:
            free = solved.compute_free_energy_differences()
        except mbar.utils.ParameterError:
            raise ValueError(
                "energies at neighbouring temperatures do not overlap enough to compare them; expected more betas "
                "between them (betas='auto'), or more sweeps."
            ) from None
        means = solved.compute_expectations(drawn[None, :] * np.ones((samples.betas.size, 1)), state_dependent=True)
        met = reach >= drawn.min()
        log_count, error = np.full(asked.size, -np.inf), np.full(asked.size, np.inf)
        if met.any():
            # A temperature at which only supports up to a level count, all alike: its free energy is their number.
            inside = np.where(drawn[None, :] <= reach[met, None], 0.0, _FAR)
            below = solved.compute_perturbed_free_energies(np.vstack([np.zeros(drawn.size), inside]))
            log_count[met] = whole - below["Delta_f"][0, 1:]
            error[met] = below["dDelta_f"][0, 1:]
    log_sum, log_sum_se = whole - free["Delta_f"][0], free["dDelta_f"][0]
    energy, energy_se = means["mu"], means["sigma"]
    return States(
        k=samples.k,
        n_columns=n,
        betas=samples.betas,
        log_sum=log_sum,
        log_sum_se=log_sum_se,
        energy=energy,
        entropy=log_sum + samples.betas * energy,
        entropy_se=np.sqrt(log_sum_se**2 + (samples.betas * energy_se) ** 2),
        levels=asked,
        log_count=log_count,
        log_count_se=error,
    )


def _quantiles(drawn: Floats) -> Floats:
    """Energies that so many of the draws do not exceed, each once."""
    levels = np.quantile(drawn, [0.0, 0.001, 0.01, 0.1, 0.5])
    return np.asarray(levels[np.diff(levels, prepend=-np.inf) > EQUAL * np.abs(levels)])


def _independent(samples: Samples, mbar: Any) -> tuple[list[Floats], Any]:
    """Energies (by temperature) of draws that are about independent, and how many there are at each."""
    kept = []
    for place in range(samples.betas.size):
        series = samples.energies[:, place]
        with _quietly():
            step = int(np.ceil(max(_correlation(each, mbar) for each in series)))
        kept.append(np.concatenate([each[::step] for each in series]))
    return kept, np.array([each.size for each in kept])


def _correlation(series: Floats, mbar: Any) -> float:
    """How many draws stand for one independent one."""
    if series.size < 4 or not series.std() > 0:
        return 1.0
    return float(mbar.timeseries.statistical_inefficiency(series))


def _pymbar() -> Any:
    """The library, without what it prints when it is loaded."""
    try:
        with _quietly():
            import pymbar
            import pymbar.timeseries
    except ImportError:
        raise ImportError(
            "the density of states needs pymbar, which is not installed; expected: pip install 'pairflip[mbar]'."
        ) from None
    return pymbar


@contextlib.contextmanager
def _quietly() -> Any:
    """Nothing of the library's progress is shown."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
