r"""Held-out errors, training energies and coefficients of supports in folds.

For squared error (`HeldOutErrors`), every (fold, support) is fitted on the training rows of the fold by subtraction
(`held_out_kernel`); where the held-out rows hold most of a column, or columns are dependent without them, the support
is fitted again on the remaining rows. Other energies are always fitted on the remaining rows (`FoldByFold`). Where
preprocessing is fitted in every fold, the judge of each fold's table is asked (`JudgeInFolds`).
Errors are in units of the targets' standard deviations on the training rows where targets are scaled. Predictions of
one row stand together, target by target; nothing knows of the held-out rows before they are predicted.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats, qr_several
from pairflip.losses.base import Fit, FoldCoefficients, HeldOutJudge
from pairflip.losses.bases import UnitForm
from pairflip.losses.influence import pseudo_inverse
from pairflip.losses.squares import SquaredError, constants, project_rows
from pairflip.moments import TRUSTED, Form, TrainingForm, spread
from pairflip.projection import column_blocks
from pairflip.supports import ABSENT, distinct_supports

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

Ints = NDArray[np.int64]
_BYTES = 256 * 2**20  # of the columns of a wide table that are looked at together
_FORMED = 500  # columns whose matrix is formed whatever the supports are


class _Solved(NamedTuple):
    """P pairs of fold and support."""

    x: Floats  # (P, q, n), as in the kernel
    g: Floats  # (P, q, f), as in the kernel
    energy: Floats  # (P,)
    residual: Floats  # (q, .): of the rows left out, from at[p] on
    at: Ints  # (P,)
    alone: dict[int, tuple[Fit, Floats]]  # the pairs that were fitted again, with their residuals (h, q)


class HeldOutErrors(HeldOutJudge):
    """Errors of held-out rows in squared error.

    `means` and `scales` (F, q) are those of the targets on the training rows; `observed` (P q,) the targets of the
    held-out rows, of several targets less their mean and divided by their scale.
    """

    def __init__(self, problem: SubsetProblem, folds: Folds) -> None:
        loss, form = problem.loss, problem.form
        assert isinstance(loss, SquaredError)
        self._problem, self._folds, self._several = problem, folds, loss.several
        base = self._base = form.base if isinstance(form, TrainingForm) else form
        ridge_rows = np.zeros((len(base.targets) - problem.n_rows, problem.forced_basis.shape[1]))
        self._basis: Floats = np.vstack([problem.forced_basis, ridge_rows])
        self._rows = np.concatenate(folds.left_out).astype(np.int64)
        self._start = np.concatenate([[0], np.cumsum([rows.size for rows in folds.left_out])]).astype(np.int64)
        w, Y, f = problem.sample_weight, problem.targets, problem.forced_basis.shape[1]
        both = np.hstack([self._basis, base.targets])
        moments, middle = self._moments(both, both), w @ Y / float(w.sum())
        K, V = np.eye(f) - moments[:, :f, :f], moments[:, :f, f:]
        whole = np.linalg.eigvalsh(K).min(axis=1, initial=1.0) >= TRUSTED
        self._K = np.linalg.inv(np.where(whole[:, None, None], K, np.eye(f)))
        self._R = np.ascontiguousarray(np.linalg.cholesky(self._K).transpose(0, 2, 1))
        squares = base.squares - np.diagonal(moments, axis1=1, axis2=2)[:, f:]
        self._squares = np.ascontiguousarray(squares - np.einsum("naq,nab,nbq->nq", V, self._K, V))
        self._trusted: NDArray[np.bool_] = whole & np.all(self._squares >= TRUSTED * base.squares, axis=1)
        sums = self._moments(np.ones((w.size, 1)), np.hstack([w[:, None], w[:, None] * (Y - middle)]))[:, 0]
        weight = float(w.sum()) - sums[:, :1]
        self._relative = np.sqrt(np.maximum(self._squares, 0.0) / weight) if loss.scaled else np.ones(sums[:, 1:].shape)
        self._relative[self._relative == 0] = 1.0
        self.means: Floats = middle - sums[:, 1:] / weight
        self.scales: Floats = base.target_scale * self._relative
        self.yy: Floats = np.sum(self._squares / self._relative**2, axis=1)
        for fold in np.flatnonzero(~self._trusted).tolist():
            kept = self._kept(fold)
            targets = project_rows(problem, kept, problem.always).targets
            squares, total = np.einsum("mq,mq->q", targets, targets), float(w[kept].sum())
            self.scales[fold] = spread(squares, total if loss.scaled else None)
            self.means[fold] = w[kept] @ Y[kept] / total
            self.yy[fold] = np.sum(squares / self.scales[fold] ** 2)
        self.observed: Floats = Y[folds.row].ravel()
        if loss.several:
            self.observed = ((Y[folds.row] - self.means[folds.fold]) / self.scales[folds.fold]).ravel()

    def _moments(self, a: Floats, b: Floats) -> Floats:
        """The sums (F, n, p) of a' b over the rows left out of each fold, for a (M, n) and b (M, p)."""
        if np.all(np.diff(self._start) == 1):
            return np.asarray(a[self._rows][:, :, None] * b[self._rows][:, None, :])
        return np.stack([a[rows].T @ b[rows] for rows in self._folds.left_out])

    def _kept(self, fold: int) -> Ints:
        """The training rows of a fold."""
        return np.delete(np.arange(self._problem.n_rows), self._folds.left_out[fold])

    def judged(self, supports: Ints) -> tuple[Floats, Floats]:
        """Observed minus predicted (C, P q) and training energies (F, C) of supports (F, C, k); equal ones once."""
        folds, chains, k = supports.shape
        in_fold = np.column_stack([supports.reshape(folds * chains, k), np.repeat(np.arange(folds), chains)])
        pairs, _, pair, _ = distinct_supports(in_fold)
        solved, pair = self._solve(pairs[:, -1], pairs[:, :-1]), pair.reshape(folds, chains)
        row, fold, pick = self._folds.row, self._folds.fold, self._pick
        unit = np.sqrt(self._problem.sample_weight[row])[:, None] * self._relative[fold]
        result = np.empty((chains, row.size, unit.shape[1]))
        for c in range(chains):
            result[c] = solved.residual[:, solved.at[pair[fold, c]] + pick].T / unit
        for p, (_, residual) in solved.alone.items():
            f = int(pairs[p, -1])
            place = self._folds.places[f]
            result[pair[f] == p, place] = residual[pick[place]] / (self.scales[f] if self._several else 1.0)
        return result.reshape(chains, -1), solved.energy[pair]

    def energies(self, fold: Ints, supports: Ints) -> Floats:
        """Energies (n,) of supports (n, k), each on the training rows of one fold; infinite where it is singular."""
        pairs, _, pair, _ = distinct_supports(np.column_stack([supports, fold]))
        return np.asarray(self._solve(pairs[:, -1], pairs[:, :-1]).energy[pair])

    def fits(self, supports: Ints) -> FoldCoefficients:
        """What the folds predict with: coefficients of supports (F, k), each on the training rows of its fold."""
        problem, base = self._problem, self._base
        coefs = np.zeros((*supports.shape, base.target_scale.size))
        if problem.units is None:
            solved = self._solve(np.arange(len(supports)), supports)
            scale = problem.scale[np.searchsorted(problem.candidates, supports)] / np.sqrt(1.0 + problem.shrinkage)
            coefs = solved.x.transpose(0, 2, 1) / scale[:, :, None] * base.target_scale
        else:  # columns of whole groups, fewer in some folds than in others
            units = [problem.units.units_of(row[row != ABSENT]) for row in supports]
            solved = self._solve(np.arange(len(supports)), np.stack(units))
            for fold, chosen in enumerate(units):
                at = base.positions(chosen)
                x = solved.x[fold, :, : base.places(at).size].T
                coef = base.coefficients(at, x, problem.scale)[1] * base.target_scale
                coefs[fold, supports.shape[1] - len(coef) :] = coef
            supports = np.where(supports == ABSENT, 0, supports)  # with the coefficient 0
        # Of what is always in the model: as fitted to the targets, less what the chosen columns share with it.
        z = np.einsum("af,nqf->naq", self._to_forced @ problem.forced_basis, solved.g * base.target_scale[:, None])
        if problem.always.size:
            used, at = np.unique(supports, return_inverse=True)
            z += self._share(problem.targets, problem.target_means)
            shared = np.empty((len(z[0]), used.size))
            for part in column_blocks(problem.n_rows, used.size):
                shared[:, part] = self._share(problem.values(used[part]), problem.means[used[part]])
            z -= np.einsum("ank,nkq->naq", shared[:, at.reshape(supports.shape)], coefs)
        first = int(problem.center == "fold")
        always_coefs = z[:, first:] / problem.powers[:, None]
        intercepts = problem.target_means - np.einsum("nk,nkq->nq", problem.means[supports], coefs)
        intercepts = intercepts - np.einsum("a,naq->nq", problem.means[problem.always], always_coefs)
        if first:
            intercepts += z[:, 0]
        for fold, (fit, _) in solved.alone.items():
            coefs[fold, coefs.shape[1] - len(fit.coef) :] = fit.coef
            always_coefs[fold], intercepts[fold] = fit.always_coef, fit.intercept
        if self._several:
            return FoldCoefficients(coefs, always_coefs, intercepts)
        return FoldCoefficients(coefs[:, :, 0], always_coefs[:, :, 0], intercepts[:, 0])

    def row_errors(self, residuals: Floats) -> Floats:
        """Squared errors."""
        return np.asarray(residuals**2)

    @cached_property
    def _pick(self) -> Ints:
        """Where each predicted row (P,) stands among the rows left out of its fold."""
        pairs = zip(self._folds.left_out, self._folds.rows, strict=True)
        return np.concatenate([np.searchsorted(left_out, predicted) for left_out, predicted in pairs])

    @cached_property
    def _to_forced(self) -> Floats:
        """The pseudo-inverse (f, M) of the forced columns."""
        return pseudo_inverse(self._problem.forced)

    def _share(self, values: NDArray[Any], means: Floats) -> Floats:
        """What forced columns explain (f, n) of columns (M, n) of the table."""
        return np.asarray(self._to_forced @ (np.sqrt(self._problem.sample_weight)[:, None] * (values - means)))

    def _solve(self, fold: Ints, supports: Ints) -> _Solved:
        """Fit supports (P, k), each on the training rows of its fold (P,); neighbours that are equal share work."""
        from pairflip.losses.held_out_kernel import Left, Rows, solve_pairs  # compiled

        problem, base, pairs = self._problem, self._base, len(supports)
        q, f = base.targets.shape[1], problem.forced_basis.shape[1]
        at_units = base.positions(supports)
        width = base.widths[at_units].sum(axis=1) if base.grouped else np.full(pairs, supports.shape[1])
        size = self._start[fold + 1] - self._start[fold]
        begin = (np.cumsum(size) - size).astype(np.int64)
        x, g = np.zeros((pairs, q, int(width.max(initial=0)))), np.zeros((pairs, q, f))
        energy = np.full(pairs, -1.0)
        residual = np.zeros((q, int(size.sum())))
        left_out = Left(self._rows, self._start, self._K, self._R, 1.0 / self._relative**2, self._squares)
        common = np.ascontiguousarray(base.targets.T), np.ascontiguousarray(self._basis.T)
        trusted = self._trusted[fold]
        if base.grouped and problem.shrinkage:  # in units of columns whose norms are those of the training rows
            trusted = np.zeros(pairs, dtype=bool)
        for n in np.unique(width[trusted]).tolist():
            for part in self._parts(np.flatnonzero(trusted & (width == n)), supports):
                columns = [base.places(at) for at in at_units[part]] if base.grouped else at_units[part]
                Z, G, B, penalty, places = self._columns(np.reshape(columns, (part.size, n)).astype(np.int64))
                data = Rows(Z, G, B, *common, penalty, problem.shrinkage, TRUSTED)
                answers = np.empty((part.size, q, n)), np.empty((part.size, q, f)), np.empty(part.size)
                solve_pairs(data, left_out, fold[part], places, *answers, residual, begin[part])
                x[part, :, :n], g[part], energy[part] = answers
        alone = {int(p): self._fit_alone(int(fold[p]), supports[p]) for p in np.flatnonzero(energy < 0)}
        for p, (fit, _) in alone.items():
            energy[p] = fit.energy
        return _Solved(x, g, energy, residual, begin, alone)

    def _parts(self, pairs: Ints, supports: Ints) -> list[Ints]:
        """Some pairs, in parts whose columns and their products may be formed."""
        if self._formed or pairs.size <= 1:
            return [pairs] if pairs.size else []
        columns = np.unique(supports[pairs]).size
        if 8 * columns * (columns + self._problem.n_rows) <= _BYTES:
            return [pairs]
        half = pairs.size // 2
        return self._parts(pairs[:half], supports) + self._parts(pairs[half:], supports)

    @property
    def _formed(self) -> bool:
        """Whether columns and matrix of all candidates are at hand, or the matrix is formed in no time."""
        base = self._base
        small = base.dense and (base.n_columns <= _FORMED or base.n_rows > base.n_columns)
        return "columns" in base.__dict__ and ("matrix" in base.__dict__ or small)

    def _columns(self, places: Ints) -> tuple[Floats, Floats, Floats, Floats, Ints]:
        """Columns (n, M), G (n, n), B (q, n), penalties (n,) and positions (P, k) among these."""
        base = self._base
        if self._formed:
            return base.columns, base.matrix, base.B, base.penalty, places
        used, at = np.unique(places, return_inverse=True)
        Z = np.ascontiguousarray(base.columns_of(used))
        G = Z @ Z.T
        np.fill_diagonal(G, 1.0)
        return Z, G, np.ascontiguousarray(base.B[:, used]), base.penalty[used], at.reshape(places.shape)

    def _fit_alone(self, fold: int, support: Ints) -> tuple[Fit, Floats]:
        """A support on the training rows of a fold, from these rows alone, and its residuals (h, q) on the others.

        A column that is constant there has the coefficient 0. Where columns are dependent there, the coefficients are
        the smallest ones (of scaled columns), and the energy is infinite.
        """
        problem, a, scale = self._problem, self._problem.always.size, self.scales[fold]
        units, support = support.size, problem.columns_of(support)
        kept, columns = self._kept(fold), np.concatenate([problem.always, support]).astype(np.int64)
        inside = project_rows(problem, kept, columns)
        form = Form(inside.columns, inside.targets / scale, inside.penalty, columns[inside.candidates], dense=True)
        if problem.units is not None and form.n_columns:
            form = UnitForm(form, problem.units)
        solution = qr_several(form.columns.T, form.targets, form.penalty)
        if solution is None:
            rows = np.vstack([form.columns.T, np.diag(np.sqrt(form.penalty))])
            zeros = np.zeros((form.penalty.size, scale.size))
            x, energy = np.linalg.lstsq(rows, np.vstack([form.targets, zeros]), rcond=None)[0], np.inf
        else:
            x, energy = solution[0], float(solution[1].sum()) if form.n_columns == units else np.inf
        coef = np.zeros((support.size, scale.size))
        at, of_form = form.coefficients(np.arange(form.n_columns), x, inside.scale)
        coef[inside.candidates[at] - a] = of_form * scale
        always_coef, intercept, constant = constants(problem, kept, support, coef, inside)
        held_out = self._folds.left_out[fold]
        centred = problem.values(columns, held_out) - inside.means
        residual = problem.targets[held_out] - inside.target_means - constant
        residual -= centred[:, a:] @ coef + centred[:, :a] @ always_coef
        return Fit(support, coef, intercept, always_coef, energy), residual


