"""Moments of blocks of rows: equal to the table in memory, however it is cut, weighted, added or read."""

import os
import subprocess
import sys
from zlib import crc32

import numpy as np
import pandas as pd
import pytest

from pairflip import SubsetProblem, best_subset, posterior, prove, select_size
from pairflip.blocks import Moments, blocks_of
from pairflip.selection.curve_file import curve_from_json, curve_to_json

TABLES = (
    ("attitude/attitude.csv", "rating"),
    ("prostate/prostate.csv", "lpsa"),
    ("diabetes/diabetes_64.csv", "y"),
    ("wine_red/wine_red.csv", "quality"),
    ("tecator/tecator.csv", "fat"),
)


def cut(X, y, blocks, weights=None):
    """The rows in so many blocks."""
    parts = [rows for rows in np.array_split(np.arange(len(y)), blocks) if rows.size]
    return [(X[rows], y[rows], None if weights is None else weights[rows]) for rows in parts]


def table(seed=0, n_rows=400, n_columns=12, targets=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)) * 10.0 ** rng.uniform(-3, 3, n_columns) + 100.0
    Y = (X / X.std(axis=0)) @ rng.normal(size=(n_columns, targets)) + rng.normal(size=(n_rows, targets))
    return X, Y[:, 0] if targets == 1 else Y


def same_folds(problem, curve, n_rows):
    """Splits of the rows in memory that hold out what the folds of the moments held out."""
    total = 10 * problem.condensed.folds if problem.condensed.folds > 2 else problem.condensed.block.max() + 1
    of_row = blocks_of(0, 0, n_rows, int(total))
    block = problem.condensed.block[curve.held_out_rows]
    splits = []
    for fold in range(curve.n_folds):
        test = np.flatnonzero(np.isin(of_row, block[curve.held_out_fold == fold]))
        splits.append((np.setdiff1d(np.arange(n_rows), test), test))
    return splits


def check_equal(told, real, digits=1e-9):
    """The same supports, errors, energies and coefficients."""
    for a, b in zip(told.supports, real.supports, strict=True):
        assert a.tolist() == b.tolist()
    for a, b in zip(told.fold_supports, real.fold_supports, strict=True):
        assert a.tolist() == b.tolist()
    np.testing.assert_allclose(told.cv_error, real.cv_error, rtol=digits)
    np.testing.assert_allclose(told.energies, real.energies, rtol=digits)
    np.testing.assert_allclose(told.energy_per_row, real.energy_per_row, rtol=digits)
    for a, b in zip(told.coefs, real.coefs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e3 * digits, atol=1e-12)


@pytest.mark.parametrize(("name", "target"), TABLES, ids=[name for name, _ in TABLES])
def test_real_tables_have_the_same_answer(shared_data, name, target):
    frame = pd.read_csv(shared_data / name).select_dtypes("number").dropna()
    target = target if target in frame else frame.columns[-1]
    y, X = frame.pop(target).to_numpy(), frame.to_numpy()
    order = np.random.default_rng(1).permutation(len(y))
    X, y = X[order], y[order]
    whole = SubsetProblem(X, y)
    spectra = name.startswith("tecator")  # rounding decides which way a search of many columns goes
    sizes, few = range(1, min(2 if spectra else 6, X.shape[1]) + 1), {"stability": 0, "effort": "quick"}
    curves = []
    for blocks in (1, 7, 100):
        problem = SubsetProblem.from_blocks(cut(X, y, blocks), in_memory=0)
        assert problem.rows_present == len(y)
        curves.append(select_size(problem, sizes, cv=10, **few))
    real = select_size(whole, sizes, cv=same_folds(problem, curves[0], len(y)), **few)
    for curve in curves:
        check_equal(curve, real, 1e-9)
    assert curves[0].data_hash == curves[1].data_hash == curves[2].data_hash


@pytest.mark.parametrize("options", [
    {"always": [3]},
    {"ridge": 0.5},
    {"center": None},
    {"groups": {"a": [0, 1, 2], "b": [4, 5]}},
    {"min_distance": 2.0},
    {"one_per_group": True, "groups": {"a": [0, 1, 2], "b": [4, 5]}},
], ids=str)  # fmt: skip
def test_options_are_those_of_any_problem(options):
    X, y = table()
    problem = SubsetProblem.from_blocks(cut(X, y, 5), in_memory=0, **options)
    curve = select_size(problem, range(1, 5), cv=5, effort="quick")
    real = select_size(
        SubsetProblem(X, y, **options), range(1, 5), cv=same_folds(problem, curve, len(y)), effort="quick"
    )
    check_equal(curve, real)


