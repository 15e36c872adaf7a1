"""What is computed from the Gram matrix for very many supports is what a QR of each gives."""

import numpy as np
import pytest

from pairflip import SubsetProblem, select_size
from pairflip.losses.weighing import weigh
from pairflip.manifest import JournalError, read_manifest
from pairflip.selection import facts
from pairflip.selection.folds import as_folds


def drawn(rows=30, columns=18, seed=3, **options):
    """A problem with weights, one of them zero, and a support of five columns for each fold."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) + rng.normal(size=columns)
    y = X[:, 0] - X[:, 3] + 0.5 * rng.normal(size=rows) + 4.0
    weights = rng.uniform(0.2, 2.0, rows)
    weights[2] = 0.0
    problem = SubsetProblem(X, y, sample_weight=weights, **options)
    folds = as_folds("loo", problem)
    choices = np.sort(np.stack([rng.choice(problem.candidates, 5, replace=False) for _ in range(7)]), axis=1)
    return problem, folds, choices[rng.integers(7, size=len(folds))]


OPTIONS = [{}, {"center": "global"}, {"center": None}, {"ridge": 0.5}, {"always": [1]}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_gram_matrix_tells_what_a_qr_tells(options):
    problem, folds, supports = drawn(**options)
    errors = problem.loss.held_out(problem, folds)
    for quick, exact in zip(
        errors.judged(supports[:, None], quick=True), errors.judged(supports[:, None]), strict=True
    ):
        np.testing.assert_allclose(quick, exact, rtol=1e-9, atol=1e-10)
    quick, exact = errors.fits(supports, quick=True), errors.fits(supports)
    for name in ("coefs", "always_coefs", "intercepts"):
        np.testing.assert_allclose(getattr(quick, name), getattr(exact, name), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(errors.without_columns(quick=True), errors.without_columns(), rtol=1e-9, atol=1e-10)


def test_nearly_dependent_columns_are_not_weighed_by_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 6))
    X[:, 1] = X[:, 0] + 1e-5 * rng.normal(size=20)
    X[:, 3] = X[:, 2]
    problem = SubsetProblem(X, rng.normal(size=20))
    weights = weigh(problem.gram, np.array([[0, 4], [0, 1], [2, 3], [0, 4]]))
    assert weights.calm.tolist() == [True, False, False, True]
    assert weights.energy[0] == weights.energy[3] == pytest.approx(problem.energy([0, 4]), rel=1e-10)
    folds = as_folds("loo", problem)
    errors, near = problem.loss.held_out(problem, folds), np.tile([0, 1], (20, 1))
    np.testing.assert_array_equal(errors.fits(near, quick=True).coefs, errors.fits(near).coefs)
    np.testing.assert_array_equal(errors.residuals(near[:, None]), errors.judged(near[:, None], quick=True)[0])


def test_forward_selection_of_many_targets_is_that_of_each():
    problem, _, _ = drawn(rows=9, columns=12)
    gram = problem.gram
    targets = np.stack([np.random.default_rng(seed).permutation(gram.target) for seed in range(5)])
    b, yy = gram.products(targets), np.einsum("tm,tm->t", targets, targets)
    together, apart = facts._paths(gram, b, yy, 6), facts._paths_by_rows(gram, b, yy, 6)
    np.testing.assert_allclose(together, apart, rtol=1e-10, atol=1e-12)


def test_a_fold_of_one_row_has_the_matrix_of_a_low_rank_change():
    problem, _, _ = drawn()
    fold = problem.held_out([5])
    expected = fold.unit[:, None] * fold.unit * problem.gram.matrix - fold.left_out.T @ fold.left_out
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_array_equal(fold.matrix, expected)


def test_a_journal_says_what_its_effort_stood_for(tmp_path, monkeypatch):
    from pairflip.search import effort

    problem, _, _ = drawn()
    select_size(problem, [1, 2], 3, journal=tmp_path, effort="quick", progress=False)
    assert read_manifest(tmp_path)["work"]["folds"]["passes"] == effort.FOLD_EFFORTS["quick"].passes
    monkeypatch.setitem(effort.FOLD_EFFORTS, "quick", effort.Effort("quick", 0.0, 3, 1, 0))
    with pytest.raises(JournalError, match="work folds passes = 1"):
        select_size(problem, [1, 2], 3, journal=tmp_path, effort="quick", progress=False)
