"""Probabilities of columns and models under a g-prior: all models one by one, or a walk among them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import comb, log
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pairflip.engines.base import RankTooSmall
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.numba import announce_compilation
from pairflip.jobs import local_threads
from pairflip.least_squares import Floats
from pairflip.philox import STREAM_MODELS, chain_keys, check_seed, philox4x32, start_order
from pairflip.problem import SubsetProblem
from pairflip.search.averaged import Posterior
from pairflip.search.kept import chain_numbers, chain_settings, walk_kept
from pairflip.search.prior import ModelPrior, read_prior
from pairflip.search.sizes import check_counts
from pairflip.supports import distinct_supports

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
        Table and target: squared error of one target, no ridge. A row of weight 2 counts as two rows. With groups of
        columns, models are sets of groups: sizes, priors and probabilities are those of groups, and the g-prior counts
        their independent columns.
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
    what, form = None, problem.form
    if not form.quadratic or len(form.B) > 1 or form.rules.any:
        what = "classes, counts, several targets, signs or rules about columns"
    elif problem.ridge or problem.shrinkage:
        what = "a ridge"
    elif not problem.form.dense:
        what = "a table so wide that its matrix of inner products exceeds the memory budget"
    if what is not None:
        raise ValueError(f"the problem has {what}; expected squared error of one target, and the g-prior alone.")


class _Models:
    """Models of a problem under a prior: units of columns, and what sets of them weigh.

    `start` (U + 1,) is where the columns of each unit begin among the D columns of the matrix.
    """

    def __init__(self, problem: SubsetProblem, prior: ModelPrior) -> None:
        from pairflip.engines.numba.models import INFLATED, ModelWeight

        self.problem, self.prior, form = problem, prior, problem.form
        self.start: Ints = getattr(form, "start", np.arange(form.n_columns + 1))
        self.widths = np.diff(self.start)
        self.n, self.matrix, self.b, self.yy = form.n_columns, form.matrix, form.b, form.yy
        spread, slope = prior.noise(0.5 * self.yy)
        known = prior.variance is not None
        a = prior.shrink / prior.variance if prior.variance is not None else 0.5 * prior.freedom
        self.weight = ModelWeight(
            prior.log_prior, 0.5 * np.log1p(prior.g), a, 0.0 if known else 0.5 * self.yy / prior.g, prior.shrink,
            spread, slope, max(int(prior.freedom) - 2, 0),
        )  # fmt: skip
        self.inflated = INFLATED

    def places(self, units: Ints) -> Ints:
        """Where the columns of some units are, one unit after the other."""
        return np.concatenate([np.arange(self.start[u], self.start[u + 1]) for u in units] or [np.zeros(0, np.int64)])

    def fit(self, units: Ints) -> tuple[float, Floats, Floats]:
        """Energy, coefficients of the columns, and their inverse Gram matrix, for some units."""
        at = self.places(units)
        P: Floats = np.asarray(np.linalg.inv(self.matrix[np.ix_(at, at)]), dtype=np.float64)
        x = P @ self.b[at]
        return max(0.5 * (self.yy - float(x @ self.b[at])), 0.0), x, P

    def weigh(self, units: Ints) -> tuple[float, float]:
        """Logarithm of the weight of some units, and their energy; minus infinity if they depend on each other."""
        w, d = self.weight, int(self.widths[units].sum())
        if d > w.most:
            return -np.inf, np.inf
        try:
            energy, _, P = self.fit(units)
        except np.linalg.LinAlgError:
            return -np.inf, np.inf
        if P.size and not (P.diagonal().min() > 0 and P.diagonal().max() < self.inflated):
            return -np.inf, np.inf
        return float(w.prior[units.size] - w.column * d - w.a * (np.log(energy + w.c) if w.c else energy)), energy

    def moments(self, supports: list[Ints], share: Floats) -> tuple[Floats, Floats]:
        """Means (D,) of the coefficients over models with these shares, and mean products within units (D, widest)."""
        w, first, second = self.weight, np.zeros(self.b.size), np.zeros((self.b.size, int(self.widths.max(initial=1))))
        for units, part in zip(supports, share, strict=True):
            energy, x, P = self.fit(units)
            products = w.shrink**2 * np.outer(x, x) + w.shrink * (w.spread + w.slope * energy) * P
            first[self.places(units)] += part * w.shrink * x
            for u, a in zip(units, np.cumsum(self.widths[units]) - self.widths[units], strict=True):
                own, at = slice(self.start[u], self.start[u + 1]), slice(a, a + self.widths[u])
                second[own, : self.widths[u]] += part * products[at, at]
        return first, second

    def coefficients(self, first: Floats, second: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the coefficient of each candidate column, in the units of the table."""
        form: Any = self.problem.form
        scale = self.problem.scale
        mean, sd = np.zeros(self.problem.candidates.size), np.zeros(self.problem.candidates.size)
        for u in range(self.n):
            own, members, to = slice(self.start[u], self.start[u + 1]), np.array([u]), np.array([[1 / scale[u]]])
            if form.grouped:
                members, to = form.to_table(members, scale)
            spread = second[own, : self.widths[u]] - np.outer(first[own], first[own])
            mean[members] = to @ first[own]
            sd[members] = np.sqrt(np.maximum(np.einsum("ia,ab,ib->i", to, spread, to), 0.0))
        return mean, sd

    def columns_of(self, units: Ints) -> Ints:
        """Columns of the table of some units, sorted."""
        return self.problem.columns_of(self.problem.form.candidates[units])