def test_weights_and_several_targets():
    X, Y = table(targets=3)
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    problem = SubsetProblem.from_blocks(cut(X, Y, 4, weights), in_memory=0)
    whole = SubsetProblem(X, Y, sample_weight=weights)
    assert problem.rows_present == whole.rows_present
    curve = select_size(problem, range(1, 4), cv=5, effort="quick")
    real = select_size(whole, range(1, 4), cv=same_folds(problem, curve, len(X)), effort="quick")
    np.testing.assert_allclose(curve.cv_error, real.cv_error, rtol=1e-9)
    np.testing.assert_allclose(curve.energies, real.energies, rtol=1e-9)


def test_searches_proofs_and_probabilities_are_those_of_all_rows():
    X, y = table(n_rows=300, n_columns=9)
    problem, whole = SubsetProblem.from_blocks(cut(X, y, 3), in_memory=0), SubsetProblem(X, y)
    for k in (1, 3, 5):
        ours, theirs = best_subset(problem, k).supports[0], best_subset(whole, k).supports[0]
        assert ours.tolist() == theirs.tolist()
        np.testing.assert_allclose(problem.fit(ours).coef, whole.fit(theirs).coef, rtol=1e-9)
        np.testing.assert_allclose(problem.fit(ours).intercept, whole.fit(theirs).intercept, rtol=1e-9)
    proof = prove(problem, 3)
    assert proof.optimal
    assert proof.support.tolist() == prove(whole, 3).support.tolist()
    for g in ("unit", "hyper"):
        ours, theirs = posterior(problem, g).inclusion_probability, posterior(whole, g).inclusion_probability
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    told, real = (select_size(each, range(1, 4), cv=5, effort="quick") for each in (problem, whole))
    for name in ("bic", "ebic"):
        np.testing.assert_allclose(told.criteria[name], real.criteria[name], rtol=1e-9)
    for a, b in zip(told.standard_errors.chosen, real.standard_errors.chosen, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8)
    assert told.robust_errors is None  # HC3 needs single rows
    assert told.total_rows == 300


def test_standard_errors_of_errors_come_from_blocks():
    told, real = [], []
    for seed in range(30):
        X, y = table(seed, 1000, 5)
        curve = select_size(SubsetProblem.from_blocks([(X, y)], in_memory=0, seed=seed), [3], cv=5, effort="quick")
        rows = select_size(SubsetProblem(X, y), [3], cv="5x5", effort="quick")
        told.append(curve.cv_error_se[1])
        real.append(rows.cv_error_se[1])
    ratio = np.array(told) / np.array(real)
    # 100 blocks tell a standard error to 1 / sqrt(200) = 7 %, 30 of them their mean to 1.3 %.
    assert abs(ratio.mean() - 1.0) < 0.06
    assert ratio.std() < 0.15


def test_noise_is_still_called_noise():
    found = [noise_is_called_predictive(seed) for seed in range(20)]
    assert sum(found) <= 4  # at most 5 % of tables: more than 4 of 20 in 0.3 %


def noise_is_called_predictive(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(3000, 30)), rng.normal(size=3000)
    problem = SubsetProblem.from_blocks([(X, y)], in_memory=0, seed=seed)
    return select_size(problem, range(1, 6), cv=10, effort="quick").answer.predicts


def test_a_weak_effect_in_many_rows_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 10))
    y = 0.03 * X[:, 4] + rng.normal(size=len(X))  # 9 standard errors, and invisible in 1,100 rows
    problem = SubsetProblem.from_blocks(cut(X, y, 3), in_memory=0)
    assert problem.n_rows == 1200
    curve = select_size(problem, range(1, 4), cv=10)
    assert curve.answer.size == 1
    assert curve.columns(1) == ["x4"]


def test_float32_is_summed_in_double_precision():
    X, y = table(n_rows=2000)
    single = X.astype(np.float32)
    told = SubsetProblem.from_blocks(cut(single, y, 4), in_memory=0)
    whole = SubsetProblem(single.astype(np.float64), y)
    np.testing.assert_allclose(told.fit([0, 3]).coef, whole.fit([0, 3]).coef, rtol=1e-9)


