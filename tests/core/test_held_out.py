"""Forms of training rows and errors of held-out rows are those of literal refits, for every kind of squared error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from pairflip import SubsetProblem
from pairflip.least_squares import Floats, qr_energy
from pairflip.moments import TrainingForm
from pairflip.selection import facts
from pairflip.selection.folds import Folds, as_folds


class Refit(NamedTuple):
    """Observed minus predicted (h, q) in units of the training rows, E on these, and coefficients (k, q)."""

    residual: Floats
    energy: float
    coef: Floats


def refit(problem: SubsetProblem, left: Any, support: Any) -> Refit:
    """A support on the rows that are not `left` out, by np.linalg.lstsq, forced columns first."""
    kept = np.setdiff1d(np.arange(problem.n_rows), left)
    w, X, Y = problem.sample_weight, np.asarray(problem.X, float), problem.targets
    if problem.center == "global":
        X, Y = X - np.average(X, axis=0, weights=w), Y - np.average(Y, axis=0, weights=w)
    forced = np.hstack([np.ones((len(X), int(problem.center == "fold"))), X[:, problem.always]])
    root = np.sqrt(w[kept])[:, None]
    F, Z, T = root * forced[kept], root * X[np.ix_(kept, support)], root * Y[kept]
    norms = np.linalg.norm(F, axis=0)
    norms[norms == 0] = 1.0

    def fitted(A: Floats) -> Floats:
        return np.linalg.lstsq(F / norms, A, rcond=None)[0] / norms[:, None]

    Z_left, T_left = Z - F @ fitted(Z), T - F @ fitted(T)
    scale = np.ones(Y.shape[1])
    if problem.target_names and problem.scale_targets:
        scale = np.sqrt(np.sum(T_left**2, axis=0) / w[kept].sum())
    penalty = problem.ridge + problem.shrinkage * np.sum(Z_left**2, axis=0)
    design = np.vstack([Z_left, np.diag(np.sqrt(penalty))])
    lengths = np.linalg.norm(design, axis=0)
    target = np.vstack([T_left, np.zeros((len(support), Y.shape[1]))])
    coef = np.linalg.lstsq(design / lengths, target, rcond=None)[0] / lengths[:, None]
    energy = 0.5 * float(np.sum(((target - design @ coef) / scale) ** 2))
    residual = Y[left] - X[np.ix_(left, support)] @ coef - forced[left] @ fitted(T - Z @ coef)
    return Refit(residual / scale, energy, coef)


def random_case(rng: np.random.Generator) -> tuple[SubsetProblem, Folds]:
    """A small problem with anything that may be combined, and folds of any kind."""
    m, n, q = int(rng.integers(12, 30)), int(rng.integers(4, 9)), int(rng.choice([1, 1, 2, 3]))
    X = rng.normal(size=(m, n)) + rng.choice([0.0, 5.0])
    if rng.random() < 0.3:
        X[:, 1] = -2.0 * X[:, 0]
    if rng.random() < 0.3:
        X[:, 2] = 3.0
    if rng.random() < 0.3:
        X[:, 3] = X[:, 0] + 10.0 ** -rng.integers(1, 5) * rng.normal(size=m)
    Y = (X[:, [0]] + rng.choice([1e-4, 1.0]) * rng.normal(size=(m, q))) * 10.0 ** rng.choice([0, 100, -100], size=q)
    X *= 10.0 ** rng.choice([0, 0, 150, -150], size=n)
    weights = rng.uniform(0.5, 2.0, size=m)
    weights[0] *= rng.random() < 0.5
    ridge, shrinkage = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.3)][rng.integers(3)]
    problem = SubsetProblem(
        X, Y if q > 1 else Y[:, 0], center=[None, "fold", "global"][rng.integers(3)], ridge=ridge,
        always=[n - 1] if rng.random() < 0.4 else [], sample_weight=weights if rng.random() < 0.5 else None,
        scale_targets=bool(rng.random() < 0.5),
    )  # fmt: skip
    cv = ["loo", "blocks:4", 4][rng.integers(3)]
    return problem.with_shrinkage(shrinkage), as_folds(cv, problem, seed=int(rng.integers(99)))


def test_errors_energies_and_coefficients_are_those_of_literal_refits() -> None:
    rng, looked, singular = np.random.default_rng(0), 0, 0
    for _ in range(200):
        problem, folds = random_case(rng)
        q, k = problem.targets.shape[1], int(rng.integers(0, min(4, problem.candidates.size) + 1))
        draws = [[np.sort(rng.choice(problem.candidates, k, replace=False)) for _ in "ab"] for _ in folds.rows]
        supports = np.array(draws, dtype=np.int64).reshape(len(folds), 2, k)
        judge = problem.loss.held_out(problem, folds)
        residuals, energies = judge.judged(supports)
        fits = judge.fits(supports[:, 0])
        assert np.isfinite(residuals).all()
        for f in rng.choice(len(folds), 3, replace=False).tolist():
            rows = folds.rows[f]
            form = problem.held_out(folds.left_out[f])
            train = np.delete(np.arange(problem.n_rows), folds.left_out[f])
            means = np.average(problem.targets[train], axis=0, weights=problem.sample_weight[train])
            np.testing.assert_allclose(judge.means[f], means, atol=1e-9 * np.abs(problem.targets).max())  # type: ignore[attr-defined]
            for c in range(2):
                expected, support = refit(problem, rows, supports[f, c]), supports[f, c]
                told = residuals[c].reshape(-1, q)[folds.places[f]]
                looked += 1
                if not np.isfinite(energies[f, c]):  # dependent columns have no energy, and any prediction
                    assert not np.isfinite(form.energy(form.positions(support)))
                    singular += 1
                    continue
                unit = np.abs(refit(problem, rows, support[:0]).residual).max(axis=0)
                np.testing.assert_allclose(told / unit, expected.residual / unit, rtol=1e-9, atol=1e-9)
                assert energies[f, c] == pytest.approx(expected.energy, rel=1e-9)
                assert form.energy(form.positions(support)) == pytest.approx(expected.energy, rel=1e-9)
                if c == 0:
                    coef, always = fits.coefs[f].reshape(k, q), fits.always_coefs[f].reshape(-1, q)
                    scale = unit if q == 1 else unit * judge.scales[f]  # type: ignore[attr-defined]
                    size = np.abs(problem.X[:, support]).max(axis=0)[:, None] / scale
                    np.testing.assert_allclose(size * coef, size * expected.coef, rtol=1e-6, atol=1e-8)
                    by_fit = problem.X[np.ix_(rows, support)] @ coef + problem.X[np.ix_(rows, problem.always)] @ always
                    left = problem.targets[rows] - by_fit - fits.intercepts[f]
                    np.testing.assert_allclose(left / scale, told / unit, rtol=1e-7, atol=1e-7)
    assert singular > 10
    assert looked > 10 * singular


@pytest.mark.parametrize("kind", ["rare", "all of a column", "a huge row", "all of a target"])
def test_a_fold_that_holds_nearly_all_of_a_column_is_made_from_its_training_rows(kind: str) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    if kind == "rare":
        X[:, 2] = 0.0
        X[[4, 5], 2] = 1.0
    elif kind == "all of a column":
        X[:, 2] = np.where(np.arange(30) < 6, X[:, 2], 0.0)
    elif kind == "a huge row":
        X[4, 0] *= 1e9
    else:
        y[:6] *= 1e8
    problem = SubsetProblem(X, y, always=[5])
    folds = as_folds("blocks:5", problem)
    assert not isinstance(problem.held_out(folds.left_out[0]), TrainingForm)
    assert isinstance(problem.held_out(folds.left_out[1]), TrainingForm)
    supports = np.tile([0, 1], (5, 1, 1))
    if kind == "rare":
        supports[1:, :, 1] = 2  # the first fold cannot have chosen it
    residuals, energies = problem.loss.held_out(problem, folds).judged(supports)
    for f, rows in enumerate(folds.rows):
        expected = refit(problem, rows, supports[f, 0])
        np.testing.assert_allclose(residuals[0, rows], expected.residual[:, 0], rtol=1e-7)
        assert energies[f, 0] == pytest.approx(expected.energy, rel=1e-9)


@pytest.mark.parametrize("rows", [[5], [1, 2, 3, 8], list(range(12))])
@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_the_form_of_training_rows_has_their_inner_products(rows: list[int], ridge: float) -> None:
    rng = np.random.default_rng(2)
    problem = SubsetProblem(rng.normal(size=(30, 7)), rng.normal(size=(30, 2)), always=[6]).with_shrinkage(ridge)
    form, anew = problem.held_out(rows), problem.held_out(rows, anew=True)
    assert isinstance(form, TrainingForm)
    assert not isinstance(anew, TrainingForm)
    for name in ("matrix", "B", "yy", "penalty", "target_scale"):
        np.testing.assert_allclose(getattr(form, name), getattr(anew, name), rtol=1e-11, atol=1e-13)
    off = form.columns @ form.columns.T
    np.testing.assert_allclose(off - np.diag(np.diag(off)), form.matrix - np.eye(6), atol=1e-13)
    np.testing.assert_allclose(form.products(np.ascontiguousarray(form.targets.T)), form.B, atol=1e-13)
    np.testing.assert_allclose(form.row(3), form.matrix[3], atol=1e-14)
    np.testing.assert_allclose(anew.columns_of(np.array([4])) ** 2, form.columns_of(np.array([4])) ** 2, atol=1e-13)


def test_forward_selection_by_least_squares() -> None:
    rng = np.random.default_rng(4)
    form = SubsetProblem(rng.normal(size=(9, 12)), rng.normal(size=9)).form
    support: list[int] = []
    for left in facts._path(form, form.B, 6, form.yy):
        others = [j for j in range(12) if j not in support]
        energies = [form.energy(np.sort([*support, j])) for j in others]
        support.append(others[int(np.argmin(energies))])
        assert left == pytest.approx(2 * min(energies) / form.yy, rel=1e-9)


@pytest.mark.parametrize("kind", ["independent", "nearly dependent", "nearly explained"])
@pytest.mark.parametrize("targets", [1, 3])
def test_few_rows_carry_the_energies_of_many(kind: str, targets: int) -> None:
    rng = np.random.default_rng(targets)
    X = rng.normal(size=(500, 12))
    if kind == "nearly dependent":
        X[:, 5] = X[:, 4] + 1e-4 * rng.normal(size=500)
    noise = 1e-5 if kind == "nearly explained" else 1.0
    Y = X[:, :targets] @ rng.normal(size=(targets, targets)) + noise * rng.normal(size=(500, targets))
    problem = SubsetProblem(X, Y, ridge=0.3, always=[11], sample_weight=rng.exponential(size=500))
    for form in (problem.form, problem.held_out(np.arange(0, 500, 7))):
        columns, _ = form.few_rows
        assert columns.shape[1] <= 2 * (form.n_columns + targets)
        np.testing.assert_allclose(columns @ columns.T + np.diag(form.penalty), form.matrix, atol=1e-12)
        for support in ([0], [4, 5], [0, 1, 2], [1, 3, 5, 7]):
            at = np.array(support)
            expected = qr_energy(form.columns_of(at).T, form.targets, form.penalty[at])
            assert form.energy(at) == pytest.approx(expected, rel=1e-9)
