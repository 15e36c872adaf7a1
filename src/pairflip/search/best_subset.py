"""`best_subset`, the search for one size; `anneal`, the paper's method alone; and the record of both, `Trace`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.engines import Engine, Refused, WalkPlan, engine_for, get_engine, or_rescue
from pairflip.engines.base import is_lower, reaches
from pairflip.jobs import local_threads
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.philox import chain_keys, check_seed
from pairflip.problem import SubsetProblem
from pairflip.progress import progress_bar
from pairflip.search.draws import as_tree
from pairflip.search.effort import Method, as_descent, as_effort, as_method, check_engine, check_size, count_chains
from pairflip.search.portfolio import Searched, descended, first_best, portfolio, refine, settle
from pairflip.search.schedule import Schedule, as_schedule, greedy_scale

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes

    from pairflip.search.prove import Proof

ON_THE_CPU = "searched by engine 'numba': the one asked for walks annealing chains only (method='anneal')"
BY_COLUMNS = "worked from the columns (the N x N matrix exceeds the memory budget)"


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


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a search that had found something: `trace` has it."""

    def __init__(self, trace: Trace) -> None:
        super().__init__("the search was interrupted; the exception's trace has what was found so far")
        self.trace = trace


def best_subset(
    problem: SubsetProblem,
    k: int,
    *,
    method: Method | None = None,
    effort: Literal["quick", "normal", "thorough"] | float = "normal",
    seed: int = 0,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    progress: bool | None = False,
    polish: bool = True,
    prove: bool = True,
    schedule: Schedule | Literal["auto", "paper"] = "auto",
    chains: int | None = None,
) -> Trace:
    r"""Search the support of k columns with the lowest energy.

    Parameters
    ----------
    problem
        Table and target.
    k
        Number of columns, beside those that are always in the model; of groups, where columns are chosen in groups.
    method
        ``"auto"`` (the path over all sizes, descents by best flips with kicks, and annealing where these do not agree),
        ``"descend"`` (path, descents and kicks only; the one for classes and counts) or ``"anneal"``, which is what
        `anneal` does. None: ``"anneal"`` if a schedule or a number of chains is given, else ``"auto"``.
    effort
        For methods other than ``"anneal"``: ``"quick"``, ``"normal"`` (up to two seconds on one core, less where chains
        agree earlier) or ``"thorough"``, counted in work, so that the result is the same everywhere; or a number of
        seconds by the clock.
    seed
        Same seed, same result: for any number of threads. Engines may part where rounding decides.
    engine
        ``"auto"``, ``"numba"``, ``"reference"`` or ``"cuda"``, which walks annealing chains only.
    n_jobs
        Threads; None is one, -1 all cores.
    progress
        True: show a bar on standard error; None: only if it is a terminal.
    polish
        Whether the best support of the chains is improved at the end by the best flips, until none lowers the energy
        (squared error only).
    prove
        Whether to prove that the answer is the best of all supports, where that takes at most half a second by a cost
        model (effort "quick": 0.05 s, "thorough": 5 s): ``trace.proof``. A better support found on the way is the
        answer. Not without `polish`.
    schedule, chains
        Of annealing: see `anneal`.

    Raises
    ------
    Interrupted
        On Ctrl-C while methods other than ``"anneal"`` search: a KeyboardInterrupt that carries ``trace``, what was
        found so far.
    """
    from pairflip.search.prove import proof_of, proof_seconds, solved

    began = time.perf_counter()
    k, seed, cooling, amount = check_size(problem, k), check_seed(seed), as_schedule(schedule), as_effort(effort)
    form = problem.form
    if not form.quadratic or form.grouped:
        method = as_descent(problem, method, schedule, chains)
    if not form.plain:
        engine = check_engine(problem, engine)
    if method is None:
        method = "auto" if schedule == "auto" and chains is None else "anneal"
    anneals, proves = as_method(method) == "anneal", prove and polish and form.quadratic
    if chains is not None and not anneals:
        raise ValueError(f"method is {method!r} and chains is given; expected method='anneal', or effort instead.")
    threads, proof, interrupted, notes = local_threads(n_jobs), None, False, list[str]()
    if anneals:
        flips = cooling.flips(form.n_columns)
        keys = chain_keys(seed, k, None, np.arange(count_chains(chains, form, k, int(flips.sum()))))
        betas = cooling.absolute_betas(greedy_scale(form, k) if cooling.unit == "greedy" else 1.0)
        plan = WalkPlan(k=k, betas=betas, flips=flips, keys=keys)
        walker, searched, steps = _walk_chains(form, plan, engine, threads, progress, notes)
    else:
        walker = get_engine(engine)
        if not walker.searches:
            walker, notes = get_engine("numba"), [ON_THE_CPU]
        proof = solved(problem, k, amount) if proves else None
        if proof is not None:  # every support was looked at: there is nothing left to search
            searched = Searched(np.sort(form.positions(proof.support))[None], np.array([proof.energy]))
        else:
            with progress_bar(f"searching k = {k}", None, progress) as bar:
                waves = portfolio(form, k, method, amount, cooling, seed, walker, threads, bar)
                searched, interrupted = _run_waves(waves, k, bar)
        n = searched.energies.size
        steps = {"betas": np.zeros(0), "flips": np.zeros(0, np.int64), "refreshes": np.zeros(n, np.int64)}
        steps |= {"energy": np.zeros((n, 0)), "acceptance": np.zeros((n, 0))}
    notes += [] if form.dense else [BY_COLUMNS]
    best = searched.supports[first_best(searched.energies, form.yy)]
    finished = proof is not None or interrupted
    if polish and problem.loss.squared and not finished:
        best = descended(form, best) if anneals and form.plain else refine(form, best)
    support = problem.columns_of(form.candidates[best])
    if proves and not finished:
        proof = proof_of(problem, k, support, proof_seconds("normal" if anneals else amount))
        if proof is not None and is_lower(proof.energy, problem.energy(support), form.yy):
            support = problem.columns_of(proof.support)
            notes.append("the proof found a better support than any chain")
    fit = problem.fit(support)
    notes += filter(None, [problem.loss.remark(problem, fit.support), "interrupted" * interrupted])
    trace = Trace(
        k=k,
        schedule=cooling,
        seed=seed,
        engine=walker.name,
        names=problem.names,
        supports=form.candidates[searched.supports],
        energies=searched.energies,
        best_support=fit.support,
        best_energy=fit.energy,
        best_coef=fit.coef,
        best_intercept=fit.intercept,
        seconds=time.perf_counter() - began,
        note="; ".join(notes),
        yy=float(form.yy),
        method=method,
        effort="" if anneals else amount.name,
        proof=proof,
        groups=None if problem.units is None else problem.units.groups,
        **steps,
    )
    if interrupted:
        raise Interrupted(trace)
    return trace


