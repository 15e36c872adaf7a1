"""`compare`: every method on the same folds of one table, one thread each; what fails is a row that says so."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import pairflip
import pairflip.comparison.peers  # registers the methods that come with the package
from pairflip.blas import one_blas_thread
from pairflip.comparison.record import Comparison, MethodResult
from pairflip.comparison.registry import Peer, chosen_peers
from pairflip.comparison.scoring import CommonGround, Scorer, peer_result, reason
from pairflip.comparison.training import Training
from pairflip.problem import SubsetProblem
from pairflip.progress import progress_bar
from pairflip.selection import Selection
from pairflip.selection.tasks import plan_work
from pairflip.sparse import is_sparse

_OURS = ("normal", "thorough", "quick")  # which of ours others are compared with: the first that has a result


def compare(
    problem: SubsetProblem,
    sizes: Iterable[int] | None = None,
    cv: Any = 10,
    *,
    methods: Iterable[str] | str | None = None,
    peers: Mapping[str, Any] | Sequence[Any] | str | None = None,
    groups: ArrayLike | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Comparison:
    """Compare pairflip with other methods on the same folds of one table.

    Methods that find columns (OMP, the LASSO path, forward and backward selection, message passing, abess, skglm, ours)
    are fitted by least squares at each size on the training rows of a fold; those that predict by themselves (LassoCV,
    PLS, estimators of yours) have one row. Everyone gets the training rows of a fold only, and one thread. A method
    that is not installed, fails or diverges is a row that says so. After Ctrl-C, what is finished is returned.

    Forced columns, row weights and `center` count for every method of this package; an estimator of yours gets the
    columns as they are, forced ones among them, and the weights if it takes them.

    Parameters
    ----------
    problem
        Table and one target of numbers, without limits and without a ridge.
    sizes, cv
        As in `select_size`; ten folds by default.
    methods
        Names of the methods to run, in a list or separated by commas; None: all. ``"quick"``, ``"normal"`` and
        ``"thorough"`` are ours.
    peers
        More methods, see `register_peer`: by name, ``{"mine": estimator}``, or in a list, where they are called after
        their class. Names of methods in the list are run beside `methods`, or beside ``"normal"`` alone where that is
        None: ``peers=["omp", "lasso", Ridge()]``.
    groups
        Labels of rows that are left out together.
    seed
        Of our search and of inner folds. Same seed, same numbers, seconds apart.
    progress
        Whether to show a bar; None: on a terminal.
    """
    from threadpoolctl import threadpool_limits

    wanted = chosen_peers(methods, peers)
    selection = Selection(sizes, cv, seed=seed, prove=False)
    if isinstance(problem, SubsetProblem):
        refuse(problem)
    work = plan_work(problem, selection, "numba", groups)
    ground = CommonGround(problem, work.folds, tuple(work.sizes), selection.seed, selection.cv, groups)
    # Linear algebra and OpenMP on one thread, so that seconds can be compared.
    with one_blas_thread(), threadpool_limits(1, user_api="openmp"):
        scorer = Scorer(ground)
        results, interrupted = _run_all(wanted, scorer, selection, progress)
    reference = next((name for name in _OURS if name in scorer.residuals), "")
    if reference:
        ours = next(method for method in results if method.name == reference)
        results = [scorer.beside(method, ours) for method in results]
    without, without_se = scorer.error(scorer.without**2)
    return Comparison(
        methods=tuple(results), reference=reference, sizes=ground.sizes, without=without, without_se=without_se,
        names=problem.names, n_rows=problem.n_rows, n_folds=len(work.folds), folds=work.folds.how, seed=selection.seed,
        data_hash=problem.hash, version=pairflip.__version__, interrupted=interrupted, variance=scorer.variance,
    )  # fmt: skip


def refuse(problem: SubsetProblem) -> None:
    """Refuse what other methods do not have, so that all of them solve the same problem."""
    if problem.target_names or not problem.loss.squared:
        what = f"{len(problem.target_names)} targets" if problem.target_names else f"loss={problem.loss.name!r}"
        raise ValueError(f"the problem has {what}; expected one target and squared error to compare methods on.")
    needed = 8 * problem.n_rows * problem.n_columns
    if is_sparse(problem.X) and needed > problem.memory_budget:
        raise ValueError(
            f"the sparse table takes {needed:,} bytes as ordinary numbers, which other methods need, more than the "
            f"memory budget of {problem.memory_budget:,} bytes; expected fewer columns, or memory_budget={needed}."
        )
    if problem.limits.asked or problem.units is not None:
        raise ValueError(
            "the problem has groups, bands, hierarchy or signs, which other methods do not know; expected one without "
            "them to compare methods on."
        )
    if problem.ridge or problem.shrinkage:
        raise ValueError(
            f"the problem has a ridge of {problem.ridge or problem.shrinkage:g}, which other methods do not know; "
            "expected one without it to compare methods on."
        )


def _run_all(
    peers: Sequence[Peer], scorer: Scorer, selection: Selection, progress: bool | None
) -> tuple[list[MethodResult], bool]:
    """Results of all methods, and whether Ctrl-C came before the last; then the rest says so."""
    results: list[MethodResult] = []
    with progress_bar("comparing", len(peers), progress) as bar:
        for peer in peers:
            if bar is not None:
                bar.say(peer.title)
            try:
                results.append(_result(peer, scorer, selection))
            except KeyboardInterrupt:
                if all(method.note for method in results):
                    raise
                remaining = [peer_result(each, note="not run: interrupted") for each in peers[len(results) :]]
                return results + remaining, True
            if bar is not None:
                bar(1)
    return results, False


def _result(peer: Peer, scorer: Scorer, selection: Selection) -> MethodResult:
    """The result of a method, or why there is none."""
    if lacking := peer.lacking():
        return peer_result(peer, note=lacking)
    try:
        with warnings.catch_warnings():
            if peer.search is None:
                warnings.simplefilter("ignore")  # the same one from every fold would bury the result
                # Once on a small table, so that nothing that is timed has to be imported or compiled.
                rng = np.random.default_rng(0)
                X = rng.normal(size=(24, 6))
                small = Training(SubsetProblem(X, X[:, 0] + 0.1 * rng.normal(size=24)), np.arange(24))
                with suppress(Exception):  # what is wrong with it is said where it matters
                    if peer.find is not None:
                        peer.find(small.columns, small.target, [1, 2])
                    elif peer.fit is not None:
                        peer.fit(small)
            return scorer.result(peer, selection)
    except Exception as error:
        return peer_result(peer, note=reason(error))