@one_blas_thread()
def _by_enumeration(problem: SubsetProblem, prior: ModelPrior, threads: int, began: float) -> Posterior:
    """All models, those with the same smallest unit together."""
    from pairflip.engines.numba.models import ModelSums, new_sums, new_tables, visit_models
    from pairflip.engines.numba.table import plain_form

    announce_compilation(visit_models)
    models = _Models(problem, prior)
    n, largest, form = models.n, prior.largest, plain_form(models.b[None], models.yy)
    widest = min(int(np.sort(models.widths)[::-1][:largest].sum()), models.weight.most)
    parts = [(-1, 0), *((u, u + 1) for u in range(n))]

    def visit(part: tuple[int, int]) -> ModelSums:
        sums, tables = new_sums(models.start, _TOP), new_tables(largest, max(widest, 1), models.b.size)
        visit_models(form, models.matrix, models.start, models.weight, sums, tables, largest, *part)
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
        np.einsum("p,p...->...", factor, np.stack([getattr(sums, name) for sums in found])) / total
        for name in ("first", "second", "inclusion", "sizes")
    )
    left_out = int(sum(sums.scalars[3] for sums in found))
    return _assembled(
        models, inclusion, np.zeros(n), by_size, first, second,
        models=tuple(models.columns_of(np.flatnonzero(each)) for each in bits),
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
    models = _Models(problem, prior)
    n, largest, sweeps, chains = models.n, prior.largest, settings["sweeps"], len(numbers)
    one_walk = _unit_walk if problem.form.grouped else _column_walk

    def walk(which: Sequence[int]) -> list[Chain]:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda chain: one_walk(models, settings, chain), which))

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
    moves = accepted.sum(axis=0)
    return _assembled(
        models, inclusion, error, np.bincount(inside.ravel(), minlength=n + 1) / inside.size,
        *models.moments(supports, share),
        models=tuple(models.columns_of(each) for each in supports), model_probability=share,
        method="sampling", visited=chains * sweeps * n,
        acceptance={
            name: float(a / max(b, 1)) for name, (a, b) in zip(("add", "drop", "flip"), moves.tolist(), strict=True)
        },
        sizes=inside.astype(np.int64), energies=energies,
        draws=np.where(records >= 0, problem.form.candidates[np.maximum(records, 0)], -1),
        seconds=time.perf_counter() - began, note=note,
    )  # fmt: skip


def _column_walk(models: _Models, settings: dict[str, Any], chain: int) -> Chain:
    """Models of one walk after every sweep: columns that are in (-1 behind them), energies, and accepted moves."""
    from pairflip.engines.numba.annealing import walk
    from pairflip.engines.numba.chains import Walks, new_output
    from pairflip.engines.numba.models import INFLATED

    announce_compilation(walk)
    sweeps, before, prior, w, n = settings["sweeps"], settings["burn_in"], models.prior, models.weight, models.n
    k = np.arange(prior.largest + 1)
    # All models of a size together, so that the ways to add and drop columns are counted.
    sizes = w.prior[k] - w.column * k + gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    first = min(max(prior.smallest, chain), prior.largest)
    keys = chain_keys(settings["seed"], _EDGE, None, np.array([chain]))
    weights: dict[str, Any] = {"sizes": np.append(sizes, -np.inf), "offset": w.c, "inflation": INFLATED}
    flips = np.array([before * n] * (before > 0) + [n] * sweeps, np.int64)
    output = new_output(1, flips.size, prior.largest, record=True)
    while True:
        walks = Walks(models.problem.form, first, keys, **weights)
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


def _unit_walk(models: _Models, settings: dict[str, Any], chain: int) -> Chain:
    """The same walk among groups of columns; what a set of them weighs is remembered."""
    sweeps, before, prior, n = settings["sweeps"], settings["burn_in"], models.prior, models.n
    (key,) = chain_keys(settings["seed"], _EDGE, None, np.array([chain]))
    known: dict[int, tuple[float, float]] = {}

    def weigh(model: int) -> tuple[float, float]:
        """Of units that are the bits of a whole number."""
        if model not in known:
            known[model] = models.weigh(np.array([u for u in range(n) if model >> u & 1], dtype=np.int64))
        return known[model]

    order, k, model = start_order(key, n).tolist(), 0, 0
    for at, unit in enumerate(order):  # from some units that do not depend on each other
        if k < min(max(prior.smallest, chain), prior.largest) and np.isfinite(weigh(model | 1 << unit)[1]):
            order[k], order[at], model, k = unit, order[k], model | 1 << unit, k + 1
    now = weigh(model)
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
            weight = weigh(then)
            if log(((w2 >> 5 << 26 | w3 >> 6) + 1) * 2.0**-53) <= weight[0] - now[0] + choices:
                order[slot], order[other] = order[other], order[slot]
                model, now, k = then, weight, k + (1, -1, 0)[kind]
                accepted[kind, 0] += 1
        if sweep >= before:
            records[sweep - before, :k], energies[sweep - before] = order[:k], now[1]
    return {"records": records, "energies": energies, "accepted": accepted}


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


def _assembled(
    told: _Models, inclusion: Floats, error: Floats, by_size: Floats, first: Floats, second: Floats, **rest: Any
) -> Posterior:
    """The record, in columns and units of the table."""
    problem, prior = told.problem, told.prior
    at, N = problem.candidates, problem.n_columns
    probability, probability_se, coef_mean, coef_sd = np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(N)
    for u, columns in enumerate(told.columns_of(np.array([u])) for u in range(told.n)):
        probability[columns], probability_se[columns] = inclusion[u], error[u]
    coef_mean[at], coef_sd[at] = told.coefficients(first, second)
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
