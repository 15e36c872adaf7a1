"""What a search did and found: one record for annealing and for descents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import reaches
from pairflip.least_squares import Floats
from pairflip.search.datatree import as_tree
from pairflip.search.schedule import Schedule

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes

    from pairflip.search.prove import Proof


@dataclass(frozen=True)
class Trace:
    r"""What an annealing did and found.

    Attributes
    ----------
    betas, flips : (step,)
        Inverse temperatures (multiplying the total energy) and attempted flips at each.
    energy : (chain, step)
        Energy :math:`E = \frac12 \min_x \|y - X_S x\|^2`, averaged over the flips of the step.
    acceptance : (chain, step)
        Accepted fraction of the attempted flips.
    supports : (chain, k)
        Best support of each chain, sorted column indices of X.
    energies : (chain,)
        Their energies, recomputed from X by QR.
    best_support, best_energy, best_coef, best_intercept
        The best of them all, in the units of the table, recomputed from X by QR. With several targets the coefficients
        are (k, q), the intercepts (q,).
    refreshes : (chain,)
        How often the engine recomputed its running inverse to stay exact.
    note : str
        What a reader should know about how it was computed; empty when all was as usual.
    method, effort : str
        How it was searched; betas, flips, energy and acceptance have no steps unless the method is "anneal".
    proof : Proof or None
        That no other support of this size is better, where that was cheap to know.
    groups : dict of columns by name, or None
        Groups that were chosen as a whole: k then counts groups, and a support in `supports` names each by the first of
        its columns; `best_support` has all of them.
    yy : float
        :math:`y^T y` beside the forced columns: twice the energy of no columns, in whose units rounding is told.
    """

    k: int
    schedule: Schedule
    seed: int
    engine: str
    names: list[str]
    betas: Floats
    flips: NDArray[np.int64]
    energy: Floats
    acceptance: Floats
    supports: NDArray[np.int64]
    energies: Floats
    best_support: NDArray[np.int64]
    best_energy: float
    best_coef: Floats
    best_intercept: Any
    refreshes: NDArray[np.int64]
    seconds: float
    note: str = ""
    yy: float = 0.0
    method: str = "anneal"
    effort: str = ""
    proof: Proof | None = None
    groups: Mapping[str, NDArray[np.int64]] | None = None

    @property
    def best_names(self) -> list[str]:
        """Names of the columns of the best support."""
        return [self.names[j] for j in self.best_support]

    @property
    def solved(self) -> bool:
        """Whether every support was looked at, so that nothing had to be searched."""
        return self.method != "anneal" and len(self.supports) == 1 and self.proof is not None

    @property
    def agreement(self) -> float:
        """Fraction of the chains that ended at the best energy; low means that more chains may find better."""
        return float(np.mean(reaches(self.energies, self.best_energy, self.yy)))

    def __repr__(self) -> str:
        how = "" if self.method == "anneal" else f"method={self.method!r}, effort={self.effort!r}, "
        chains = f"{self.supports.shape[0]} chains of which {self.agreement:.0%} agree"
        proved = "proved to be the best, " if self.proof is not None and self.proof.optimal else ""
        return (
            f"Trace(k={self.k}, {how}best_energy={self.best_energy:.6g}, columns={self.best_names}, "
            f"{'every support looked at' if self.solved else chains}, {proved}"
            f"engine={self.engine!r}, {self.seconds:.2g} s{', ' + self.note if self.note else ''})"
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the energy of each chain against temperature with matplotlib, on `ax` or in a new pyplot figure."""
        from pairflip.report.notebook import plot

        return plot(self, ax)

    def _repr_html_(self) -> str:
        """What was found and its coefficients, for notebooks."""
        from pairflip.report.notebook import trace_html

        return trace_html(self)

    def to_pandas(self) -> pd.DataFrame:
        """One row a chain and step: chain, step, beta, energy, acceptance."""
        import pandas as pd

        chains, steps = self.energy.shape
        return pd.DataFrame(
            {
                "chain": np.repeat(np.arange(chains), steps),
                "step": np.tile(np.arange(steps), chains),
                "beta": np.tile(self.betas, chains),
                "energy": self.energy.ravel(),
                "acceptance": self.acceptance.ravel(),
            }
        )

    def to_datatree(self) -> xr.DataTree:
        """Labelled arrays in ArviZ's form: group ``sample_stats`` with dims (chain, draw), one draw a step."""
        stats = {
            "energy": (("chain", "draw"), self.energy),
            "acceptance_rate": (("chain", "draw"), self.acceptance),
            "beta": (("draw",), self.betas),
        }
        coords = {"chain": np.arange(self.energy.shape[0]), "draw": np.arange(self.betas.size)}
        attrs = {"k": self.k, "seed": self.seed, "engine": self.engine, "schedule": self.schedule.name}
        return as_tree({"sample_stats": {"data_vars": stats, "coords": coords, "attrs": attrs}})
