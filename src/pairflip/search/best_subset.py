"""`best_subset`, the search for one size, and `anneal`, the paper's method alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from pairflip.engines import Engine, Refused, WalkPlan, engine_for, get_engine, or_rescue
from pairflip.engines.base import is_lower
from pairflip.jobs import local_threads
from pairflip.moments import Form
from pairflip.philox import chain_keys, check_seed
from pairflip.problem import SubsetProblem
from pairflip.progress import progress_bar
from pairflip.search.effort import Method, as_descent, as_effort, as_method, check_engine, check_size, count_chains
from pairflip.search.portfolio import Searched, descended, first_best, portfolio, refine, settle
from pairflip.search.schedule import Schedule, as_schedule, greedy_scale
from pairflip.search.trace import Trace

ON_THE_CPU = "searched by engine 'numba': the one asked for walks annealing chains only (method='anneal')"
BY_COLUMNS = "worked from the columns (the N x N matrix exceeds the memory budget)"


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
    from pairflip.search.automatic_proof import proof_of, proof_seconds, solved

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
