"""What is plain to see in a table and makes cross validation too optimistic, or its error that of a single row.

Where a row has a near copy among the others (the day before in a time series, a duplicated line of a file), cross
validation does not say how well new rows are predicted; where a column is a copy of the target, nothing was predicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.blas import one_blas_thread
from pairflip.least_squares import SINGULAR, Floats
from pairflip.losses.likelihood import Likelihood
from pairflip.moments import Form
from pairflip.problem import SubsetProblem
from pairflip.projection import column_blocks
from pairflip.search.schedule import forward_energies
from pairflip.selection.folds import Folds
from pairflip.sparse import dense, is_sparse
from pairflip.supports import Ints
from pairflip.text import number, plural, quoted

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

_FEW = 30  # independent rows below which a table is called small
_CLEAR = 3.0  # an autocorrelation is told if so many standard errors above zero: by chance, one table in a thousand
_STRONG = 0.3  # ... and above this
_ALIKE_BY_CHANCE = 0.01  # of a column whose rows are called alike, over the number of such columns
_COPY = 0.9999  # absolute correlation above which a column is called a copy of the target
_NAMED = 3  # copies of the target, and of rows, that a sentence names
_ENOUGH_ROWS = 8  # with fewer, columns of many are that similar to any target by chance
_BLOCK = 2**18  # numbers of the table that are looked at together


def table_facts(
    problem: SubsetProblem, folds: Folds | None = None, groups: NDArray[Any] | None = None
) -> dict[str, Any]:
    """Facts by name, only those that apply.

    ``few_rows`` or, where rows belong together, ``few_groups``: how many there are, where they are few;
    ``autocorrelation``: the correlation of the target with that of the next row, where it is large and the table is not
    merely sorted by the target; ``identical_rows``: how many rows repeat an earlier row, target included;
    ``copied_rows``: the first of these with the rows that they repeat, by index (the command line has names instead);
    ``two_values``: the two values of a target that has no others and is treated as a number; ``stands_for``: how many
    rows and blocks of rows the moments are of, and what was missing. (``p_value``, see
    `shuffled_targets`, and for counts with an offset ``error_of_the_mean`` are added to them in a curve.)
    ``target_copies``: (column, correlation, target) of columns that are a target up to scale and shift, or nearly, on
    all rows and on the training rows of every fold.
    """
    facts: dict[str, Any] = {"target_copies": target_copies(problem, folds)}
    if problem.condensed is not None:  # single rows are not known here
        blocks = np.unique(problem.condensed.block).size
        facts["stands_for"] = {"rows": problem.rows_present, "blocks": blocks, "missing": problem.missing}
        facts |= problem.condensed.facts
        return {name: fact for name, fact in facts.items() if fact}
    several, squared = bool(problem.target_names), problem.loss.squared
    present = problem.sample_weight > 0
    units = int(present.sum()) if groups is None else np.unique(groups[present]).size
    if units < _FEW:
        facts["few_rows" if groups is None else "few_groups"] = units
    facts |= row_facts(problem.X, problem.y, problem.sample_weight, several=several, squared=squared)
    return {name: fact for name, fact in facts.items() if fact}


def row_facts(
    X: Any, y: Floats, weights: Floats | None, *, several: bool = False, squared: bool = True
) -> dict[str, Any]:
    """The facts that need single rows, of those with a weight above zero; `several` targets are looked at together."""
    facts: dict[str, Any] = {}
    present = np.ones(len(y), dtype=bool) if weights is None else weights > 0
    if not present.all():
        X, y = X[present], y[present]
    if not several:
        first = y.reshape(len(y), -1)[:, 0]
        steps, off, values = np.diff(first), first - first.mean(), np.unique(first)
        in_order, r = (steps >= 0).all() or (steps <= 0).all(), float(off[1:] @ off[:-1] / (off @ off))
        if r > max(_CLEAR / np.sqrt(y.size), _STRONG) and not in_order:
            facts["autocorrelation"] = round(r, 3)
        if values.size == 2 and squared:
            facts["two_values"] = values.tolist()
    copies = np.flatnonzero(present)[identical_rows(X, y)]
    return facts | {"identical_rows": len(copies), "copied_rows": copies[:_NAMED].tolist()}


def alike_rows(curve: SizeCurve, labels: Mapping[str, Ints]) -> dict[str, Any]:
    """The column by whose values (codes of the rows) held-out errors are alike, how much, and how many values it has.

    By analysis of variance of what the recommended columns leave; a column that is one of these is not looked at.
    """
    from scipy.special import fdtrc

    if not curve.single_rows or curve.n_outputs > 1 or curve.survival is not None:
        return {}
    size, rows, w = curve.answer.size, curve.held_out_rows, curve.weights
    off = np.bincount(rows, w * (curve.observed - curve.predictions[curve.at(size)])) / np.bincount(rows, w)
    known, found = np.isfinite(off), {}
    chosen = {name.split("=")[0] for name in curve.columns(size)}
    for name in labels.keys() - chosen:
        code = np.unique(labels[name][: off.size][known], return_inverse=True)[1]
        values, n, times = off[known] - off[known].mean(), code.size, np.bincount(code)
        means = np.bincount(code, values) / times
        between, within = float(times @ means**2) / (times.size - 1), float(np.sum((values - means[code]) ** 2))
        within = max(within / (n - times.size), 1e-300)
        typical = (n - float(times @ times) / n) / (times.size - 1)
        if fdtrc(times.size - 1, n - times.size, between / within) < _ALIKE_BY_CHANCE / len(labels):
            found[name] = (between - within) / (between + (typical - 1.0) * within)
    if not found:
        return {}
    name = max(sorted(found), key=lambda each: found[each])
    return {"alike_rows": round(found[name], 3), "alike_by": name, "alike_values": int(np.unique(labels[name]).size)}


def target_copies(problem: SubsetProblem, folds: Folds | None = None) -> list[list[Any]]:
    """[column, correlation, target] of columns that are nearly a target, on all rows and the training rows of folds.

    The target is named where there are several, otherwise empty.
    """
    w = problem.sample_weight
    if problem.rows_present < _ENOUGH_ROWS:
        return []
    Y = problem.y.reshape(problem.n_rows, -1)
    block = max(1, _BLOCK // problem.n_rows)
    starts = range(0, problem.n_columns, block)
    r = np.concatenate([_correlations(dense(problem.X[:, first : first + block]), Y, w) for first in starts])

    def in_every_fold(j: int, t: int) -> bool:
        for rows in () if folds is None else folds.left_out:
            trained = w.copy()
            trained[rows] = 0.0
            if abs(_correlations(dense(problem.X[:, j : j + 1]), Y[:, t : t + 1], trained)[0, 0]) <= _COPY:
                return False
        return True

    return [
        [problem.names[j], round(float(r[j, t]), 6), problem.target_names[t] if problem.target_names else ""]
        for j, t in np.argwhere(np.abs(r) > _COPY).tolist()
        if in_every_fold(j, t)
    ]


def _correlations(X: Floats, Y: Floats, w: Floats) -> Floats:
    """Correlations (N, q) of columns with targets, rows weighted; 0 where one of them does not vary."""
    scaled = []
    for values in (X, Y):
        values = np.asarray(values[w > 0], dtype=np.float64)
        unit = np.max(np.abs(values), axis=0)  # no square overflows
        values = values / np.where(unit > 0, unit, 1.0)
        values = np.sqrt(w[w > 0])[:, None] * (values - np.average(values, axis=0, weights=w[w > 0]))
        norms = np.linalg.norm(values, axis=0)
        norms[norms < 1e-12 * np.sqrt(w.sum())] = np.inf  # rounding errors of a constant
        scaled.append(values / norms)
    return np.asarray(scaled[0].T @ scaled[1])


def copy_words(facts: dict[str, Any]) -> list[str]:
    """The sentence about columns that look like copies of a target, or none."""
    copies = facts.get("target_copies", [])
    if not copies:
        return []
    named = [
        f"{quoted(column)} ({'' if not target else f'of {quoted(target)}, '}correlation {number(r, 6)})"
        for column, r, target in copies[:_NAMED]
    ]
    more = f" and {len(copies) - _NAMED:,} more" if len(copies) > _NAMED else ""
    one = len(copies) == 1
    look, they, them = ("looks like a copy", "it is", "it") if one else ("look like copies", "they are", "them")
    return [
        f"{', '.join(named)}{more} {look} of the target: if {they} not known before the target is, leave {them} out "
        f"(--drop NAME, in Python a table without {them})."
    ]


def imputed_words(facts: dict[str, Any]) -> list[str]:
    """The sentence about missing values that were filled, or none."""
    if "imputed" not in facts:
        return []
    filled = facts["imputed"]
    many, same = plural(int(filled["missing"]), "missing value"), int(filled["same"])
    return [
        f"{many} {'was' if filled['missing'] == 1 else 'were'} filled in; the same columns are the best in {same} of "
        f"{filled['of']} imputations with noise."
    ]


def told_by_the_mean(problem: SubsetProblem, row: Ints) -> Floats | None:
    """What the mean of some rows (with an offset, their mean rate) predicts for each of them; (P, q) of q targets."""
    offset = None if problem.offset is None else problem.offset[row]
    return problem.loss.told_by_the_mean(problem.y[row], problem.sample_weight[row], offset)


def error_of_the_mean(problem: SubsetProblem, row: Ints, without_columns: float) -> float:
    """Mean error (twice cv_error) of rows that are predicted so; where there is no mean, that of no columns."""
    mean = told_by_the_mean(problem, row)
    if mean is None:
        return without_columns
    errors = problem.loss.row_errors(problem.loss.observed(problem.y[row]), mean)
    return float(np.average(errors.reshape(row.size, -1).mean(axis=1), weights=problem.sample_weight[row]))


def separated_folds(curve: SizeCurve, problem: SubsetProblem, folds: Folds) -> dict[str, int]:
    """By size, in how many folds the fit puts every training row into its own class; only where it does in some."""
    fits, separated, loss = curve.fold_fits, {}, problem.loss
    assert fits is not None
    assert isinstance(loss, Likelihood)
    present = np.flatnonzero(problem.sample_weight > 0)
    training = [np.setdiff1d(present, left_out) for left_out in folds.left_out]
    for t, size in enumerate(fits.sizes.tolist()):
        supports, count = curve.fold_supports[curve.at(size)], 0
        for f, rows in enumerate(training):
            eta = problem.values(supports[f], rows) @ fits.coefs[t][f] + fits.intercepts[t, f]
            eta = eta + problem.values(curve.always, rows) @ fits.always_coefs[t][f]
            count += loss.separates(problem.y[rows], eta.reshape(len(eta), -1))
        if count:
            separated[str(size)] = count
    return separated


def identical_rows(X: Any, y: Floats) -> Ints:
    """Rows that equal an earlier one in every column and in the target, and these (n, 2)."""
    weights = np.random.default_rng(0).uniform(1.0, 2.0, X.shape[1])
    mark = np.where(np.isfinite(X @ weights), X @ weights, 0.0)  # equal rows have equal marks; few others do
    order = np.argsort(mark, kind="stable")
    near = np.isclose(mark[order][1:], mark[order][:-1], rtol=1e-9, atol=0.0)
    alike = np.sort(order[np.union1d(np.flatnonzero(near), np.flatnonzero(near) + 1)])
    rows = X[alike].tocsr() if is_sparse(X) else X

    def written(place: int, row: int) -> bytes:
        if not is_sparse(X):
            return np.append(X[row], y[row]).tobytes()
        part = slice(rows.indptr[place], rows.indptr[place + 1])
        return b"".join(each.tobytes() for each in (rows.indices[part], rows.data[part], y[row]))

    first: dict[bytes, int] = {}
    pairs = [(row, first.setdefault(written(place, row), row)) for place, row in enumerate(alike.tolist())]
    return np.array([pair for pair in pairs if pair[0] != pair[1]], dtype=np.int64).reshape(-1, 2)


SHUFFLES, FEWEST_SHUFFLES = 199, 59
_SHUFFLED = 20_000_000  # numbers in all shuffled targets together: of many rows there are fewer shuffles
_BATCH_BYTES = 32 * 2**20  # of targets, or of their products with the columns, that are in memory together
_MOST_STEPS = 6  # of forward selection
_ALIKE = 0.5  # correlation above which columns are averaged
_AVERAGED_STEPS = 3  # of forward selection among averages
_MOST_AVERAGED = 5000  # columns: averages have a matrix of inner products of their own
_BUDGET = 4e9  # multiplications


@one_blas_thread()
def shuffled_targets(form: Form, largest: int, share: float = 1.0) -> float:
    """Fraction of targets (this one and up to `SHUFFLES` shuffled ones) that the columns fit at least as remarkably.

    How remarkable: by what forward selection leaves of the target at each step. Where columns are alike, by what it
    leaves at the last step, and at the first steps among averages of each column and those like it, which show a signal
    that clusters of columns share. The best rank counts, and it is compared with the best ranks of the shuffled
    targets. Several targets are shuffled together. Where rows stand for many others (`share` is their number over that
    of these), columns see as much less of a shuffled target.
    """
    m, n, q, rng = form.n_rows, form.n_columns, len(form.B), np.random.default_rng(0)
    steps = min(_MOST_STEPS, largest, n, m - 1)
    while q == 1 and steps > 1 and SHUFFLES * n * steps * (4.0 * steps + (0 if form.dense else m)) > _BUDGET:
        steps -= 1
    small = q == 1 and form.signs is None and n <= _MOST_AVERAGED and (form.dense or n * n * m <= _BUDGET)
    averages = _averages(form) if small else None
    shuffles = int(np.clip(_SHUFFLED // m, FEWEST_SHUFFLES, SHUFFLES))
    orders = (rng.permutation(m) if at else np.arange(m) for at in range(1 + shuffles))
    energies: list[list[float]] = []
    while targets := [form.targets[order].T for order in islice(orders, max(1, _BATCH_BYTES // (8 * q * max(n, m))))]:
        for products in form.products(np.concatenate(targets)).reshape(len(targets), q, n):
            products *= np.sqrt(share) if energies else 1.0
            path = _path(form, products, steps, form.yy)
            if averages is not None:
                # The more levels there are, the less a good rank at one of them is worth.
                few = min(steps, _AVERAGED_STEPS)
                path = path[-1:] + _path(averages, products @ averages.weights.T, few, form.yy)
            energies.append(path)
    # Targets that are fitted equally well share the worse rank, whatever rounding says (1e-9).
    levels = np.array(energies).T
    ranks = np.stack([np.searchsorted(np.sort(level), level * (1 + 1e-9), side="right") for level in levels])
    best = ranks.min(axis=0)
    return float(np.mean(best <= best[0]))


class _Averages(NamedTuple):
    """Averages of columns that are alike, with what forward selection asks of a form."""

    weights: Floats  # (N, N) of the columns in each
    matrix: Floats  # (N, N) inner products of the averages
    diagonal: Floats
    signs: None = None

    def row(self, j: int) -> Floats:
        return np.asarray(self.matrix[j])


def _averages(form: Form) -> _Averages | None:
    """Each column averaged with those it is correlated with by more than `_ALIKE`; None where there are none."""
    n = form.n_columns
    if form.dense:
        products = form.matrix.copy()
        products.flat[:: n + 1] -= form.penalty
    else:
        parts = (np.arange(n)[part] for part in column_blocks(form.n_rows, n))
        products = np.vstack([form.products(form.columns_of(part)) for part in parts])
    norms = np.diag(products)
    unit = np.where(norms > SINGULAR, 1.0 / np.sqrt(np.maximum(norms, SINGULAR)), 0.0)

    def correlations(part: slice) -> Floats:
        """Rows of the matrix of correlations, zero where columns are not alike."""
        rows = products[part] * unit * unit[part, None]
        rows[np.abs(rows) < _ALIKE] = 0.0
        return np.asarray(rows)

    blocks = column_blocks(n, n)
    if sum(np.count_nonzero(correlations(part)) for part in blocks) <= 1.1 * n:
        return None
    weights = np.vstack([correlations(part) for part in blocks]) * unit
    # Inner products of averages are those of two factors; of few rows, the averages themselves take far less time.
    if form.n_rows < n:
        left = right = weights @ form.columns_of(np.arange(n))
    else:
        left, right = weights @ products, weights
    norms = np.sqrt(np.maximum(np.einsum("ij,ij->i", left, right), 1e-300))
    matrix = left @ right.T / norms / norms[:, None]
    return _Averages(weights / norms[:, None], matrix, np.ones(n))


def _path(form: Any, products: Floats, steps: int, yy: float) -> list[float]:
    """Energies after each step of forward selection, relative to the start; where no column is left, they stay."""
    energies = forward_energies(form, steps, products, yy)
    energies += energies[-1:] * (steps + 1 - len(energies))
    return [energy / max(energies[0], 1e-300) for energy in energies[1:]]
