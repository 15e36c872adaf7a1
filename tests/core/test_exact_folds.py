"""Folds that are solved instead of searched: exact nested cross validation, and nothing of the held-out rows in it."""

import json

import numpy as np
import pandas as pd
import pytest

from pairflip import Selection, SizeCurve, SubsetProblem, SubsetRegressorCV, select_size
from pairflip.report.curve_page import facts
from pairflip.search.exhaustive import best_support
from pairflip.testing import all_supports, enumerate_energies


def literal_best(X, y, k):
    """The best k <= 3 columns with an intercept, from X by plain algebra: columns projected one after the other."""
    X = (X - X.mean(axis=0)) / np.linalg.norm(X - X.mean(axis=0), axis=0)
    y = y - y.mean()
    n, best = X.shape[1], (np.inf, ())
    for first in [()] if k < 3 else [(i,) for i in range(n)]:
        basis = np.linalg.qr(X[:, list(first)])[0]
        rest, left = X - basis @ (basis.T @ X), y - basis @ (basis.T @ y)
        s, r = np.einsum("mj,mj->j", rest, rest), rest.T @ left
        s[list(first)] = np.inf
        if k == 1:
            j = int(np.argmax(r**2 / s))
            return 0.5 * (left @ left - r[j] ** 2 / s[j]), (j,)
        G = rest.T @ rest
        with np.errstate(invalid="ignore", divide="ignore"):
            after = s[None] - G**2 / s[:, None]
            gain = r[:, None] ** 2 / s[:, None] + (r[None] - G * r[:, None] / s[:, None]) ** 2 / after
        gain[~((after > 1e-8) & np.isfinite(gain))] = 0.0
        np.fill_diagonal(gain, 0.0)
        i, j = np.unravel_index(np.argmax(gain), gain.shape)
        energy = 0.5 * (left @ left - gain[i, j])
        if energy < best[0]:
            best = energy, tuple(sorted((*first, int(i), int(j))))
    return best


def predicted(X, y, support, train, rows):
    A = np.column_stack([np.ones(len(train)), X[np.ix_(train, support)]])
    x = np.linalg.lstsq(A, y[train], rcond=None)[0]
    return np.column_stack([np.ones(len(rows)), X[np.ix_(rows, support)]]) @ x


def literal_error(X, y, splits, k):
    """Half the mean squared error of held-out rows, each fold with its own best columns."""
    squares = []
    for train, test in splits:
        _, support = literal_best(X[train], y[train], k)
        squares.extend((y[test] - predicted(X, y, list(support), train, test)) ** 2)
    return 0.5 * np.mean(squares)


SHARED = [
    ("supernova_bsnip/snia_74x276.csv", "target_M_B", 3),
    ("eyedata/eyedata.csv", "target_TRIM32", 3),
    ("diabetes/diabetes_64.csv", "target_y", 3),
    pytest.param("communities_crime/communities_crime.csv", "target_ViolentCrimesPerPop", 3, marks=pytest.mark.slow),
    ("gasoline/gasoline.csv", "target_octane", 2),
]


@pytest.mark.parametrize(("file", "target", "largest"), SHARED)
def test_the_error_is_that_of_exact_nested_cross_validation(shared_data, file, target, largest):
    frame = pd.read_csv(shared_data / file)
    X = frame[[name for name in frame if not name.startswith("target_")]].to_numpy(dtype=float)
    y = frame[target].to_numpy(dtype=float)
    splits = [(np.delete(np.arange(len(y)), rows), rows) for rows in np.array_split(np.arange(len(y)), 2)]
    curve = select_size(SubsetProblem(X, y), range(1, largest + 1), splits)
    assert curve.exact.all()
    for k in range(1, largest + 1):
        assert curve.cv_error[k] == pytest.approx(literal_error(X, y, splits, k), rel=1e-10)
    assert (curve.agreement == 1).all()


@pytest.mark.slow
def test_leave_one_out_of_a_real_table_is_exact(shared_data):
    frame = pd.read_csv(shared_data / "supernova_bsnip/snia_74x276.csv")
    X = frame[[name for name in frame if not name.startswith("target_")]].to_numpy(dtype=float)
    y = frame["target_M_B"].to_numpy(dtype=float)
    splits = [(np.delete(np.arange(len(y)), row), np.array([row])) for row in range(len(y))]
    curve = select_size(SubsetProblem(X, y), [1, 2, 3], "loo", n_jobs=2)
    for k in (1, 2, 3):
        assert curve.cv_error[k] == pytest.approx(literal_error(X, y, splits, k), rel=1e-10)