def test_means_far_from_zero_and_drifting_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    X[:, 1] = 1.7e9 + np.arange(3000)  # seconds since 1970
    X[:, 2] += 1e8
    y = X[:, 0] + 1e-3 * (X[:, 1] - 1.7e9) + rng.normal(size=3000)
    told, whole = SubsetProblem.from_blocks(cut(X, y, 30), in_memory=0), SubsetProblem(X, y)
    np.testing.assert_allclose(told.energy([0, 1, 2]), whole.energy([0, 1, 2]), rtol=1e-9)
    np.testing.assert_allclose(told.fit([0, 1]).coef, whole.fit([0, 1]).coef, rtol=1e-7)


def test_columns_that_depend_on_others_keep_their_digits_and_are_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    X[:, 1] = X[:, 0] + 1e-6 * rng.normal(size=2000)  # nearly
    X[:, 3] = X[:, 2]  # exactly
    y = X[:, 0] - X[:, 4] + 3e5 * (X[:, 1] - X[:, 0]) + rng.normal(size=2000)
    told, whole = SubsetProblem.from_blocks(cut(X, y, 9), in_memory=0), SubsetProblem(X, y)
    np.testing.assert_allclose(told.energy([1, 4]), whole.energy([1, 4]), rtol=1e-9)
    assert told.energy([2, 3]) == whole.energy([2, 3]) == np.inf
    curve = select_size(told, [1, 2], cv=5, effort="quick")
    assert np.isfinite(curve.cv_error).all()


def test_a_column_that_varies_in_few_rows():
    X, y = table(n_rows=500, n_columns=4)
    X[:, 2] = 7.0
    X[3, 2] = 8.0
    X[:, 3] = 5.0
    told = SubsetProblem.from_blocks(cut(X, y, 5), in_memory=0)
    assert told.candidates.tolist() == SubsetProblem(X, y).candidates.tolist() == [0, 1, 2]
    assert np.isfinite(select_size(told, [1, 2], cv=5, effort="quick").cv_error).all()


def test_small_tables_stay_as_they_are():
    X, y = table()
    problem = SubsetProblem.from_blocks(cut(X, y, 7))
    assert problem.condensed is None
    assert np.array_equal(problem.X, X)
    frames = [pd.DataFrame(X[i : i + 50]).assign(target=y[i : i + 50]) for i in range(0, 400, 50)]
    assert (
        SubsetProblem.from_blocks(iter(frames), y="target").hash == SubsetProblem(X, y, names=map(str, range(12))).hash
    )


def test_moments_of_parts_add_up(tmp_path):
    X, y = table()
    parts = [Moments.of(X[:150], y[:150]), Moments.of(X[150:], y[150:], first_row=150)]
    parts[0].save(tmp_path / "one.npz")
    total = Moments.load(tmp_path / "one.npz") + parts[1]
    assert total.n_rows == 400
    told, whole = SubsetProblem.from_moments(total), SubsetProblem(X, y)
    np.testing.assert_allclose(told.energy([0, 5]), whole.energy([0, 5]), rtol=1e-9)
    np.testing.assert_allclose(told.fit([0, 5]).intercept, whole.fit([0, 5]).intercept, rtol=1e-9)
    at_once = Moments.of(X, y)
    assert total.rows.tolist() == at_once.rows.tolist()
    with pytest.raises(ValueError, match="expected moments of parts of one table"):
        parts[0] + Moments.of(X, y, seed=1)
    (tmp_path / "bad.npz").write_bytes((tmp_path / "one.npz").read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"cannot be read .*expected what Moments.save wrote"):
        Moments.load(tmp_path / "bad.npz")


