"""`compare`: every method on the same folds of one table, one thread each; what fails is a row that says so.

A method works in every fold and on all rows, timed; then come its held-out errors, its size, its distance from ours.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import pairflip
import pairflip.comparison.peers  # registers the methods that come with the package
from pairflip.blas import one_blas_thread
from pairflip.comparison.record import Comparison, MethodResult, MethodSize
from pairflip.comparison.registry import Model, Peer, PeerFailed, Training, chosen_peers
from pairflip.least_squares import Floats, qr_energy
from pairflip.losses.held_out import mean_and_error
from pairflip.problem import SubsetProblem
from pairflip.progress import progress_bar
from pairflip.selection import Selection, SizeCurve
from pairflip.selection.folds import Folds
from pairflip.selection.tasks import plan_work
from pairflip.sparse import dense, is_sparse
from pairflip.supports import Ints
from pairflip.text import numbered, one_line, shorten

_OURS = ("normal", "thorough", "quick")  # which of ours others are compared with: the first that has a result
_ROUNDING = 1e-9  # of our error: smaller differences come from rounding


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


def reason(error: Exception) -> str:
    """Why a method failed, on one line."""
    if isinstance(error, PeerFailed):
        return shorten(one_line(str(error)), 200)
    if isinstance(error, MemoryError):
        return "failed: not enough memory"
    text = one_line(str(error)) or "without a message"
    return shorten(f"failed: {type(error).__name__}: {text}", 200)


@dataclass(frozen=True)
class CommonGround:
    """What all methods are compared on: table, folds, sizes; `cv`, `groups` and `seed` as in `compare`."""

    problem: SubsetProblem
    folds: Folds
    sizes: tuple[int, ...]
    seed: int = 0
    cv: Any = 10
    groups: ArrayLike | None = None

    def training(self, fold: int) -> Training:
        """The rows that a fold learns from, those with a weight above zero; after the last fold, all rows."""
        rows, problem = np.flatnonzero(self.problem.sample_weight > 0), self.problem
        if fold < len(self.folds):
            rows = np.setdiff1d(rows, self.folds.left_out[fold])
            problem = problem.in_fold(self.folds.left_out[fold])
        groups = None if self.groups is None else np.asarray(self.groups)
        return Training(problem, rows, self.seed, self.cv, groups)

    @contextmanager
    def learning(self, fold: int) -> Iterator[Training]:
        """`training`, where whatever goes wrong ends the method with `PeerFailed`, which names the fold."""
        try:
            yield self.training(fold)
        except Exception as error:
            raise PeerFailed(f"{reason(error)} ({self.where(fold)})") from error

    def where(self, fold: int) -> str:
        """What a reader is told of a fold."""
        return numbered("fold", fold) if fold < len(self.folds) else "all rows"


@dataclass(frozen=True)
class FoundSupports:
    """Supports of a method in columns of the table, by size."""

    folds: dict[int, Ints]  # (F, k), those of the folds
    final: dict[int, Ints]  # (k,), that of all rows
    lacking: dict[int, str]  # why a size has none
    seconds: dict[int, float]  # CPU seconds of each size (of all sizes, where they come from one path)


def find_supports(peer: Peer, ground: CommonGround) -> FoundSupports:
    """Supports of all sizes in every fold and on all rows; a size that a fold lacks is lacking as a whole."""
    assert peer.find is not None
    sizes = ground.sizes
    per_fold: dict[int, list[Ints]] = {size: [] for size in sizes}
    lacking: dict[int, str] = {}
    seconds = dict.fromkeys(sizes, 0.0)
    for fold in range(len(ground.folds) + 1):
        supports: dict[int, Any] = {}
        with ground.learning(fold) as training:
            began = time.process_time()
            candidates = training.projected.candidates
            shared = time.process_time() - began
            for part in [list(sizes)] if peer.path else [[size] for size in sizes]:
                began = time.process_time()
                by_size: Any = peer.find(training.columns, training.target, part)
                took = time.process_time() - began
                if not isinstance(by_size, Mapping):
                    raise PeerFailed(f"returned a {type(by_size).__name__}; expected a dictionary of positions by size")
                supports.update(by_size)
                for size in part:
                    seconds[size] += shared + took
        for size in sizes:
            if wrong := _wrong(supports.get(size), size, training):
                lacking.setdefault(size, f"{wrong} ({ground.where(fold)})")
            else:
                per_fold[size].append(candidates[np.unique(supports[size])])
    complete = [size for size in sizes if size not in lacking]
    return FoundSupports(
        {size: np.stack(per_fold[size][:-1]) for size in complete},
        {size: per_fold[size][-1] for size in complete},
        lacking,
        seconds,
    )


def _wrong(positions: Any, size: int, training: Training) -> str:
    """What is wrong with the positions of a support; empty if nothing is."""
    if positions is None:
        return f"found no {size} columns"
    support = np.unique(np.asarray(positions))
    if support.size != size or not np.issubdtype(support.dtype, np.integer):
        return f"returned {support.size} different columns for size {size}"
    if support[0] < 0 or support[-1] >= training.columns.shape[1]:
        return f"returned positions that are not columns for size {size}"
    if not np.isfinite(qr_energy(training.columns[:, support], training.target, np.zeros(size))):
        return f"chose {size} columns that depend on each other"
    return ""


def fit_models(peer: Peer, ground: CommonGround) -> tuple[Floats, MethodSize]:
    """Residuals (P,) of the rows that each fold holds out, and what the fits of the folds and of all rows give."""
    assert peer.fit is not None
    problem, folds = ground.problem, ground.folds
    residuals, training_errors, seconds = np.empty(folds.row.size), [], 0.0
    for fold in range(len(folds) + 1):
        with ground.learning(fold) as training:
            began = time.process_time()
            model = peer.fit(training)
            seconds += time.process_time() - began
            energy = 0.5 * float(training.weight @ (training.y - _predicted(model, training.X)) ** 2)
            if fold < len(folds):
                rows = folds.rows[fold]
                new = np.asarray(dense(training.problem.X[rows]), dtype=np.float64)
                residuals[folds.places[fold]] = problem.y[rows] - _predicted(model, new)
                training_errors.append(energy / training.rows.size)
    used = () if model.columns is None else tuple(model.columns.tolist())
    per_row = float(np.mean(training_errors))
    row = MethodSize(None, energy_per_row=per_row, energy=energy, seconds=seconds, columns=used, detail=model.detail)
    return residuals, row


def _predicted(model: Model, X: Floats) -> Floats:
    """Predictions of a model, refused where they are not one finite number for each row."""
    values = np.asarray(model.predict(X), dtype=np.float64)
    if values.shape != (len(X),):
        raise PeerFailed(f"predicted an array of shape {values.shape} for {len(X)} rows")
    if not np.isfinite(values).all():
        raise PeerFailed("predicted something that is not a finite number")
    return values


class Scorer:
    """Makes results of what methods find on the same ground."""

    def __init__(self, ground: CommonGround) -> None:
        self._ground = ground
        self._judge = ground.problem.loss.held_out(ground.problem, ground.folds)
        self._weights, self._unit = ground.problem.sample_weight[ground.folds.row], ground.folds.unit
        self._learned = np.array([ground.problem.rows_present - rows.size for rows in ground.folds.left_out])
        y = ground.problem.y[ground.folds.row]
        self.variance = 0.5 * float(np.average((y - np.average(y, weights=self._weights)) ** 2, weights=self._weights))
        self.without = self._judge.without_columns()  # residuals (P,) of held-out rows without columns
        self.residuals: dict[str, Floats] = {}  # of every method at the size it would choose

    def error(self, squares: Floats) -> tuple[float, float]:
        """Half the mean of squared errors (P,), rows weighted, and its standard error."""
        mean, error = mean_and_error(squares[None], self._weights, self._unit)
        return float(mean[0]), float(error[0])

    def result(self, peer: Peer, selection: Selection) -> MethodResult:
        """Run a method; what it cannot do it says with `PeerFailed`, or any other exception."""
        if peer.search is not None:
            curve, seconds = peer.search(self._ground.problem, selection, self._ground.groups)
            return self._of_sizes(peer, *_curve_rows(curve, seconds), seconds)
        if peer.find is not None:
            return self._of_supports(peer)
        residuals, row = fit_models(peer, self._ground)
        self.residuals[peer.name] = residuals
        error, spread = self.error(residuals**2)
        rows = (replace(row, cv_error=error, cv_error_se=spread),)
        result = peer_result(peer, rows=rows, cv_error=error, cv_error_se=spread, seconds=row.seconds)
        return replace(result, path=False)

    def _of_supports(self, peer: Peer) -> MethodResult:
        """Supports are fitted by least squares on the training rows of their folds, as ours are."""
        ground, rows, residuals = self._ground, [], {}
        supports = find_supports(peer, ground)
        for size in ground.sizes:
            if size in supports.lacking:
                rows.append(MethodSize(size, seconds=supports.seconds[size], note=supports.lacking[size]))
                continue
            by_chain, energies = self._judge.judged(supports.folds[size][:, None, :])
            residuals[size] = by_chain[0]
            energy_per_row = float(np.mean(energies[:, 0] / self._learned))
            support, seconds = supports.final[size], supports.seconds[size]
            energy, columns = ground.problem.fit(support).energy, tuple(support.tolist())
            error, spread = self.error(by_chain[0] ** 2)
            rows.append(MethodSize(size, error, spread, energy_per_row, energy, seconds, columns=columns))
        total = supports.seconds[ground.sizes[0]] if peer.path else sum(supports.seconds.values())
        return self._of_sizes(peer, rows, residuals, total)

    def _of_sizes(
        self, peer: Peer, rows: Sequence[MethodSize], residuals: Mapping[int, Floats], seconds: float
    ) -> MethodResult:
        """The size with the lowest error, none at all among them; of two equal ones the smaller."""
        result = peer_result(peer, rows=tuple(rows), seconds=seconds)
        errors = {row.size or 0: (row.cv_error, row.cv_error_se) for row in rows if not row.note}
        if not errors:
            return replace(result, note=rows[0].note)
        errors[0] = self.error(self.without**2)
        chosen = min(errors, key=lambda size: (errors[size][0], size))
        self.residuals[peer.name] = residuals[chosen] if chosen else self.without
        return replace(result, chosen=chosen, cv_error=errors[chosen][0], cv_error_se=errors[chosen][1])

    def beside(self, method: MethodResult, ours: MethodResult) -> MethodResult:
        """A method with its distance from ours: difference of errors, shared columns."""
        if method.name not in self.residuals:
            return method
        difference, error = self.error(self.residuals[method.name] ** 2 - self.residuals[ours.name] ** 2)
        if error <= _ROUNDING * ours.cv_error and abs(difference) <= _ROUNDING * ours.cv_error:  # the same columns
            difference, error = 0.0, 0.0
        rows = []
        for row in method.rows:
            same = ours.at(row.size if row.size is not None else ours.chosen or 0)
            if same is not None and same.columns and row.columns:
                row = replace(row, overlap=float(np.isin(same.columns, row.columns).mean()))
            rows.append(row)
        return replace(method, rows=tuple(rows), difference=difference, difference_se=error)


def peer_result(peer: Peer, **values: Any) -> MethodResult:
    """The record of a method, called and described as it is."""
    return MethodResult(peer.name, peer.title, peer.about, path=peer.path, **values)


def _curve_rows(curve: SizeCurve, seconds: float) -> tuple[list[MethodSize], dict[int, Floats]]:
    """Our rows, exactly as the curve has them, and residuals of held-out rows by size."""
    rows, residuals = [], {}
    for at, size in enumerate(curve.sizes.tolist()):
        if size == 0:
            continue
        error, spread, train, energy = (
            float(of[at]) for of in (curve.cv_error, curve.cv_error_se, curve.energy_per_row, curve.energies)
        )
        rows.append(MethodSize(size, error, spread, train, energy, seconds, columns=tuple(curve.supports[at].tolist())))
        residuals[size] = curve.observed - curve.predictions[at]
    return rows, residuals
