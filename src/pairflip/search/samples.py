"""Supports as they are found at one or several temperatures: `Samples`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.journal_file import difference
from pairflip.least_squares import Floats
from pairflip.search.datatree import MOST_INDICATORS, draws_tree

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes

BATCHES = 20
"""Parts of each chain whose means give the Monte Carlo error."""


@dataclass(frozen=True, eq=False)
class Samples:
    r"""Supports of k columns, drawn with probability proportional to :math:`e^{-\beta E(S)}`.

    Attributes
    ----------
    k : int
        Number of columns, beside those that are always in the model.
    betas : (R,)
        Inverse temperatures, ascending; one for `sample`.
    energies : (chain, R, draw)
        Energies after every `thin` sweeps.
    supports : (chain, R, draw, k)
        The supports there, as positions in `candidates`.
    candidates : (n,)
        Columns of X that can be chosen.
    accepted, flips : (chain, R), int
        How many flips were accepted, of so many; `acceptance` is the fraction of all chains.
    traded, tried : (chain, R - 1), (R - 1,)
        How often neighbours on the ladder traded places, of so many attempts; `exchange` is the fraction of all chains.
    round_trips : (chain,)
        How often a walker went from the hottest to the coldest place and back; 0 for `sample`.
    chain_numbers : (chain,)
        The number of each chain, which its random numbers depend on: 0, 1, ... unless this is a shard.
    sweeps, burn_in, thin : int
        Sweeps that count, those before, and between two draws.
    names : list of str
        Names of the columns of X.
    engine, seed, seconds
        What walked the chains, what their random numbers depend on, and the time taken.
    settings : dict
        All that a chain depends on apart from its number, the data among it.
    note : str
        What a reader should know besides.
    """

    k: int
    betas: Floats
    energies: Floats
    supports: NDArray[np.int32]
    candidates: NDArray[np.int64]
    accepted: NDArray[np.int64]
    flips: int
    traded: NDArray[np.int64]
    tried: NDArray[np.int64]
    round_trips: NDArray[np.int64]
    chain_numbers: NDArray[np.int64]
    sweeps: int
    burn_in: int
    thin: int
    names: list[str]
    engine: str
    seed: int
    seconds: float
    settings: dict[str, Any]
    note: str = ""

    @property
    def acceptance(self) -> Floats:
        """Fraction (R,) of flips that were accepted."""
        return np.asarray(self.accepted.sum(axis=0) / (len(self.accepted) * self.flips))

    @property
    def exchange(self) -> Floats:
        """Fraction (R - 1,) of attempts in which neighbours on the ladder traded places; empty for `sample`."""
        return np.asarray(self.traded.sum(axis=0) / np.maximum(len(self.traded) * self.tried, 1))

    @staticmethod
    def joined(parts: Iterable[Samples]) -> Samples:
        """Chains that were walked in different places, as one run of all of them would give them.

        What was not drawn from the same data with the same settings is refused, and so is a chain that is there twice.
        """
        every = list(parts)
        if not every:
            raise ValueError("there are no samples to join; expected those of sample or temper, at least one.")
        for each in every[1:]:
            other = difference(every[0].settings, each.settings)
            if other is not None:
                name, first, second = other
                raise ValueError(
                    f"samples to join have {name} = {first} and {name} = {second}; expected parts of one run, which "
                    "differ in first_chain and chains alone."
                )
        numbers = np.concatenate([each.chain_numbers for each in every])
        order = np.argsort(numbers, kind="stable")
        twice = numbers[order][1:][np.diff(numbers[order]) == 0]
        if twice.size:
            raise ValueError(
                f"chain {twice[0]} is there twice among the samples to join; expected each chain once: give every part "
                "a first_chain of its own."
            )
        together: dict[str, Any] = {
            name: np.concatenate([getattr(each, name) for each in every])[order]
            for name in ("energies", "supports", "accepted", "traded", "round_trips")
        }
        notes = "; ".join(dict.fromkeys(each.note for each in every if each.note))
        seconds = sum(each.seconds for each in every)
        return replace(every[0], **together, chain_numbers=numbers[order], seconds=seconds, note=notes)

    def place(self, beta: float | None = None) -> int:
        """Where a temperature is on the ladder, the coldest by default."""
        if beta is None:
            return self.betas.size - 1
        found = int(np.argmin(np.abs(self.betas - beta)))
        if not np.isclose(self.betas[found], beta, rtol=1e-6):
            raise ValueError(f"beta is {beta:g}; expected one of {', '.join(f'{b:g}' for b in self.betas)}.")
        return found

    def inclusion(self, beta: float | None = None) -> tuple[Floats, Floats]:
        """Probability (N,) that a column of X is in the support, and its Monte Carlo error.

        Parameters
        ----------
        beta : float, optional
            A temperature of the ladder, the coldest by default.
        """
        drawn = self.supports[:, self.place(beta)]
        chains, draws, _ = drawn.shape
        parts = np.array_split(np.arange(draws), min(BATCHES, draws))
        n = self.candidates.size
        means = [np.bincount(drawn[c, part].ravel(), minlength=n) / part.size for c in range(chains) for part in parts]
        each, sizes = np.array(means), np.tile([part.size for part in parts], chains)
        mean = np.average(each, axis=0, weights=sizes)
        spread = np.sqrt(np.average((each - mean) ** 2, axis=0, weights=sizes) / max(len(each) - 1, 1))
        told, error = np.zeros(len(self.names)), np.zeros(len(self.names))
        told[self.candidates] = mean
        # One draw more or less is the least that can be claimed of a column that was always in, or never.
        error[self.candidates] = np.maximum(spread, 1.0 / (chains * draws))
        return told, error

    @cached_property
    def inclusion_probability(self) -> Floats:
        """Probability (N,) that a column of X is in the support, at the coldest temperature."""
        return self.inclusion()[0]

    @cached_property
    def inclusion_se(self) -> Floats:
        """Its Monte Carlo error, from the means of 20 parts of each chain."""
        return self.inclusion()[1]

    def pairs(self, most: int = 10, beta: float | None = None) -> list[tuple[str, str, float]]:
        """Pairs of columns that are in together most often, with the fraction of draws.

        Parameters
        ----------
        most : int
            How many.
        beta : float, optional
            A temperature of the ladder, the coldest by default.
        """
        drawn = self.supports[:, self.place(beta)].reshape(-1, self.k)
        if self.k < 2:
            return []
        first, second = np.triu_indices(self.k, 1)
        codes = drawn[:, first].astype(np.int64) * self.candidates.size + drawn[:, second]
        found, counts = np.unique(codes, return_counts=True)
        best = np.argsort(-counts, kind="stable")[:most]
        a, b = np.divmod(found[best], self.candidates.size)
        names = [self.names[j] for j in self.candidates[a]], [self.names[j] for j in self.candidates[b]]
        return list(zip(*names, (counts[best] / len(drawn)).tolist(), strict=True))

    def most_probable(self, most: int = 10, beta: float | None = None) -> list[tuple[list[str], float]]:
        """The supports that were drawn most often, as names, with the fraction of draws.

        Parameters
        ----------
        most : int
            How many.
        beta : float, optional
            A temperature of the ladder, the coldest by default.
        """
        return [([self.names[j] for j in support], share) for support, share in self.often_drawn(most, beta)]

    def often_drawn(self, most: int = 10, beta: float | None = None) -> list[tuple[list[int], float]]:
        """The same as columns of X; parameters as in `most_probable`."""
        drawn = self.supports[:, self.place(beta)].reshape(-1, self.k)
        counted = Counter(map(tuple, drawn.tolist())).most_common(most)
        return [(self.candidates[list(support)].tolist(), n / len(drawn)) for support, n in counted]

    @property
    def energy(self) -> tuple[Floats, Floats]:
        """Mean energy (R,) at each temperature, and its Monte Carlo error."""
        chains, _, draws = self.energies.shape
        parts = np.array_split(np.arange(draws), min(BATCHES, draws))
        means = np.stack([self.energies[c][:, part].mean(axis=1) for c in range(chains) for part in parts])
        return self.energies.mean(axis=(0, 2)), means.std(axis=0, ddof=1) / np.sqrt(len(means))

    def to_pandas(self) -> pd.DataFrame:
        """One row for each column of X: its inclusion probability at the coldest temperature, and the error of that."""
        import pandas as pd

        return pd.DataFrame(
            {
                "column": self.names,
                "inclusion_probability": self.inclusion_probability,
                "inclusion_se": self.inclusion_se,
            }
        )

    def to_datatree(self) -> xr.DataTree:
        """The draws as ArviZ reads them, with dims chain and draw.

        Group ``posterior``: the energy at the coldest temperature, and whether each of the columns that are in most
        often was in; group ``sample_stats``: the energies at all temperatures.
        """
        often = self.candidates[np.argsort(-self.inclusion_probability[self.candidates], kind="stable")]
        often = often[:MOST_INDICATORS]
        at = np.searchsorted(self.candidates, often)
        stats: dict[str, Any] = {
            "beta": (("beta",), self.betas),
            "energies": (("chain", "draw", "beta"), self.energies.transpose(0, 2, 1)),
        }
        return draws_tree(
            {"energy": self.energies[:, -1]},
            (self.supports[:, -1, :, :, None] == at).any(axis=2),
            self.names,
            often.tolist(),
            self.chain_numbers.tolist(),
            stats,
            {**self.settings, "beta": float(self.betas[-1])},
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw inclusion probabilities with matplotlib, on `ax` or in a new pyplot figure."""
        from pairflip.report.notebook import plot_probabilities

        return plot_probabilities(self, ax)

    def _repr_html_(self) -> str:
        """Inclusion probabilities and the sets that were drawn most often, for notebooks."""
        from pairflip.report.notebook import samples_html

        return samples_html(self)

    def __repr__(self) -> str:
        coldest = (
            f"beta={self.betas[-1]:g}" if self.betas.size == 1 else f"{self.betas.size} betas to {self.betas[-1]:g}"
        )
        chains, _, draws = self.energies.shape
        return f"Samples(k={self.k}, {coldest}, {chains} chains of {draws} draws, mean energy {self.energy[0][-1]:g})"