def planted(rows=30, columns=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return X, X[:, 2] - X[:, 5] + rng.normal(size=rows)


@pytest.mark.parametrize("options", [{}, {"ridge": 0.5}, {"always": [3]}, {"center": None}, {"center": "global"}])
def test_a_fold_is_solved_by_every_support(options):
    X, y = planted()
    problem = SubsetProblem(X, y, sample_weight=np.linspace(0.1, 2, 30), **options)
    for rows in ([0], [3, 4, 11], list(range(10))):
        form = problem.held_out(rows)
        for k in (1, 2, 3, 5):
            energies = enumerate_energies(form, k)
            support, energy = best_support(form, k)
            assert support.tolist() == all_supports(form.n_columns, k)[np.argmin(energies)].tolist()
            assert energy == pytest.approx(energies.min(), rel=1e-9)


def test_duplicated_and_constant_columns_of_a_fold():
    X, y = planted()
    X[:, 7] = X[:, 2]
    X[:, 9] = 0.0
    X[0, 9] = 1.0  # constant once row 0 is left out
    curve = select_size(SubsetProblem(X, y), [1, 2, 3], "loo")
    assert curve.exact.all()
    for support in curve.fold_supports[3]:
        assert not {2, 7} <= set(support.tolist())
    assert 9 not in curve.fold_supports[3][0]


def test_turned_off_and_not_for_annealing():
    X, y = planted()
    problem = SubsetProblem(X, y)
    on, off = select_size(problem, [1, 2], 3), select_size(problem, [1, 2], 3, prove=False)
    assert on.exact.tolist() == [True, True, True]
    assert off.exact.tolist() == [True, False, False]
    assert off.proved is None
    np.testing.assert_allclose(on.cv_error, off.cv_error)
    annealed = select_size(problem, [1, 2], 3, chains=2)
    assert annealed.exact.tolist() == [True, False, False]
    assert annealed.proved[1].optimal  # the final fit


def test_final_fits_are_proved_and_kept_in_the_file(tmp_path):
    X, y = planted()
    curve = select_size(SubsetProblem(X, y, names=[f"c{j}" for j in range(12)]), [1, 2, 12], 3)
    first, second, third = curve.proved[1], curve.proved[2], curve.proved[3]
    assert curve.proved[0] is None
    assert third is None
    assert first.optimal
    assert second.supports.shape == (5, 2)
    assert second.support.tolist() == curve.supports[2].tolist()
    curve.save(tmp_path / "curve.json")
    again = SizeCurve.load(tmp_path / "curve.json")
    assert again.exact.tolist() == curve.exact.tolist()
    assert again.proved[2].columns == second.columns
    assert again.proved[2].energies.tolist() == second.energies.tolist()
    record = json.loads((tmp_path / "curve.json").read_text())
    assert "names" not in record["proved"]["proofs"][1]
    del record["exact"], record["proved"]  # as earlier versions wrote it
    (tmp_path / "older.json").write_text(json.dumps(record))
    assert SizeCurve.load(tmp_path / "older.json").proved is None


def test_the_page_says_for_which_sizes_nothing_was_left_to_a_search():
    X, y = planted()
    done = dict(facts(select_size(SubsetProblem(X, y), [1, 2, 3, 5, 12], 3)))
    assert done["Solved in every fold by looking at all sets"] == "sizes 1 to 3, 5, 12"
    assert done["Proved to be the best on all rows"] == "sizes 1 to 3, 5"


def test_the_estimator_has_the_proof_of_its_columns():
    X, y = planted()
    model = SubsetRegressorCV([1, 2, 3], cv=3, random_state=0).fit(X, y)
    assert model.proof_.k == model.n_nonzero_coefs_
    assert model.proof_.support.tolist() == model.support_.tolist()
    assert SubsetRegressorCV([1, 2], cv=3, prove=False, random_state=0).fit(X, y).proof_ is None


def test_a_journal_of_searched_folds_is_not_taken_for_solved_ones(tmp_path):
    X, y = planted()
    select_size(SubsetProblem(X, y), [1, 2], 3, journal=tmp_path, prove=False)
    with pytest.raises(ValueError, match="prove"):
        select_size(SubsetProblem(X, y), [1, 2], 3, journal=tmp_path)


def test_a_killed_run_resumes_to_the_same_curve(tmp_path):
    X, y = planted()
    problem, chosen = SubsetProblem(X, y), Selection([1, 2, 3], "loo")
    whole = select_size(problem, chosen, journal=tmp_path)
    (lines,) = tmp_path.glob("tasks-*.jsonl")
    kept = lines.read_text().splitlines()[:40]
    lines.write_text("\n".join(kept) + "\n")
    again = select_size(problem, chosen, journal=tmp_path)
    np.testing.assert_array_equal(again.predictions, whole.predictions)