def test_sums_of_products_that_somebody_else_made():
    X, y = table()
    folds = np.arange(400) % 5
    n = np.bincount(folds)
    parts = [(X[folds == f], y[folds == f]) for f in range(5)]
    means = [np.append(A.mean(axis=0), b.mean()) for A, b in parts]
    for centred in (False, True):
        shifted = [(A - m[:-1], b - m[-1]) if centred else (A, b) for (A, b), m in zip(parts, means, strict=True)]
        problem = SubsetProblem.from_moments(
            n, means, [A.T @ A for A, _ in shifted], [A.T @ b for A, b in shifted], [b @ b for _, b in shifted],
            centred=centred,
        )  # fmt: skip
        curve = select_size(problem, range(1, 5), cv=5, effort="quick")
        splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(5)]
        real = select_size(SubsetProblem(X, y), range(1, 5), cv=splits, effort="quick")
        np.testing.assert_allclose(curve.cv_error, real.cv_error, rtol=1e-9 if centred else 1e-6)
    one = SubsetProblem.from_moments(400, np.append(X.mean(axis=0), y.mean()), X.T @ X, X.T @ y, y @ y)
    assert prove(one, 2).support.tolist() == prove(SubsetProblem(X, y), 2).support.tolist()
    with pytest.raises(ValueError, match="one block of rows, which cannot be left out; expected moments of at least"):
        select_size(one, [1])
    with pytest.raises(ValueError, match="belong to no table"):
        SubsetProblem.from_moments(400, np.append(X.mean(axis=0), y.mean()), X.T @ X, 9 * X.T @ y, y @ y)
    with pytest.raises(TypeError, match="expected all of them"):
        SubsetProblem.from_moments(400, X.mean(axis=0))


def test_a_fold_knows_its_training_rows_only():
    X, y = table()
    blocks = cut(X, y, 1)
    problem = SubsetProblem.from_blocks(blocks, in_memory=0)
    curve = select_size(problem, [2, 3], cv=5, effort="quick")
    (_, test), *_ = same_folds(problem, curve, len(y))
    spoiled, other = X.copy(), y.copy()
    spoiled[test] = np.random.default_rng(5).normal(size=(test.size, X.shape[1])) * X.std(axis=0) + X.mean(axis=0)
    other[test] = 1e3
    again = select_size(SubsetProblem.from_blocks([(spoiled, other)], in_memory=0), [2, 3], cv=5, effort="quick")
    for at in (1, 2):
        assert curve.fold_supports[at][0].tolist() == again.fold_supports[at][0].tolist()
        np.testing.assert_allclose(curve.fold_fits.coefs[at][0], again.fold_fits.coefs[at][0], rtol=1e-6)


def test_missing_values_are_refused_or_counted():
    X, y = table()
    X[3, 2], X[200, 2], X[210, 5] = np.nan, np.inf, np.nan
    for in_memory in (0, 10**6):
        with pytest.raises(ValueError, match=r"'x2' is missing or infinite in 2 rows.*drop-rows"):
            SubsetProblem.from_blocks(cut(X, y, 3), in_memory=in_memory)
        problem = SubsetProblem.from_blocks(cut(X, y, 3), in_memory=in_memory, missing="drop-rows")
        assert problem.missing == {"": 3, "x2": 2, "x5": 1}
        there = np.isfinite(X).all(axis=1)
        whole = SubsetProblem(X[there], y[there])
        assert problem.rows_present == 397
        np.testing.assert_allclose(problem.energy([0, 2]), whole.energy([0, 2]), rtol=1e-9)
    curve = select_size(SubsetProblem.from_blocks(cut(X, y, 3), in_memory=0, missing="drop-rows"), [1], cv=5)
    assert "3 rows with missing values were left out: 'x2' (2), 'x5' (1)." in " ".join(curve.summary().split())


@pytest.mark.parametrize(("blocks", "y", "words"), [
    ([], None, "the blocks have no rows"),
    ([(np.ones((3, 2)), np.ones(3)), (np.ones((3, 1)), np.ones(3))], None, "block 2: it has 1 column and 1 target"),
    ([np.ones((3, 2))], None, "block 1: it is a ndarray; expected (X, y)"),
    ([(np.ones((3, 2)), np.ones(4))], None, "block 1: 'y0' has shape (4,) beside 3 rows"),
    ([pd.DataFrame({"a": [1.0, 2.0]})], "b", "block 1: it has no column 'b'"),
    ([(pd.DataFrame({"a": [1.0]}), [1]), (pd.DataFrame({"b": [1.0]}), [1])], None, "block 2: its column 1 is 'b'"),
    ([pd.DataFrame({"a": ["x", "y"], "b": [1, 2]})], "b", "block 1: 'a' holds 'x' in row 1 of the block; expected num"),
    ([(np.ones((3, 2)), np.ones(3), [1, -1, 2])], None, "block 1: its weights are not one finite number >= 0"),
    ([(np.ones((3, 2)), np.ones(3))], 7, "y is a int beside blocks"),
])  # fmt: skip
def test_bad_blocks_are_named(blocks, y, words):
    with pytest.raises((ValueError, TypeError)) as error:
        SubsetProblem.from_blocks(blocks, y, in_memory=0)
    assert words in str(error.value)


