"""Probabilities of columns and models under a g-prior: all models one by one, or a walk among them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.distinct import distinct_supports
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.numba import announce_compilation
from pairflip.jobs import local_threads
from pairflip.least_squares import Floats
from pairflip.philox import chain_keys, check_seed
from pairflip.problem import SubsetProblem
from pairflip.search.averaged import Posterior
from pairflip.search.kept import chain_numbers, chain_settings, walk_kept
from pairflip.search.prior import ModelPrior, read_prior
from pairflip.search.sizes import check_counts

if TYPE_CHECKING:
    from pairflip.search.kept import Chain, Folder

ENUMERATED = 2**20
"""Up to so many models all of them are visited (a second or so)."""
_MOST_ENUMERATED = 2**30
_TOP = 1000  # models that an enumeration keeps
_BATCHES = 20  # of each chain, for the Monte Carlo error
_EDGE = 0x6D6F646C  # in place of a size in the addresses of walks among models

Ints = NDArray[np.int64]


def posterior(
    problem: SubsetProblem,
    g: float | Literal["unit", "bric"] = "unit",
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
        Table and target: squared error of one target, no ridge, no limits. A row of weight 2 counts as two rows.
    g : float, "unit" or "bric"
        Of Zellner's g-prior: coefficients are expected to be about as large as g rows allow to see. ``"unit"``: the
        number of rows; ``"bric"``: the larger of that and the squared number of columns.
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
    n, largest = int(problem.candidates.size), assumed.largest
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
    check_counts(_BATCHES, sweeps=sweeps)
    before = sweeps // 5 if burn_in is None else burn_in
    check_counts(0, burn_in=before)
    numbers = chain_numbers(chains, first_chain)
    settings = chain_settings(
        problem, run="posterior", g=assumed.g, prior=np.array(prior).tolist(), smallest=assumed.smallest,
        largest=assumed.largest, variance=None if variance is None else float(variance), sweeps=int(sweeps),
        burn_in=int(before), seed=check_seed(seed),
    )  # fmt: skip
    return _by_walks(problem, assumed, settings, numbers, journal, local_threads(n_jobs), began)


def _check_problem(problem: SubsetProblem) -> None:
    """Refuse what these probabilities are not defined for."""
    if not isinstance(problem, SubsetProblem):
        raise TypeError(f"problem is a {type(problem).__name__}; expected a pairflip.SubsetProblem.")
    what = None
    if not problem.gram.plain:
        what = "classes, counts, several targets or limits on columns"
    elif problem.ridge or problem.shrinkage:
        what = "a ridge"
    elif not problem.gram.dense:
        what = "a table so wide that its matrix of inner products exceeds the memory budget"
    if what is not None:
        raise ValueError(f"the problem has {what}; expected squared error of one target, and the g-prior alone.")


def _weighed(problem: SubsetProblem, prior: ModelPrior) -> tuple[Any, Any]:
    """The problem and what models weigh, for compiled code."""
    from pairflip.engines.numba.models import ModelSystem, ModelWeight

    gram = problem.gram
    empty = 0.5 * gram.yy
    spread, slope = prior.noise(empty)
    known = prior.variance is not None
    a = prior.shrink / prior.variance if prior.variance is not None else 0.5 * prior.freedom
    weight = ModelWeight(prior.size_weights(), known, a, empty / prior.g, prior.shrink, spread, slope)
    return ModelSystem(gram.matrix, gram.b, empty), weight


@one_blas_thread()
def _by_enumeration(problem: SubsetProblem, prior: ModelPrior, threads: int, began: float) -> Posterior:
    """All models, those with the same smallest column together."""
    from pairflip.engines.numba.all_models import ModelSums, new_sums, visit_models

    announce_compilation(visit_models)
    system, weight = _weighed(problem, prior)
    n, largest = int(problem.candidates.size), prior.largest
    parts = [(-1, 0), *((j, j + 1) for j in range(n))]

    def visit(part: tuple[int, int]) -> ModelSums:
        sums = new_sums(n, _TOP)
        visit_models(system, weight, sums, largest, *part)
        return sums

    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(visit, parts))
    highest = max(float(sums.scalars[0]) for sums in found)
    factor = np.exp([float(sums.scalars[0]) - highest for sums in found])
    total = float(factor @ [sums.scalars[1] for sums in found])
    logs = np.concatenate([sums.top for sums in found])
    masks = np.concatenate([sums.masks for sums in found])
    best = np.argsort(-logs, kind="stable")[:_TOP]
    best = best[np.isfinite(logs[best])]
    bits = (masks[best, None] >> np.arange(n)) & 1
    first, second, inclusion, by_size = (
        np.einsum("p,pn->n", factor, np.stack([getattr(sums, name) for sums in found])) / total
        for name in ("first", "second", "inclusion", "sizes")
    )
    left_out = int(sum(sums.scalars[3] for sums in found))
    return _assembled(
        problem, prior, inclusion, np.zeros(n), by_size, first, np.sqrt(np.maximum(second - first**2, 0.0)),
        models=tuple(problem.candidates[np.flatnonzero(each)] for each in bits),
        model_probability=np.exp(logs[best] - highest) / total,
        method="enumeration", visited=int(sum(sums.scalars[2] for sums in found)), acceptance={},
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
    system, weight = _weighed(problem, prior)
    n, largest, sweeps, chains = int(problem.candidates.size), prior.largest, settings["sweeps"], len(numbers)

    def walk(which: Sequence[int]) -> list[Chain]:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda chain: _one_walk(system, weight, prior, settings, chain, n), which))

    found, note = walk_kept(numbers, walk, settings, journal, threads)
    records, energies, accepted = (
        np.stack([each[name] for each in found]) for name in ("records", "energies", "accepted")
    )
    records.sort(axis=2)
    flat, _, _, counts = distinct_supports(records.reshape(chains * sweeps, largest))
    order = np.argsort(-counts, kind="stable")
    share = counts[order] / counts.sum()
    supports = [each[each >= 0].astype(np.int64) for each in flat[order]]
    inside = (records >= 0).sum(axis=2)
    inclusion, error = _frequencies(records, n)
    first, second = _moments(problem, prior, supports, share)
    moves = accepted.sum(axis=0)
    return _assembled(
        problem, prior, inclusion, error, np.bincount(inside.ravel(), minlength=n + 1) / inside.size,
        first, np.sqrt(np.maximum(second - first**2, 0.0)),
        models=tuple(problem.candidates[each] for each in supports), model_probability=share,
        method="sampling", visited=chains * sweeps * n,
        acceptance={
            name: float(a / max(b, 1)) for name, (a, b) in zip(("add", "drop", "flip"), moves.tolist(), strict=True)
        },
        sizes=inside.astype(np.int64), energies=energies,
        draws=np.where(records >= 0, problem.candidates[np.maximum(records, 0)], -1),
        seconds=time.perf_counter() - began, note=note,
    )  # fmt: skip


def _one_walk(system: Any, weight: Any, prior: ModelPrior, settings: dict[str, Any], chain: int, n: int) -> Chain:
    """Models of one walk after every sweep: columns that are in (-1 behind them), energies, and accepted moves."""
    from pairflip.engines.numba.models import ModelState, begin_models, walk_models

    announce_compilation(walk_models)
    sweeps, before, largest = settings["sweeps"], settings["burn_in"], prior.largest
    (key,) = chain_keys(settings["seed"], _EDGE, None, np.array([chain]))
    record, energies = np.full((sweeps, largest), -1, np.int32), np.zeros(sweeps)
    accepted, unread = np.zeros((3, 2), np.int64), np.zeros((3, 2), np.int64)
    m = max(largest, 1)
    state = ModelState(
        np.zeros(n, np.int64), np.zeros((m, m)), np.zeros(m), np.zeros(2, np.int64), np.zeros(1), np.zeros(m),
        np.zeros(m), np.zeros(m),
    )  # fmt: skip
    begin_models(system, state, key, min(max(prior.smallest, chain), largest))
    ignored = np.zeros((before, 0), np.int32), np.zeros(before)
    walk_models(system, weight, state, key, 0, before * n, n, *ignored, unread)
    walk_models(system, weight, state, key, before * n, sweeps * n, n, record, energies, accepted)
    return {"records": record, "energies": energies, "accepted": accepted}


def _frequencies(records: NDArray[np.int32], n: int) -> tuple[Floats, Floats]:
    """Fractions (n,) of the draws with each column, and their errors from the means of batches of each chain."""
    chains, sweeps, _ = records.shape
    edges = np.linspace(0, sweeps, _BATCHES + 1).astype(int)
    batches = np.zeros((chains, _BATCHES, n))
    for c in range(chains):
        for b, (first, last) in enumerate(pairwise(edges.tolist())):
            part = records[c, first:last]
            batches[c, b] = np.bincount(part[part >= 0], minlength=n) / (last - first)
    each = batches.reshape(-1, n)
    # One draw more or less is the least error that can be claimed of a column that was always in, or never.
    least = 1.0 / (chains * sweeps)
    return each.mean(axis=0), np.maximum(each.std(axis=0, ddof=1) / np.sqrt(len(each)), least)


def _moments(problem: SubsetProblem, prior: ModelPrior, supports: list[Ints], share: Floats) -> tuple[Floats, Floats]:
    """Mean and mean square (n,) of the coefficients of scaled columns, over models with these shares.

    Parameters
    ----------
    problem, prior
        Table, target and what was assumed.
    supports, share
        Models, as positions among the candidates, and their probabilities.
    """
    gram = problem.gram
    spread, slope = prior.noise(0.5 * gram.yy)
    first, second = np.zeros(gram.n_columns), np.zeros(gram.n_columns)
    for support, weight in zip(supports, share, strict=True):
        P = np.linalg.inv(gram.matrix[np.ix_(support, support)])
        x = P @ gram.b[support]
        energy = max(0.5 * (gram.yy - float(x @ gram.b[support])), 0.0)
        mean = prior.shrink * x
        first[support] += weight * mean
        second[support] += weight * (mean**2 + prior.shrink * (spread + slope * energy) * np.diag(P))
    return first, second


def _assembled(
    problem: SubsetProblem, prior: ModelPrior, inclusion: Floats, error: Floats, by_size: Floats, mean: Floats,
    sd: Floats, **rest: Any,
) -> Posterior:  # fmt: skip
    """The record, in columns and units of the table."""
    at, N = problem.candidates, problem.n_columns
    probability, probability_se, coef_mean, coef_sd = np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(N)
    probability[at], probability_se[at] = inclusion, error
    coef_mean[at], coef_sd[at] = mean / problem.scale, sd / problem.scale
    probability[problem.always] = 1.0
    left = problem.y - problem.X[:, at] @ coef_mean[at]
    Z = np.column_stack([np.ones((problem.n_rows, int(problem.center is not None))), problem.X[:, problem.always]])
    w = np.sqrt(problem.sample_weight)
    z = np.linalg.lstsq(w[:, None] * Z, w * left, rcond=None)[0]
    constant = float(z[0]) if problem.center is not None else 0.0
    always = z[int(problem.center is not None) :]
    coef_mean[problem.always] = always
    return Posterior(
        problem=problem, inclusion_probability=probability, inclusion_se=probability_se, size_probability=by_size,
        coef_mean=coef_mean, coef_sd=coef_sd, intercept=constant, always_coef=always, prior=prior, **rest,
    )  # fmt: skip
