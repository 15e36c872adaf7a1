"""`best_subset`, the search for one size, and `anneal`, the paper's method alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pairflip.engines import Engine, Refused, WalkPlan, engine_for, get_engine, or_rescue
from pairflip.engines.base import flip_nanoseconds
from pairflip.jobs import local_threads
from pairflip.moments import Form
from pairflip.philox import chain_keys, check_seed
from pairflip.problem import SubsetProblem
from pairflip.progress import progress_bar
from pairflip.search.effort import Effort, Method, as_effort, as_method
from pairflip.search.forward import greedy_scale
from pairflip.search.methods import as_descent, check_engine
from pairflip.search.portfolio import Searched, portfolio
from pairflip.search.schedule import Schedule
from pairflip.search.settle import descended, first_best, is_lower, refine, settle
from pairflip.search.sizes import check_size, groups_of
from pairflip.search.trace import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pairflip.search.proof import Proof


ON_THE_CPU = "searched by engine 'numba': the one asked for walks annealing chains only (method='anneal')"
BY_COLUMNS = "worked from the columns (the N x N matrix exceeds the memory budget)"


def as_schedule(schedule: Schedule | Literal["auto", "paper"]) -> Schedule:
    """A schedule by name or as it is."""
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, str) and schedule in ("auto", "paper"):
        return Schedule.auto() if schedule == "auto" else Schedule.paper()
    raise ValueError(f"schedule is {schedule!r}; expected 'auto', 'paper' or a pairflip.Schedule.")


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
    began = time.perf_counter()
    k = check_size(problem, k)
    seed = check_seed(seed)
    plan_schedule = as_schedule(schedule)
    spend = as_effort(effort)
    if not problem.can_anneal:
        method = as_descent(problem, method, schedule, chains)
    if not problem.form.plain:
        engine = check_engine(problem, engine)
    if method is None:
        plain = schedule == "auto" and chains is None
        method = "auto" if plain else "anneal"
    if as_method(method) != "anneal":
        if chains is not None:
            raise ValueError(f"method is {method!r} and chains is given; expected method='anneal', or effort instead.")
        certain = prove and polish
        return _search(problem, k, method, spend, plan_schedule, seed, engine, n_jobs, progress, polish, certain, began)
    form = problem.form
    flips = plan_schedule.flips(form.n_columns)
    chains = count_chains(chains, form, k, int(flips.sum()))
    scale = greedy_scale(form, k) if plan_schedule.unit == "greedy" else 1.0
    plan = WalkPlan(
        k=k,
        betas=plan_schedule.absolute_betas(scale),
        flips=flips,
        keys=chain_keys(seed, k, None, np.arange(chains)),
    )
    walker = engine_for(engine, [(form, plan)])
    reason = walker.refuses(form, plan)
    if reason is not None:
        raise Refused(reason)
    with progress_bar(f"annealing k = {k}", int(plan.flips.sum()) * chains, progress) as tick:
        threads = local_threads(n_jobs)
        (walked,), failed = or_rescue(walker, lambda who: who.walk([(form, plan)], n_jobs=threads, tick=tick))
    supports, energies = settle(form, walked)
    found = supports[first_best(energies, form.yy)]
    notes = ([] if failed is None else [failed]) + ([] if problem.form.dense else [BY_COLUMNS])
    if polish and not problem.form.plain:
        found = refine(form, found)
    elif polish:
        found = descended(form, found)
    proof, chosen = None, problem.columns_of(form.candidates[found])
    if prove and polish and problem.has_proofs:
        proof, chosen = _certain(problem, k, chosen, None, notes)
    best = problem.fit(chosen)
    notes += [remark] if (remark := problem.loss.remark(problem, best.support)) else []
    return Trace(
        k=k,
        schedule=plan_schedule,
        seed=seed,
        engine=walker.name,
        names=problem.names,
        betas=plan.betas,
        flips=plan.flips,
        energy=walked.energy,
        acceptance=walked.accepted / plan.flips,
        supports=form.candidates[supports],
        energies=energies,
        best_support=best.support,
        best_energy=best.energy,
        best_coef=best.coef,
        best_intercept=best.intercept,
        refreshes=walked.refreshes,
        seconds=time.perf_counter() - began,
        note="; ".join(notes),
        yy=float(form.yy),
        proof=proof,
        groups=groups_of(problem),
    )


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


def _certain(
    problem: SubsetProblem, k: int, support: NDArray[np.int64], effort: Effort | None, notes: list[str]
) -> tuple[Proof | None, NDArray[np.int64]]:
    """A proof where it is cheap, and the best support after it."""
    from pairflip.search.certain import proof_of, proof_seconds

    proof = proof_of(problem, k, support, proof_seconds(effort))
    if proof is None or not is_lower(proof.energy, problem.energy(support), problem.form.yy):
        return proof, support
    notes.append("the proof found a better support than any chain")
    return proof, problem.columns_of(proof.support)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a search that had found something: `trace` has it."""

    def __init__(self, trace: Trace) -> None:
        super().__init__("the search was interrupted; the exception's trace has what was found so far")
        self.trace = trace