@pytest.mark.parametrize("targets", [1, 2])
def test_intervals_are_those_of_the_rows(targets):
    X, y = table(n_rows=300, n_columns=4, targets=targets)
    problem = SubsetProblem.from_blocks(cut(X, y, 7), in_memory=0, folds=5, always=[2])
    curve = select_size(problem, [1, 2], cv="2x5", effort="quick", stability=5)
    splits = same_folds(problem, curve, 300)
    real = select_size(SubsetProblem(X, y, always=[2]), [1, 2], cv=splits, effort="quick")
    for size in (0, 1, 2):
        for coverage in (0.5, 0.9, 0.99):
            told, expected = (each.predict(X[:9], size, interval=coverage) for each in (curve, real))
            np.testing.assert_allclose(told.lower, expected.lower, rtol=1e-6)
            np.testing.assert_allclose(told.upper, expected.upper, rtol=1e-6)
    again, told = curve_from_json(curve_to_json(curve)), curve.predict(X, interval=0.9, predict_with="average")
    assert (again.predict(X, interval=0.9, predict_with="average").lower == told.lower).all()
    assert 0.85 < np.mean((told.lower < y) & (y < told.upper)) < 0.95


def test_intervals_of_many_rows_by_a_sample_and_none_of_moments_alone():
    X = np.random.default_rng(0).normal(size=(30_000, 2))
    y = X[:, 0] + np.random.default_rng(1).normal(size=30_000)
    curve = select_size(SubsetProblem.from_blocks(iter(cut(X, y, 3)), in_memory=0), [1], cv=10, effort="quick")
    for coverage, half in ((0.5, 0.6745), (0.8, 1.2816), (0.9, 1.6449), (0.95, 1.96), (0.99, 2.5758)):
        told = curve.predict(X[:50], interval=coverage)
        np.testing.assert_allclose((told.upper - told.lower) / 2, half, rtol=0.03)
    moments = select_size(SubsetProblem.from_moments(Moments.of(X, y)), [1], cv=10, effort="quick")
    assert moments.predict(X[:2]).shape == (2,)
    with pytest.raises(ValueError, match="the result comes from moments alone, which do not show how errors of single"):
        moments.predict(X[:2], interval=0.9)


def test_what_needs_single_rows_is_refused():
    X, y = table()
    for options, words in (
        ({"loss": "poisson"}, "loss is 'poisson' for rows of which only moments are kept"),
        ({"folds": 1}, "folds is 1"),
    ):
        with pytest.raises(ValueError, match=words):
            SubsetProblem.from_blocks([(X, y)], in_memory=0, **options)
    problem = SubsetProblem.from_blocks([(X, y)], in_memory=0)
    for cv, words in (("blocks:5", "for random blocks of rows"), (200, "moments are kept of 99 blocks")):
        with pytest.raises(ValueError, match=words):
            select_size(problem, [1], cv=cv)
    with pytest.raises(ValueError, match="groups are given for rows of which only moments"):
        select_size(problem, [1], cv=5, groups=np.zeros(problem.n_rows))


def test_threads_and_cuts_change_no_bit():
    X, y = table(n_rows=30_000, n_columns=30)
    one = SubsetProblem.from_blocks(cut(X, y, 3), in_memory=0, n_jobs=1)
    two = SubsetProblem.from_blocks(cut(X, y, 77), in_memory=0, n_jobs=3)
    assert one.hash == two.hash
    for a, b in zip(one.condensed.sample, two.condensed.sample, strict=True):
        assert np.array_equal(a, b)
    assert len(one.condensed.sample.key) == 10_000


def marks(problem):
    """What changes with a bit of the moments, or of the sample."""
    return f"{problem.hash} {crc32(problem.condensed.sample.values.tobytes())}"


