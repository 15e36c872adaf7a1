"""What is certain about the best support of one size: `Proof`."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import is_lower
from pairflip.least_squares import Floats

if TYPE_CHECKING:
    import pandas as pd


LIMITED = "this is about sets that keep the limits"
"""How the note of a proof begins where rules keep columns apart."""


@dataclass(frozen=True)
class Proof:
    """A statement that no other support of k columns has a lower energy, or how much lower one could be.

    Attributes
    ----------
    k : int
        Number of columns, beside those that are always in the model; of groups where these are chosen as a whole.
    optimal : bool
        Whether `support` was proved to be the best; equals of it may exist, see `supports`.
    support, energy
        The best support known, sorted column indices of X, and its energy, recomputed from X by QR. A group is known
        by the first of its columns; `problem.columns_of(support)` has all of them.
    supports, energies : (n, k), (n,)
        The best supports known, the lowest first; equal ones in lexicographic order. If `optimal`, no support that is
        missing here has a lower energy than the last one.
    lower_bound : float
        No support of k columns has a lower energy than this; `energy` if `optimal`.
    within, counts : (L,)
        Numbers of supports whose energy is at most (1 + within) times the lowest, `support` itself among them: the
        lower edge of the density of states. Both empty if that was not asked for, or if nothing was proved.
    subsets, looked : int
        Numbers of supports there are, and of those that were looked at one by one; the others were ruled out in groups.
    method : {"all columns", "enumeration", "enumeration on the GPU", "branch and bound", "ridge bound", "none"}
        How it was proved; "none" if there was not enough time even to begin.
    seconds, note : float, str
        Time taken, without that for finding a first support; what a reader should know besides.
    names : list of str
        Names of the columns of X, with that of a group at its first column.
    yy : float
        Twice the energy of no columns.
    counted : {"column", "group"}
        What k counts.
    """

    k: int
    optimal: bool
    support: NDArray[np.int64]
    energy: float
    supports: NDArray[np.int64]
    energies: Floats
    lower_bound: float
    within: Floats
    counts: NDArray[np.int64]
    subsets: int
    looked: int
    method: str
    seconds: float
    note: str
    names: list[str]
    yy: float
    counted: str = "column"

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the best support."""
        return [self.names[j] for j in self.support]

    @property
    def n_candidates(self) -> int:
        """Number N of columns there were to choose from: `subsets` is N over k."""
        counts = range(len(self.names), self.k - 1, -1)  # those always in the model have names, too
        return next((n for n in counts if comb(n, self.k) == self.subsets), len(self.names))

    @property
    def limited(self) -> bool:
        """Whether it is about sets that keep limits on what may be chosen; others were not looked at."""
        return self.note.startswith(LIMITED)

    @property
    def pruned(self) -> int:
        """Number of supports that were ruled out without being looked at one by one; 0 unless `optimal`."""
        return max(self.subsets - self.looked, 0) if self.optimal else 0

    @property
    def gap(self) -> float:
        """By which fraction of `energy` a better support could be lower: 0 if `optimal`, at most 1."""
        if self.optimal or self.energy <= 0.0:
            return 0.0
        return float(min(max(1.0 - self.lower_bound / self.energy, 0.0), 1.0))

    @property
    def equals(self) -> int:
        """How many of `supports` fit as well as the best one, itself included."""
        return int(np.count_nonzero(~is_lower(self.energy, self.energies, self.yy)))

    @property
    def runner_up(self) -> int | None:
        """Place in `supports` of the best one that is worse than the best; None if there is none among them."""
        return self.equals if self.equals < len(self.energies) else None

    def excess(self) -> Floats:
        """By which fraction of the lowest energy each of `supports` is worse (n,); infinite if that is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.energies == self.energy, 1.0, self.energies / self.energy)
        return np.asarray(np.maximum(ratio - 1.0, 0.0))

    def __repr__(self) -> str:
        said = "optimal" if self.optimal else f"not proved, gap={self.gap:.2g}"
        return (
            f"Proof(k={self.k}, {said}, energy={self.energy:.6g}, columns={self.columns}, method={self.method!r}, "
            f"{self.looked:.3g} of {self.subsets:.3g} supports looked at, {self.seconds:.2g} s"
            f"{', ' + self.note if self.note else ''})"
        )

    def _repr_html_(self) -> str:
        """What is proved and the best sets, for notebooks."""
        from pairflip.report.notebook import proof_html

        return proof_html(self)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each of the best supports: rank, energy, excess over the lowest, columns."""
        import pandas as pd

        return pd.DataFrame(
            {
                "rank": np.arange(1, len(self.energies) + 1),
                "energy": self.energies,
                "excess": self.excess(),
                "columns": [[self.names[j] for j in support] for support in self.supports],
            }
        )