class FoldByFold(HeldOutJudge):
    """Errors of held-out rows by `loss.fit_rows` on the training rows of a fold, once for all chains that chose it."""

    def __init__(self, problem: SubsetProblem, folds: Folds) -> None:
        self._problem, self._folds = problem, folds
        self._loss: Any = problem.loss
        self._kept = [np.delete(np.arange(problem.n_rows), rows) for rows in folds.left_out]
        self._fits: dict[tuple[int, bytes], tuple[Fit, Any]] = {}
        self.observed = self._loss.observed(problem.y[folds.row]).ravel()

    @cached_property
    def yy(self) -> Floats:  # type: ignore[override]
        """Twice the energies (F,) without chosen columns."""
        return 2.0 * self.judged(np.zeros((len(self._kept), 1, 0), dtype=np.int64))[1][:, 0]

    def _fit(self, fold: int, columns: Ints) -> tuple[Fit, Any]:
        """The fit of some columns on the training rows of a fold, made once: errors and coefficients both need it."""
        key = fold, columns.tobytes()
        if key not in self._fits:
            self._fits[key] = self._loss.fit_rows(self._problem, self._kept[fold], columns)
        return self._fits[key]

    def _eta(self, fold: int, columns: Ints) -> Floats:
        """Linear predictors of the held-out rows of a fold, without offsets."""
        problem, rows = self._problem, self._folds.rows[fold]
        fit, _ = self._fit(fold, columns)
        eta = fit.intercept + problem.values(problem.always, rows) @ fit.always_coef
        return np.asarray(eta + problem.values(columns, rows) @ fit.coef)

    def _judge(self, fold: int, support: Ints) -> tuple[Floats, float]:
        """Observed minus predicted on the held-out rows of a fold, and the energy of the support on the others."""
        problem, rows = self._problem, self._folds.rows[fold]
        columns = problem.columns_of(support)
        fit, baseline = self._fit(fold, columns)
        eta = self._eta(fold, columns)
        if problem.offset is not None:
            eta = eta + problem.offset[rows]
        y = problem.y[rows]
        return np.asarray(self._loss.observed(y) - self._loss.expected(y, eta, baseline)).ravel(), fit.energy

    def judged(self, supports: Ints) -> tuple[Floats, Floats]:
        """Observed minus predicted (C, P q) and training energies (F, C) of supports (F, C, k)."""
        residuals, energies = [], np.empty(supports.shape[:2])
        for fold, chosen in enumerate(supports):
            distinct, _, number, _ = distinct_supports(chosen)
            judged = [self._judge(fold, support) for support in distinct]
            residuals.append(np.stack([residual for residual, _ in judged])[number])
            energies[fold] = np.array([energy for _, energy in judged])[number]
        return np.hstack(residuals), energies

    def fits(self, supports: Ints) -> FoldCoefficients:
        """Coefficients of columns (F, k), each on the training rows of its fold; 0 for those that are absent."""
        fits = [self._fit(fold, columns[columns != ABSENT])[0] for fold, columns in enumerate(supports)]
        coefs = np.zeros((*supports.shape, *fits[0].coef.shape[1:]))
        coefs[supports != ABSENT] = np.concatenate([fit.coef for fit in fits])
        intercepts = np.stack([np.asarray(fit.intercept, dtype=float) for fit in fits])
        return FoldCoefficients(coefs, np.stack([fit.always_coef for fit in fits]), intercepts)

    def predictors(self, supports: Ints) -> Floats:
        """Linear predictors (P,) of the held-out rows by columns (F, n); -1 stands for none."""
        return np.concatenate([self._eta(fold, columns[columns != ABSENT]) for fold, columns in enumerate(supports)])