def _walk_chains(
    form: Form, plan: WalkPlan, engine: str | Engine, threads: int, progress: bool | None, notes: list[str]
) -> tuple[Engine, Searched, dict[str, Any]]:
    """The engine that walked annealing chains, what these found and did at each step; a device that fails is noted."""
    walker = engine_for(engine, [(form, plan)])
    reason = walker.refuses(form, plan)
    if reason is not None:
        raise Refused(reason)
    with progress_bar(f"annealing k = {plan.k}", int(plan.flips.sum()) * plan.chains, progress) as bar:
        (walked,), failed = or_rescue(walker, lambda who: who.walk([(form, plan)], n_jobs=threads, tick=bar))
    notes += [] if failed is None else [failed]
    steps = {
        "betas": plan.betas,
        "flips": plan.flips,
        "energy": walked.energy,
        "acceptance": walked.accepted / plan.flips,
        "refreshes": walked.refreshes,
    }
    return walker, Searched(*settle(form, walked)), steps


def _run_waves(waves: Iterator[Searched], k: int, bar: Any) -> tuple[Searched, bool]:
    """What is known after the last wave of chains, and whether Ctrl-C ended the search before its end."""
    state: Searched | None = None
    try:
        for state in waves:
            if bar is not None:
                bar.say(f"k = {k}: {state.energies.size} chains, lowest energy {state.energies.min():.6g}")
    except KeyboardInterrupt:
        if state is None:
            raise
        return state, True
    assert state is not None
    return state, False


def anneal(
    problem: SubsetProblem,
    k: int,
    schedule: Schedule | Literal["auto", "paper"] = "auto",
    chains: int | None = None,
    seed: int = 0,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    progress: bool | None = False,
    polish: bool = True,
    prove: bool = True,
) -> Trace:
    r"""Search the support of k columns with the lowest energy by simulated annealing, the paper's method.

    Parameters
    ----------
    problem
        Table and target.
    k
        Number of columns, beside those that are always in the model.
    schedule
        ``"auto"`` (scale-free, made for finding the optimum), ``"paper"``, or a `Schedule`.
    chains
        Independent walks; the best one counts. None: as many as take about a second on one core, between 16 and 512,
        fewer for tiny tables (by the problem alone, not by the machine).
    seed
        Same seed, same result: for any number of threads. Engines may part where rounding decides.
    engine
        ``"auto"``, ``"numba"``, ``"reference"`` or ``"cuda"``.
    n_jobs
        Threads; None is one, -1 all cores.
    progress
        True: show a bar on standard error; None: only if it is a terminal.
    polish
        Whether the best support of the chains is improved at the end by the best flips, until none lowers the energy.
        False gives what the chains found and nothing else, as in the paper.
    prove
        Whether to prove that the answer is the best of all supports, where that takes at most half a second by a cost
        model: ``trace.proof``. Not without `polish`.
    """
    return best_subset(
        problem, k, method="anneal", seed=seed, engine=engine, n_jobs=n_jobs, progress=progress, polish=polish,
        prove=prove, schedule=schedule, chains=chains,
    )  # fmt: skip
