"""Sampling supports at finite temperature: `sample` at one, `temper` at a ladder of them, and the record `Samples`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.blas import one_blas_thread
from pairflip.engines import Engine, Refused, WalkPlan, get_engine
from pairflip.engines.base import flip_nanoseconds
from pairflip.engines.exchange import LadderPlan
from pairflip.jobs import local_threads
from pairflip.journal_file import Folder, difference
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.philox import chain_keys, check_seed
from pairflip.problem import SubsetProblem
from pairflip.search.draws import (
    BATCHES,
    MOST_CHAINS,
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
from pairflip.search.effort import check_size, is_number
from pairflip.search.schedule import greedy_scale
from pairflip.supports import distinct_supports
from pairflip.text import column_labels

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes

EXCHANGE_NS = 1e4
"""Walkers walk about so long, by the cost model, between two exchanges, which then cost little beside."""
APART = 1.1
"""Neighbours on a ladder differ by so many standard deviations of the energy times the difference of beta."""
_MOST_PLACES = 60
_PILOT_ROUNDS = 400
_QR_NUMBERS = 2**21  # of the matrices that are factorized together


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
        parts = list(parts)
        if not parts:
            raise ValueError("there are no samples to join; expected those of sample or temper, at least one.")
        for part in parts[1:]:
            other = difference(parts[0].settings, part.settings)
            if other is not None:
                name, first, second = other
                raise ValueError(
                    f"samples to join have {name} = {first} and {name} = {second}; expected parts of one run, which "
                    "differ in first_chain and chains alone."
                )
        order = np.argsort(np.concatenate([part.chain_numbers for part in parts]), kind="stable")
        by_chain = ("energies", "supports", "accepted", "traded", "round_trips", "chain_numbers")
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])[order] for name in by_chain
        }
        numbers = arrays["chain_numbers"]
        twice = numbers[1:][np.diff(numbers) == 0]
        if twice.size:
            raise ValueError(
                f"chain {twice[0]} is there twice among the samples to join; expected each chain once: give every part "
                "a first_chain of its own."
            )
        notes = "; ".join(dict.fromkeys(part.note for part in parts if part.note))
        return replace(parts[0], **arrays, seconds=sum(part.seconds for part in parts), note=notes)

    def place(self, beta: float | None = None) -> int:
        """Where a temperature is on the ladder, the coldest by default."""
        if beta is None:
            return self.betas.size - 1
        nearest = int(np.argmin(np.abs(self.betas - beta)))
        if not np.isclose(self.betas[nearest], beta, rtol=1e-6):
            raise ValueError(f"beta is {beta:g}; expected one of {', '.join(f'{b:g}' for b in self.betas)}.")
        return nearest

    def inclusion(self, beta: float | None = None) -> tuple[Floats, Floats]:
        """Probability (N,) that a column of X is in the support, and its Monte Carlo error.

        Parameters
        ----------
        beta : float, optional
            A temperature of the ladder, the coldest by default.
        """
        probability, error = np.zeros((2, len(self.names)))
        drawn = frequencies(self.supports[:, self.place(beta)], self.candidates.size)
        probability[self.candidates], error[self.candidates] = drawn
        return probability, error

    @cached_property
    def inclusion_probability(self) -> Floats:
        """Probability (N,) that a column of X is in the support, at the coldest temperature."""
        return self.inclusion()[0]

    @cached_property
    def inclusion_se(self) -> Floats:
        """Monte Carlo error (N,) of `inclusion_probability`, from the means of 20 parts of each chain."""
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
        pairs, counts = np.unique(codes, return_counts=True)
        best = np.argsort(-counts, kind="stable")[:most]
        a, b = np.divmod(pairs[best], self.candidates.size)
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
        """The supports that were drawn most often, as columns of X, with the fraction of draws."""
        drawn = self.supports[:, self.place(beta)].reshape(-1, self.k)
        counted = Counter(map(tuple, drawn.tolist())).most_common(most)
        return [(self.candidates[list(support)].tolist(), n / len(drawn)) for support, n in counted]

    @property
    def energy(self) -> tuple[Floats, Floats]:
        """Mean energy (R,) at each temperature, and its Monte Carlo error."""
        draws = self.energies.shape[2]
        batches = np.array_split(np.arange(draws), min(BATCHES, draws))
        means = np.stack([chain[:, batch].mean(axis=1) for chain in self.energies for batch in batches])
        return self.energies.mean(axis=(0, 2)), means.std(axis=0, ddof=1) / np.sqrt(len(means))

    def to_pandas(self) -> pd.DataFrame:
        """One row for each column of X: its inclusion probability at the coldest temperature, and the error of that."""
        import pandas as pd

        probability, error = self.inclusion()
        return pd.DataFrame({"column": self.names, "inclusion_probability": probability, "inclusion_se": error})

    def to_datatree(self) -> xr.DataTree:
        """The draws as ArviZ reads them, with dims chain and draw.

        Group ``posterior``: the energy at the coldest temperature, and whether each of the columns that are in most
        often was in; group ``sample_stats``: the energies at all temperatures.
        """
        often = np.argsort(-self.inclusion_probability[self.candidates], kind="stable")[:MOST_INDICATORS]
        inside = (self.supports[:, -1, :, :, None] == often).any(axis=2)
        stats: dict[str, Any] = {
            "beta": (("beta",), self.betas),
            "energies": (("chain", "draw", "beta"), self.energies.transpose(0, 2, 1)),
        }
        labels = column_labels(self.names, self.candidates[often].tolist())
        about = {**self.settings, "beta": float(self.betas[-1])}
        return draws_tree({"energy": self.energies[:, -1]}, inside, labels, self.chain_numbers, about, stats)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw inclusion probabilities with matplotlib, on `ax` or in a new pyplot figure."""
        from pairflip.report.notebook import plot

        return plot(self, ax)

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