def _search(
    problem: SubsetProblem, k: int, method: Method, effort: Effort, schedule: Schedule, seed: int,
    engine: str | Engine, n_jobs: int | None, progress: bool | None, polish: bool, certain: bool, began: float,
) -> Trace:  # fmt: skip
    """A trace by the portfolio of methods."""
    walker, remarks = get_engine(engine), list[str]()
    form, so_far = problem.form, list[Searched]()
    if not walker.searches:
        walker, remarks = get_engine("numba"), [ON_THE_CPU]

    def traced(found: Searched, note: str = "", proof: Proof | None = None) -> Trace:
        best, notes = found.best, remarks + ([] if form.dense else [BY_COLUMNS])
        if polish and problem.loss.squared and not note and proof is None:
            best = refine(form, best)
        chosen = problem.columns_of(form.candidates[best])
        if certain and problem.has_proofs and not note and proof is None:
            proof, chosen = _certain(problem, k, chosen, effort, notes)
        fit = problem.fit(chosen)
        remark = problem.loss.remark(problem, fit.support)
        notes += [remark] if remark else []
        chains = found.energies.size
        return Trace(
            k=k, schedule=schedule, seed=seed, engine=walker.name, names=problem.names,
            betas=np.zeros(0), flips=np.zeros(0, dtype=np.int64), energy=np.zeros((chains, 0)),
            acceptance=np.zeros((chains, 0)), supports=form.candidates[found.supports], energies=found.energies,
            best_support=fit.support, best_energy=fit.energy, best_coef=fit.coef, best_intercept=fit.intercept,
            refreshes=np.zeros(chains, dtype=np.int64), seconds=time.perf_counter() - began,
            note="; ".join([*notes, note] if note else notes), yy=float(form.yy), method=method, effort=effort.name,
            proof=proof, groups=groups_of(problem),
        )  # fmt: skip

    threads = local_threads(n_jobs)
    if certain and problem.has_proofs:
        from pairflip.search.certain import solved

        proof = solved(problem, k, effort)
        if proof is not None:  # every support was looked at: there is nothing left to search
            at = np.sort(form.positions(proof.support))
            return traced(Searched(at[None], np.array([proof.energy]), (1, 1), form.yy), proof=proof)
    try:
        with progress_bar(f"searching k = {k}", None, progress) as bar:

            def heard(found: Searched) -> None:
                so_far.append(found)
                if bar is not None:
                    bar.say(f"k = {k}: {found.energies.size} chains, lowest energy {found.energies.min():.6g}")

            found = portfolio(
                form, k, method=method, effort=effort, schedule=schedule, seed=seed, engine=walker,
                n_jobs=threads, tick=bar, heard=heard,
            )  # fmt: skip
    except KeyboardInterrupt:
        if so_far:
            raise Interrupted(traced(so_far[-1], "interrupted")) from None
        raise
    return traced(found)


def count_chains(chains: int | None, form: Form, k: int, flips: int) -> int:
    """The number of chains asked for, or as many as take about a second on one core by a cost model."""
    if chains is None:
        affordable = 1e9 / (flips * flip_nanoseconds(form, k))
        return int(np.clip(affordable, 16, min(512, max(32, 2 * form.n_columns))))
    return check_chains(chains)


def model_seconds(problem: SubsetProblem, k: int, schedule: Schedule, chains: int | None, n_jobs: int | None) -> float:
    """Time of `anneal` by the cost model: half the flips of a schedule are hot, and hot ones cost the most."""
    flips = int(schedule.flips(problem.form.n_columns).sum())
    walks = -(-count_chains(chains, problem.form, k, flips) // local_threads(n_jobs))
    return 1e-9 * walks * flips * flip_nanoseconds(problem.form, k) / 2.0


def check_chains(chains: Any) -> int:
    """A number of chains as an int."""
    if isinstance(chains, (bool, np.bool_)) or not isinstance(chains, (int, np.integer)) or chains < 1:
        raise ValueError(f"chains is {chains!r}; expected a whole number of at least 1.")
    return int(chains)