class JudgeInFolds(HeldOutJudge):
    """Errors of held-out rows where every fold has a table of its own (`SubsetProblem.in_fold`), for any loss.

    What a fold chose is fitted and judged on the fold's table. Coefficients (`fits`) are those of the same training
    rows on the table that all rows led to, since that is how new rows will be preprocessed.
    """

    def __init__(self, problem: SubsetProblem, folds: Folds) -> None:
        self._problem, self._folds = problem, folds
        self._whole = problem.loss.judge(problem, folds)
        if problem.target_names:
            self.means, self.scales = self._joined("means"), self._joined("scales")

    def _of(self, fold: int) -> Any:
        """The judge of one fold."""
        part = self._problem.in_fold(self._folds.left_out[fold])
        return part.loss.judge(part, self._folds.some([fold]))

    def _joined(self, name: str) -> Floats:
        """What the judges of all folds have under a name, one after the other."""
        return np.concatenate([getattr(self._of(fold), name) for fold in range(len(self._folds))])

    @cached_property
    def yy(self) -> Floats:  # type: ignore[override]
        """Twice the energies (F,) without chosen columns."""
        return self._joined("yy")

    @cached_property
    def observed(self) -> Floats:  # type: ignore[override]
        """What predictions are compared with (P q,)."""
        return self._joined("observed")

    def judged(self, supports: Ints) -> tuple[Floats, Floats]:
        """Observed minus predicted (C, P q) and training energies (F, C) of supports (F, C, k)."""
        judged = [self._of(fold).judged(chosen[None]) for fold, chosen in enumerate(supports)]
        return np.hstack([residuals for residuals, _ in judged]), np.vstack([energies for _, energies in judged])

    def energies(self, fold: Ints, supports: Ints) -> Floats:
        """Energies (n,) of supports (n, k), each on the training rows of one fold; infinite where it is singular."""
        energies = np.empty(len(supports))
        for number in np.unique(fold).tolist():
            at = np.flatnonzero(fold == number)
            energies[at] = self._of(number).energies(np.zeros(at.size, np.int64), supports[at])
        return energies

    def fits(self, supports: Ints) -> FoldCoefficients:
        """Coefficients of columns (F, n) of the table of all rows, each on the training rows of its fold."""
        return self._whole.fits(supports)

    def predictors(self, supports: Ints) -> Floats:
        """Linear predictors (P,) of the held-out rows by columns (F, n), in the tables of their folds."""
        return np.concatenate([self._of(fold).predictors(chosen[None]) for fold, chosen in enumerate(supports)])

    def row_errors(self, residuals: Floats) -> Floats:
        """What each held-out row adds to twice cv_error."""
        return self._whole.row_errors(residuals)


def mean_and_error(squares: Floats, weights: Floats, unit: NDArray[np.int64]) -> tuple[Floats, Floats]:
    r"""Half the mean square :math:`\frac12 \sum w r^2 / \sum w` (S,) of `squares` (S, P) and its standard error.

    The error comes from the spread of the means of independent units (rows, or groups of rows that belong together; a
    row that is predicted several times counts once): :math:`\sqrt{\sum_u W_u (m_u - m)^2 / (W (U - 1))}`.
    """
    n_units = int(unit.max()) + 1
    total = np.bincount(unit, weights, n_units)
    sums = np.stack([np.bincount(unit, weights * row, n_units) for row in squares])
    mean = sums.sum(axis=1) / total.sum()
    variance = (total * (sums / total - mean[:, None]) ** 2).sum(axis=1) / total.sum() / (n_units - 1)
    error = np.sqrt(variance)
    return 0.5 * mean, 0.5 * np.where(error > 1e-14 * np.abs(mean), error, 0.0)  # below it, rounding of equal errors