def sample(
    problem: SubsetProblem,
    k: int,
    beta: float | Literal["noise"] = "noise",
    sweeps: int = 2000,
    burn_in: int | None = None,
    thin: int = 1,
    chains: int = 4,
    seed: int = 0,
    engine: str | Engine = "auto",
    *,
    first_chain: int = 0,
    journal: Folder | None = None,
    n_jobs: int | None = None,
) -> Samples:
    r"""Supports of k columns with probability proportional to :math:`e^{-\beta E(S)}`, at one temperature.

    Parameters
    ----------
    problem : SubsetProblem
        Table and target.
    k : int
        Number of columns.
    beta : float or "noise"
        Inverse temperature, in the units of the target: it multiplies the total energy. ``"noise"``: the inverse of the
        variance of the residuals that forward selection leaves, so that the weights are likelihoods.
    sweeps, burn_in, thin : int
        Sweeps (N attempted flips) that count, those before (a fifth by default), and between two draws.
    chains, seed : int
        Independent walks, and what their random numbers depend on.
    engine : {"auto", "numba", "reference"}
        What walks the chains.
    first_chain : int
        Number of the first chain. Chains 0 to 3 and 4 to 7 may be walked in two places; `Samples.joined` puts them
        together, and they are those of one run with 8 chains.
    journal : path, optional
        Folder in which finished chains are kept. Run the same again to resume, or with more chains to go on.
    n_jobs : int, optional
        Threads; the result does not depend on them.
    """
    began, k = time.perf_counter(), check_size(problem, k)
    check_counts(sweeps=sweeps, thin=thin)
    numbers, before = chain_numbers(chains, first_chain), before_counting(sweeps, burn_in)
    form, walker, n = problem.form, _engine(problem, engine), problem.form.n_columns
    betas = _read_betas([beta], problem, k)
    draws = max(1, sweeps // thin)
    flips = np.array([max(1, before * n), *[thin * n] * draws], dtype=np.int64)
    threads, seed = local_threads(n_jobs), check_seed(seed)
    plan = WalkPlan(k, np.repeat(betas, draws + 1), flips, chain_keys(seed, k, None, np.array(numbers)), record=True)

    def walk(numbers: Sequence[int]) -> list[Chain]:
        keys = chain_keys(seed, k, None, np.array(numbers))
        (walked,) = walker.walk([(form, replace(plan, keys=keys))], n_jobs=threads)
        accepted = walked.accepted[:, 1:].sum(axis=1, keepdims=True).astype(np.int64)
        return [
            {"supports": supports[None, 1:], "energies": energies[None, 1:], "accepted": moves}
            for supports, energies, moves in zip(walked.record, walked.record_energy, accepted, strict=True)
        ]

    reason = walker.refuses(form, plan)
    if reason is not None:
        raise Refused(reason)
    settings = chain_settings(
        problem, run="sample", k=k, betas=betas.tolist(), sweeps=int(draws * thin), burn_in=before, thin=int(thin),
        seed=seed, engine=walker.name,
    )  # fmt: skip
    return _samples(problem, settings, numbers, walk, journal, threads, draws * thin * n, began)


def temper(
    problem: SubsetProblem,
    k: int,
    betas: Iterable[float] | Literal["auto"] = "auto",
    sweeps: int = 2000,
    burn_in: int | None = None,
    thin: int | None = None,
    chains: int = 2,
    seed: int = 0,
    engine: str | Engine = "auto",
    *,
    coldest: float | Literal["noise"] = "noise",
    first_chain: int = 0,
    journal: Folder | None = None,
    n_jobs: int | None = None,
) -> Samples:
    r"""Supports of k columns at a ladder of temperatures whose walkers trade places (replica exchange).

    At each one their probability is proportional to :math:`e^{-\beta E(S)}`. Cold walkers get away from where they are
    stuck by way of the hot ones.

    Parameters
    ----------
    problem : SubsetProblem
        Table and target.
    k : int
        Number of columns.
    betas : iterable of float or "auto"
        Inverse temperatures. ``"auto"``: from 0, where all supports are alike, to `coldest`, spaced by a short run so
        that neighbours trade places about as often everywhere.
    sweeps, burn_in : int
        Of every walker: those that count, and those before (a fifth by default).
    thin : int, optional
        Sweeps between two exchanges, after each of which there is a draw; by default so many that exchanging costs
        little beside walking.
    chains, seed : int
        Independent ladders, and what their random numbers depend on.
    engine : {"auto", "numba", "reference"}
        What walks the ladders.
    coldest : float or "noise"
        The end of an automatic ladder; ``"noise"``: the inverse of the variance of the residuals that forward selection
        leaves, so that the weights are likelihoods.
    first_chain : int
        Number of the first ladder; `Samples.joined` puts those that were walked in several places together.
    journal : path, optional
        Folder in which finished ladders are kept. Run the same again to resume, or with more of them to go on.
    n_jobs : int, optional
        Threads; the result does not depend on them.
    """
    began, k = time.perf_counter(), check_size(problem, k)
    check_counts(sweeps=sweeps)
    numbers, before = chain_numbers(chains, first_chain), before_counting(sweeps, burn_in)
    form, walker = problem.form, _engine(problem, engine)
    if not hasattr(walker, "ladders"):
        raise Refused(f"The engine {walker.name!r} does not exchange replicas.")
    n, seed = form.n_columns, check_seed(seed)
    if thin is None:
        thin = min(max(1, round(EXCHANGE_NS / (n * flip_nanoseconds(form, k)))), max(1, sweeps // 200))
    check_counts(thin=thin)
    threads = local_threads(n_jobs)
    if isinstance(betas, str) and betas == "auto":
        ladder = auto_ladder(walker, form, k, _read_betas([coldest], problem, k)[0], seed)
    else:
        ladder = _read_betas(betas)
    skipped, draws = -(-before // thin), max(1, sweeps // thin)
    rounds = skipped + draws

    def walk(numbers: Sequence[int]) -> list[Chain]:
        plan = LadderPlan(k, ladder, rounds, thin * n, _ladder_keys(seed, k, numbers, ladder.size))
        with one_blas_thread():
            walked = walker.ladders(form, plan, threads)
        return [
            {
                "supports": each.supports[:, skipped:],
                "energies": each.energies[:, skipped:],
                "accepted": each.accepted,
                "traded": each.traded,
                "tried": each.tried,
                "trips": np.array([each.trips]),
            }
            for each in walked
        ]

    settings = chain_settings(
        problem, run="temper", k=k, betas=ladder.tolist(), sweeps=int(draws * thin), burn_in=int(skipped * thin),
        thin=int(thin), seed=seed, engine=walker.name,
    )  # fmt: skip
    return _samples(problem, settings, numbers, walk, journal, threads, rounds * thin * n, began)


def _samples(
    problem: SubsetProblem, settings: dict[str, Any], numbers: list[int], walk: Callable[[Sequence[int]], list[Chain]],
    journal: Folder | None, threads: int, flips: int, began: float,
) -> Samples:  # fmt: skip
    """Walk the chains that the journal lacks; those of one temperature have no exchanges."""
    walked, note = walk_missing(numbers, walk, settings, journal, threads)
    nothing, supports = np.zeros(0, np.int64), np.stack([each["supports"] for each in walked])
    return Samples(
        betas=np.array(settings["betas"]),
        energies=_exact_energies(problem.form, supports),
        supports=supports,
        candidates=problem.form.candidates,
        accepted=np.stack([each["accepted"] for each in walked]),
        flips=flips,
        traded=np.stack([each.get("traded", nothing) for each in walked]),
        tried=walked[0].get("tried", nothing),
        round_trips=np.array([int(each.get("trips", [0])[0]) for each in walked]),
        chain_numbers=np.array(numbers),
        names=problem.names,
        seconds=time.perf_counter() - began,
        settings=settings,
        note=note,
        **{name: settings[name] for name in ("k", "sweeps", "burn_in", "thin", "engine", "seed")},
    )


@one_blas_thread()
def _exact_energies(form: Form, supports: NDArray[np.int32]) -> Floats:
    """Energies of drawn supports (..., k) from the columns: chains know theirs but for the rounding of all flips."""
    k, q = supports.shape[-1], len(form.B)
    flat, _, number, _ = distinct_supports(supports.reshape(-1, k).astype(np.int64))
    columns, targets = form.few_rows if form.dense else (None, form.targets)
    rows, energies = len(targets), np.zeros(len(flat))
    step = max(1, _QR_NUMBERS // ((rows + k) * (k + q)))
    for first in range(0, len(flat), step):  # what QR of [X_S, Y], rows of the ridge below, leaves of the targets
        part = flat[first : first + step]
        stack = np.zeros((len(part), rows + k, k + q))
        stack[:, :rows, k:] = targets
        chosen = form.columns_of(part.ravel()) if columns is None else columns[part.ravel()]
        stack[:, :rows, :k] = chosen.reshape(len(part), k, rows).transpose(0, 2, 1)
        stack[:, rows + np.arange(k), np.arange(k)] = np.sqrt(form.penalty[part])
        rest = np.asarray(np.linalg.qr(stack, mode="r"))[:, k:, k:]
        energies[first : first + step] = 0.5 * np.einsum("tab,tab->t", rest, rest)
    return np.asarray(energies[number].reshape(supports.shape[:-1]))


def _ladder_keys(seed: int, k: int, numbers: Sequence[int], places: int) -> NDArray[np.uint32]:
    """Keys (ladder, place, 2) of random numbers: one for each walker of each ladder."""
    walkers = (number * _MOST_PLACES + np.arange(places) for number in numbers)
    return np.stack([chain_keys(seed, k, None, each) for each in walkers])


@one_blas_thread()
def auto_ladder(walker: Any, form: Form, k: int, coldest: float, seed: int) -> Floats:
    r"""Inverse temperatures from 0 to the coldest, equally spaced in :math:`\int \sigma_E(\beta)\, d\beta`.

    Neighbours trade places about as often everywhere then. The standard deviation of the energy comes from a short run
    on a geometric ladder.
    """
    pilot = np.concatenate([[0.0], np.geomspace(coldest * 1e-4, coldest, 24)])
    keys = _ladder_keys(seed, k, [MOST_CHAINS], pilot.size)
    (walked,) = walker.ladders(form, LadderPlan(k, pilot, _PILOT_ROUNDS, form.n_columns, keys), 1)
    spread = walked.energies[:, _PILOT_ROUNDS // 3 :].std(axis=1)
    length = np.concatenate([[0.0], np.cumsum(0.5 * (spread[1:] + spread[:-1]) * np.diff(pilot))])
    places = int(np.clip(np.ceil(length[-1] / APART) + 1, 2, _MOST_PLACES))
    grid = np.linspace(0.0, length[-1], places)
    betas = np.interp(grid, length, pilot) if length[-1] > 0 else np.linspace(0.0, coldest, places)
    betas[-1] = coldest
    return np.array([float(f"{beta:.6g}") for beta in betas])


def _engine(problem: SubsetProblem, engine: str | Engine) -> Any:
    """The engine, for problems that it can sample."""
    if not problem.form.plain:
        raise ValueError(
            f"the problem has the loss {problem.loss.name!r} or limits on columns; expected squared error of one "
            "target: there is no sampling for others."
        )
    return get_engine(engine)


def _read_betas(betas: Iterable[Any], problem: SubsetProblem | None = None, k: int = 0) -> Floats:
    """Ascending inverse temperatures; with a problem, "noise" is the inverse variance of the residuals at size k."""
    given = list(betas)
    if problem is not None and isinstance(given[0], str) and given[0] == "noise":
        rows = max(problem.rows_present - problem.forced.shape[1] - k, 1)
        given = [float(rows / (2.0 * greedy_scale(problem.form, k)))]
    if not given or not all(is_number(b) and b >= 0 for b in given) or any(b >= a for b, a in pairwise(given)):
        shown = given[0] if len(given) == 1 else given
        raise ValueError(f"beta is {shown!r}; expected finite numbers >= 0, each above the one before, or 'noise'.")
    if len(given) > _MOST_PLACES:
        raise ValueError(f"there are {len(given)} betas; expected at most {_MOST_PLACES}.")
    return np.array(given, dtype=np.float64)
