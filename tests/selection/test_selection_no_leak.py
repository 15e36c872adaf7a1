"""A fold's result depends on its training rows only: replace what it holds out by garbage, and nothing changes."""

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneGroupOut, ShuffleSplit

from pairflip import Schedule, SubsetProblem, select_size
from pairflip.moments import TrainingForm
from pairflip.selection.folds import as_folds

M, N = 24, 14
SHORT = Schedule.geometric(0.01, 1e3, steps=12, sweeps=3)
GROUPS = np.repeat(np.arange(6), 4)
KINDS = {
    "loo": ("loo", None),
    "folds": (4, None),
    "repeats": ("2x3", None),
    "blocks": ("blocks:4", None),
    "groups": ("loo", GROUPS),
    "group folds": (3, GROUPS),
    "splitter": (ShuffleSplit(3, test_size=0.3, random_state=1), None),
    "group splitter": (LeaveOneGroupOut(), GROUPS),
}
OPTIONS = {
    "plain": {},
    "weights": {"sample_weight": np.linspace(0.5, 2.0, M)},
    "forced": {"always": [2, 9]},
    "ridge": {"ridge": 0.5},
    "no intercept": {"center": None},
    "by columns": {"memory_budget": 0},
}
GARBAGE = {"large": 2e4, "moderate": 30.0, "zero": 0.0, "mixed": None}


def less_often(*cases):
    """Cases much like others, which run with --slow."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


def table(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((M, N)) + 1.5
    X[:, 3] = X[:, 4] + 0.05 * rng.standard_normal(M)
    return X, X[:, :3] @ [1.0, -1.0, 0.5] + 0.7 * rng.standard_normal(M)


def spoiled(X: np.ndarray, y: np.ndarray, rows: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The table with garbage in some rows, X and y."""
    rng = np.random.default_rng(99)
    size = GARBAGE[kind]
    factor = rng.choice([1e-3, 1.0, 1e5], (len(rows), N + 1)) if size is None else size
    bad = factor * rng.standard_normal((len(rows), N + 1))
    X, y = X.copy(), y.copy()
    X[rows], y[rows] = bad[:, :-1], bad[:, -1]
    return X, y


def fold_coefficients(problem: SubsetProblem, folds, fold: int, support: np.ndarray) -> np.ndarray:
    """What the fold's fit predicts for unit vectors, hence its coefficients; by fitting the remaining rows alone."""
    rest = np.delete(np.arange(M), folds.left_out[fold])
    alone = SubsetProblem(
        problem.X[rest], problem.y[rest], center=problem.center, always=problem.always.tolist(),
        sample_weight=problem.sample_weight[rest], ridge=problem.ridge,
    )  # fmt: skip
    fit = alone.fit(support)
    return np.concatenate([fit.coef, fit.always_coef, [fit.intercept]])


def check_fold_unchanged(cv, groups, schedule, engine, options, kind, sizes=(1, 3), effort=None):
    X, y = table()
    problem = SubsetProblem(X, y, **options)
    folds = as_folds(cv, problem, groups, seed=5)
    how = dict(schedule=schedule, chains=2) if effort is None else dict(effort=effort)
    common = dict(sizes=sizes, cv=cv, groups=groups, engine=engine, seed=5, **how)
    before = select_size(problem, **common)
    for fold in (0, len(folds) - 1):
        rows = folds.left_out[fold]
        after_problem = SubsetProblem(*spoiled(X, y, rows, kind), **options)
        after = select_size(after_problem, **common)
        for at in range(1, before.sizes.size):
            support = after.fold_supports[at][fold]
            np.testing.assert_array_equal(before.fold_supports[at][fold], support)
            a = fold_coefficients(problem, folds, fold, support)
            here = np.flatnonzero(after.held_out_fold == fold)
            seen = after.held_out_rows[here]
            columns = np.concatenate([support, after_problem.always]).astype(int)
            expected = after_problem.X[np.ix_(seen, columns)] @ a[:-1] + a[-1]
            np.testing.assert_allclose(after.predictions[at][here], expected, rtol=1e-7, atol=1e-8)


SEARCHES = {"anneal": ("auto", None), "descend": (None, "normal")}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", ["mixed", "zero", *less_often("large", "moderate")])
@pytest.mark.parametrize("cv", KINDS)
def test_every_kind_of_cross_validation(cv, kind, search):
    schedule, effort = SEARCHES[search]
    check_fold_unchanged(*KINDS[cv], schedule, "numba", {}, kind, effort=effort)


@pytest.mark.parametrize("search", [*SEARCHES, *less_often("quick")])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("cv", ["loo", "folds"])
def test_every_option_of_the_problem(cv, options, search):
    schedule, effort = SEARCHES.get(search, (None, search))
    check_fold_unchanged(*KINDS[cv], schedule, "numba", OPTIONS[options], "mixed", effort=effort)


@pytest.mark.parametrize("schedule", [SHORT, "paper", "auto"], ids=["absolute", "paper", "auto"])
def test_every_schedule(schedule):
    check_fold_unchanged("loo", None, schedule, "numba", {}, "mixed", sizes=(2,))


def test_reference_engine():
    check_fold_unchanged(4, None, SHORT, "reference", {}, "moderate", sizes=(2,))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", GARBAGE)
@pytest.mark.parametrize("cv", ["loo", "folds"])
def test_gpu_engine(cv, kind):
    check_fold_unchanged(*KINDS[cv], "auto", "cuda", {}, kind)


def test_column_that_only_the_held_out_row_makes_vary():
    X, y = table()
    X[:, 7] = 3.0
    steady = select_size(SubsetProblem(X, y), [2], chains=2)
    X[5, 7] = 8.0
    varied = select_size(SubsetProblem(X, y), [2], chains=2)
    np.testing.assert_array_equal(steady.fold_supports[1][5], varied.fold_supports[1][5])
    assert 7 not in varied.fold_supports[1][5]


def test_target_that_only_the_held_out_row_makes_vary():
    X, _ = table()
    y = np.full(M, 2.0)
    y[3] = 9.0
    curve = select_size(SubsetProblem(X, y), [1], chains=2)
    assert curve.predictions[1][3] == pytest.approx(2.0)
    assert np.isfinite(curve.cv_error).all()


def test_subtraction_is_used_where_it_is_accurate():
    X, y = table()
    problem = SubsetProblem(X, y)
    assert isinstance(problem.held_out([4]), TrainingForm)
    X[4] = 1e5
    assert not isinstance(SubsetProblem(X, y).held_out([4]), TrainingForm)


def test_fold_problem_is_that_of_its_rows():
    """Both ways of making a fold give the problem of the remaining rows, scaled there."""
    X, y = table()
    weights = np.linspace(0.5, 2.0, M)
    for held in ([4], [0, 7, 20]):
        rest = np.delete(np.arange(M), held)
        alone = SubsetProblem(X[rest], y[rest], always=[2], sample_weight=weights[rest], ridge=0.1).form
        problem = SubsetProblem(X, y, always=[2], sample_weight=weights, ridge=0.1)
        for fold in (problem.held_out(held), problem.held_out(held, anew=True)):
            np.testing.assert_allclose(fold.matrix, alone.matrix, atol=1e-13)
            np.testing.assert_allclose(fold.b, alone.b, atol=1e-12)
            np.testing.assert_allclose([fold.row(3), fold.matrix[3]], alone.matrix[[3, 3]], atol=1e-13)
            assert fold.yy == pytest.approx(alone.yy)
            assert fold.energy(np.array([1, 5])) == pytest.approx(alone.energy(np.array([1, 5])))
