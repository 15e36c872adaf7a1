"""Sampling supports at finite temperature: `sample` at one, `temper` at a ladder of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pairflip.engines import Engine, Refused, WalkPlan, get_engine
from pairflip.engines.base import flip_nanoseconds
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.exchange import LadderPlan, LadderResult
from pairflip.jobs import local_threads
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.philox import chain_keys, check_seed
from pairflip.problem import SubsetProblem
from pairflip.search.forward import greedy_scale
from pairflip.search.kept import MOST_CHAINS, chain_numbers, chain_settings, walk_kept
from pairflip.search.samples import Samples
from pairflip.search.sizes import check_counts, check_size
from pairflip.supports import distinct_supports

if TYPE_CHECKING:
    from pairflip.search.kept import Chain, Folder

EXCHANGE_NS = 1e4
"""Walkers walk about so long, by the cost model, between two exchanges, which then cost little beside."""
APART = 1.1
"""Neighbours on a ladder differ by so many standard deviations of the energy times the difference of beta."""
_MOST_PLACES = 60
_PILOT_ROUNDS = 400
_QR_NUMBERS = 2**21  # of the matrices that are factorized together


@runtime_checkable
class HasLadders(Protocol):
    """An engine that walks many ladders together."""

    name: str

    def ladders(self, form: Form, plan: LadderPlan, n_jobs: int = 1) -> list[LadderResult]:
        """What `exchange.run_ladder` would find for each ladder."""
        ...


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
    numbers = chain_numbers(chains, first_chain)
    before = sweeps // 5 if burn_in is None else burn_in
    check_counts(least=0, burn_in=before)
    form, walker, n = problem.form, _engine(problem, engine), problem.form.n_columns
    cold = noise_beta(problem, k) if isinstance(beta, str) and beta == "noise" else beta
    betas = _read_betas([cold])
    draws = max(1, sweeps // thin)
    flips = np.array([max(1, before * n), *[thin * n] * draws], dtype=np.int64)
    threads, seed = local_threads(n_jobs), check_seed(seed)

    def plan(which: Sequence[int]) -> WalkPlan:
        keys = chain_keys(seed, k, None, np.array(which))
        return WalkPlan(k, np.full(draws + 1, betas[0]), flips, keys, record=True)

    def walk(which: Sequence[int]) -> list[Chain]:
        (walked,) = walker.walk([(form, plan(which))], n_jobs=threads)
        assert walked.record is not None
        assert walked.record_energy is not None
        accepted = walked.accepted[:, 1:].sum(axis=1, keepdims=True).astype(np.int64)
        return [
            {"supports": supports[None, 1:], "energies": energies[None, 1:], "accepted": moves}
            for supports, energies, moves in zip(walked.record, walked.record_energy, accepted, strict=True)
        ]

    reason = walker.refuses(form, plan(numbers))
    if reason is not None:
        raise Refused(reason)
    settings = chain_settings(
        problem, run="sample", k=k, betas=betas.tolist(), sweeps=int(draws * thin), burn_in=int(before), thin=int(thin),
        seed=seed, engine=walker.name,
    )  # fmt: skip
    found, note = walk_kept(numbers, walk, settings, journal, threads)
    return _samples(problem, settings, numbers, found, draws * thin * n, [note], began)


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
    r"""The same at a ladder of temperatures whose walkers trade places (replica exchange).

    Cold walkers get away from where they are stuck by way of the hot ones.

    Parameters
    ----------
    problem, k
        As in `sample`.
    betas : iterable of float or "auto"
        Inverse temperatures. ``"auto"``: from 0, where all supports are alike, to `coldest`, spaced by a short run so
        that neighbours trade places about as often everywhere.
    sweeps, burn_in : int
        Of every walker: those that count, and those before (a fifth by default).
    thin : int, optional
        Sweeps between two exchanges, after each of which there is a draw; by default so many that exchanging costs
        little beside walking.
    chains : int
        Independent ladders.
    seed, engine, first_chain, journal, n_jobs
        As in `sample`; chains are ladders here.
    coldest : float or "noise"
        The end of an automatic ladder, see `beta` of `sample`.
    """
    began, k = time.perf_counter(), check_size(problem, k)
    check_counts(sweeps=sweeps)
    numbers = chain_numbers(chains, first_chain)
    form, walker = problem.form, _engine(problem, engine)
    if not isinstance(walker, HasLadders):
        raise Refused(f"The engine {walker.name!r} does not exchange replicas.")
    n, seed = form.n_columns, check_seed(seed)
    every = max(1, round(EXCHANGE_NS / (n * flip_nanoseconds(form, k)))) if thin is None else thin
    every = min(every, max(1, sweeps // 200)) if thin is None else every
    before = sweeps // 5 if burn_in is None else burn_in
    check_counts(least=0, burn_in=before)
    check_counts(thin=every)
    threads = local_threads(n_jobs)
    if isinstance(betas, str) and betas == "auto":
        end = noise_beta(problem, k) if isinstance(coldest, str) and coldest == "noise" else coldest
        ladder = auto_ladder(walker, form, k, _read_betas([end])[0], seed)
    else:
        ladder = _read_betas(betas)
    skipped, draws = -(-before // every), max(1, sweeps // every)
    rounds = skipped + draws

    def walk(which: Sequence[int]) -> list[Chain]:
        found = _ladders(walker, form, k, ladder, rounds, every * n, which, seed, threads)
        return [
            {
                "supports": each.supports[:, skipped:],
                "energies": each.energies[:, skipped:],
                "accepted": each.accepted,
                "traded": each.traded,
                "tried": each.tried,
                "trips": np.array([each.trips]),
            }
            for each in found
        ]

    settings = chain_settings(
        problem, run="temper", k=k, betas=ladder.tolist(), sweeps=int(draws * every), burn_in=int(skipped * every),
        thin=int(every), seed=seed, engine=walker.name,
    )  # fmt: skip
    found, note = walk_kept(numbers, walk, settings, journal, threads)
    return _samples(problem, settings, numbers, found, rounds * every * n, [note], began)


def _samples(
    problem: SubsetProblem, settings: dict[str, Any], numbers: Sequence[int], found: Sequence[Chain], flips: int,
    notes: Sequence[str], began: float,
) -> Samples:  # fmt: skip
    """The record of these chains; those of one temperature have no exchanges."""
    nothing, supports = np.zeros(0, np.int64), np.stack([each["supports"] for each in found])
    return Samples(
        betas=np.array(settings["betas"]),
        energies=_exact_energies(problem.form, supports),
        supports=supports,
        candidates=problem.form.candidates,
        accepted=np.stack([each["accepted"] for each in found]),
        flips=flips,
        traded=np.stack([each.get("traded", nothing) for each in found]),
        tried=found[0].get("tried", nothing),
        round_trips=np.array([int(each["trips"][0]) if "trips" in each else 0 for each in found]),
        chain_numbers=np.array(numbers),
        names=problem.names,
        seconds=time.perf_counter() - began,
        settings=settings,
        note="; ".join(dict.fromkeys(filter(None, notes))),
        **{name: settings[name] for name in ("k", "sweeps", "burn_in", "thin", "engine", "seed")},
    )


@one_blas_thread()
def _exact_energies(form: Form, supports: NDArray[np.int32]) -> Floats:
    """Energies of drawn supports (..., k) from the columns: chains know theirs but for the rounding of all flips."""
    k, q = supports.shape[-1], len(form.B)
    flat, _, which, _ = distinct_supports(supports.reshape(-1, k).astype(np.int64))
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
        left = np.asarray(np.linalg.qr(stack, mode="r"))[:, k:, k:]
        energies[first : first + step] = 0.5 * np.einsum("tab,tab->t", left, left)
    return np.asarray(energies[which].reshape(supports.shape[:-1]))


def noise_beta(problem: SubsetProblem, k: int) -> float:
    """The inverse of the variance of the residuals that forward selection leaves at size k."""
    rows = max(problem.rows_present - problem.forced.shape[1] - k, 1)
    return float(rows / (2.0 * greedy_scale(problem.form, k)))


@one_blas_thread()
def _ladders(
    walker: HasLadders, form: Form, k: int, betas: Floats, rounds: int, flips: int, numbers: Sequence[int],
    seed: int, threads: int,
) -> list[LadderResult]:  # fmt: skip
    """Independent ladders of these numbers, in threads."""
    keys = np.stack([_keys(seed, k, number, betas.size) for number in numbers])
    return walker.ladders(form, LadderPlan(k, betas, rounds, flips, keys), threads)


def _keys(seed: int, k: int, ladder: int, places: int) -> NDArray[np.uint32]:
    """Of the random numbers of the walkers of a ladder."""
    return chain_keys(seed, k, None, ladder * _MOST_PLACES + np.arange(places))


def auto_ladder(walker: HasLadders, form: Form, k: int, coldest: float, seed: int) -> Floats:
    r"""Inverse temperatures from 0 to the coldest, equally spaced in :math:`\int \sigma_E(\beta)\, d\beta`.

    Neighbours trade places about as often everywhere then. The standard deviation of the energy comes from a short run
    on a geometric ladder.
    """
    pilot = np.concatenate([[0.0], np.geomspace(coldest * 1e-4, coldest, 24)])
    (found,) = _ladders(walker, form, k, pilot, _PILOT_ROUNDS, form.n_columns, [MOST_CHAINS], seed, 1)
    spread = found.energies[:, _PILOT_ROUNDS // 3 :].std(axis=1)
    length = np.concatenate([[0.0], np.cumsum(0.5 * (spread[1:] + spread[:-1]) * np.diff(pilot))])
    places = int(np.clip(np.ceil(length[-1] / APART) + 1, 2, _MOST_PLACES))
    grid = np.linspace(0.0, length[-1], places)
    betas = np.interp(grid, length, pilot) if length[-1] > 0 else np.linspace(0.0, coldest, places)
    betas[-1] = coldest
    return np.array([float(f"{beta:.6g}") for beta in betas])


def _engine(problem: SubsetProblem, engine: str | Engine) -> Engine:
    """The engine, for problems that it can sample."""
    if not problem.form.plain:
        raise ValueError(
            f"the problem has the loss {problem.loss.name!r} or limits on columns; expected squared error of one "
            "target: there is no sampling for others."
        )
    return get_engine(engine)


def _read_betas(betas: Iterable[Any]) -> Floats:
    """Ascending inverse temperatures."""
    given = list(betas)
    right = [
        isinstance(b, (int, float, np.number)) and not isinstance(b, bool) and np.isfinite(b) and b >= 0 for b in given
    ]
    if not given or not all(right) or any(b >= a for b, a in pairwise(given)):
        shown = given[0] if len(given) == 1 else given
        raise ValueError(f"beta is {shown!r}; expected finite numbers >= 0, each above the one before, or 'noise'.")
    if len(given) > _MOST_PLACES:
        raise ValueError(f"there are {len(given)} betas; expected at most {_MOST_PLACES}.")
    return np.array(given, dtype=np.float64)