CHILD = """
import os, sys, time
from zlib import crc32
import numpy as np
from pairflip import SubsetProblem, streams
streams._SAVED_SECONDS = 0.0
rng = np.random.default_rng(0)
X = rng.normal(size=(200_000, 20)); y = X[:, 0] + rng.normal(size=len(X))
def blocks():
    for i in range(0, len(y), 10_000):
        if i == int(sys.argv[2]):
            os._exit(9)
        yield X[i:i + 10_000], y[i:i + 10_000]
problem = SubsetProblem.from_blocks(blocks(), in_memory=0, journal=sys.argv[1])
print(problem.hash, crc32(problem.condensed.sample.values.tobytes()))
"""


def run_child(journal, stop):
    done = subprocess.run([sys.executable, "-c", CHILD, str(journal), str(stop)], capture_output=True, text=True)
    return done.returncode, done.stdout.strip()


def test_a_killed_pass_resumes_with_the_same_bits(tmp_path):
    code, whole = run_child(tmp_path / "whole", -1)
    assert code == 0
    for stop in (60_000, 150_000):
        assert run_child(tmp_path / "cut", stop)[0] == 9
    with np.load(tmp_path / "cut" / "moments.npz") as file:
        assert int(file["done"]) >= 100_000
    assert run_child(tmp_path / "cut", -1) == (0, whole)
    (tmp_path / "cut" / "moments.npz").write_bytes(b"damaged")
    assert run_child(tmp_path / "cut", -1) == (0, whole)
    rng = np.random.default_rng(0)  # as in the child
    X = rng.normal(size=(200_000, 20))
    y = X[:, 0] + rng.normal(size=len(X))
    assert marks(SubsetProblem.from_blocks([(X, y)], in_memory=0, journal=tmp_path / "cut")) == whole
    changed = y.copy()
    changed[150_000] += 1.0  # not among the first rows
    for other in ((X, changed), (X[:120_000], y[:120_000])):
        with pytest.raises(ValueError, match="holds sums of 200,000 other rows"):
            SubsetProblem.from_blocks([other], in_memory=0, journal=tmp_path / "cut")
    X, y = table(n_columns=20)
    with pytest.raises(ValueError, match="was made with"):
        SubsetProblem.from_blocks([(X, y)], in_memory=0, journal=tmp_path / "cut")


def test_dask_tables(tmp_path):
    dask = pytest.importorskip("dask")
    import dask.array as da
    import dask.dataframe as dd

    X, y = table(n_rows=5000)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)]).assign(target=y)
    with dask.config.set(scheduler="threads"):
        whole = SubsetProblem(X, y, names=[f"c{j}" for j in range(12)])
        many = dd.from_pandas(frame, npartitions=13)
        told = SubsetProblem.from_blocks(many, y="target", in_memory=0)
        arrays = SubsetProblem.from_blocks(da.from_array(X, (700, 5)), da.from_array(y, 700), in_memory=0)
        small = SubsetProblem.from_blocks(many, y="target")
    assert told.rows_present == arrays.rows_present == 5000
    assert small.hash == whole.hash
    at_once = SubsetProblem.from_blocks([(X, y)], in_memory=0)
    for problem in (told, arrays):
        np.testing.assert_allclose(problem.energy([0, 3]), whole.energy([0, 3]), rtol=1e-9)
        assert problem.condensed.count.tolist() == at_once.condensed.count.tolist()  # rows are in the same blocks
        assert np.array_equal(problem.condensed.sample.values, at_once.condensed.sample.values)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_dask_survives_a_killed_worker(tmp_path):
    pytest.importorskip("distributed")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200_000, 20)), columns=[f"c{j}" for j in range(20)])
    frame["y"] = frame["c3"] + np.random.default_rng(1).normal(size=len(frame))
    frame.to_parquet(tmp_path / "table.parquet", row_group_size=5_000)
    code = KILLED.replace("FILE", str(tmp_path / "table.parquet"))
    for _ in range(20):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
        hashes = done.stdout.split()
        assert len(set(hashes)) == 1, done.stderr[-2000:]


KILLED = """
import os, signal, threading, time
import dask.dataframe as dd
from distributed import Client, LocalCluster
from pairflip import SubsetProblem
if __name__ == "__main__":
    with LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster):
        frame = dd.read_parquet("FILE", split_row_groups=True)
        print(SubsetProblem.from_blocks(frame, y="y", in_memory=0).hash)
        def kill():
            time.sleep(0.3)
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        threading.Thread(target=kill).start()
        print(SubsetProblem.from_blocks(frame, y="y", in_memory=0).hash)
"""
