"""Preprocessing is fitted on the training rows of every fold, for every loss, and nothing held out touches it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from _errors import sentence_of
from pairflip import SizeCurve, SubsetProblem, compare, select_size
from pairflip.preprocessing import MSC, SNV, Impute, SavitzkyGolay
from pairflip.selection.folds import as_folds

M, N = 36, 9
rng = np.random.default_rng(3)
SPECTRA = np.cumsum(rng.normal(size=(M, N)), axis=1) * rng.uniform(0.5, 2.0, (M, 1)) + rng.normal(size=(M, 1)) + 5.0
HOLES = np.where(rng.random((M, N)) < 0.1, np.nan, SPECTRA)
ETA = (SPECTRA[:, 2] - SPECTRA[:, 6]) / 3.0
TARGETS = {
    "squares": ETA + 0.3 * rng.normal(size=M),
    "several": np.column_stack([ETA, SPECTRA[:, 4]]) + 0.3 * rng.normal(size=(M, 2)),
    "logistic": np.where(ETA + rng.logistic(size=M) > 0, "yes", "no"),
    "multinomial": np.digitize(ETA + rng.normal(size=M), [-0.5, 0.5]),
    "poisson": rng.poisson(np.exp(np.clip(ETA, -2, 2))).astype(float),
    "cox": np.column_stack([rng.exponential(np.exp(-ETA)) + 0.01, rng.random(M) < 0.7]).astype(float),
}
KINDS = {
    **{name: {"loss": name} for name in TARGETS if name != "several"},
    "several": {},
    "positive": {"positive": True},
    "groups": {"groups": {"first": [0, 1, 2], "second": [5, 6]}},
    "forced, weighted": {"always": [3], "sample_weight": np.r_[0.0, np.linspace(0.5, 2.0, M - 1)]},
}
STEPS = {
    "msc": (MSC(), SPECTRA),
    "median": (Impute("median", indicator=False), HOLES),
    "knn": (make_pipeline(Impute("knn", n_neighbors=3, indicator=False), StandardScaler()), HOLES),
}


def target(kind):
    return TARGETS.get(kind, TARGETS["squares"])


def garbage(X, rows, seed=9):
    """The table with other values, some of them missing, in some rows."""
    rng = np.random.default_rng(seed)
    X = X.copy()
    X[rows] = 40.0 * rng.standard_normal((len(rows), X.shape[1]))
    if np.isnan(X).any():
        X[rows[0], 1] = np.nan
    return X


def quietly(run, *args, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(*args, **how)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fold_is_that_of_a_loop_by_hand(kind):
    options, y = KINDS[kind], target(kind)
    how = dict(sizes=(1, 2), cv=4, seed=1, prove=False, ridge=[0.1] if "loss" in options else None)
    problem = SubsetProblem(SPECTRA, y, preprocess=MSC(), **options)
    curve = quietly(select_size, problem, **how)
    folds = as_folds(4, problem, None, 1)
    for fold, left_out in enumerate(folds.left_out):
        training = np.setdiff1d(np.flatnonzero(problem.sample_weight > 0), left_out)
        table = MSC().fit(SPECTRA[training]).transform(SPECTRA)
        alone = quietly(select_size, SubsetProblem(table, y, **options), **how)
        mine = curve.held_out_fold == fold
        for a, b in zip(curve.fold_supports, alone.fold_supports, strict=True):
            np.testing.assert_array_equal(a[fold][a[fold] >= 0], b[fold][b[fold] >= 0])
        np.testing.assert_allclose(curve.predictions[:, mine], alone.predictions[:, mine], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(curve.observed[mine], alone.observed[mine], rtol=1e-9, atol=1e-12)
        if curve.survival is not None:
            np.testing.assert_allclose(curve.survival.risks[:, mine], alone.survival.risks[:, mine], rtol=1e-6)
    final = SubsetProblem(MSC().fit(SPECTRA[problem.sample_weight > 0]).transform(SPECTRA), y, **options)
    np.testing.assert_array_equal(problem.X, final.X)


@pytest.mark.parametrize("kind", ["squares", "logistic", "cox", "positive", "several"])
@pytest.mark.parametrize("step", STEPS)
def test_garbage_in_held_out_rows_changes_nothing(step, kind):
    transformer, X = STEPS[step]
    options, y = {**KINDS[kind], "preprocess": transformer}, target(kind)
    how = dict(sizes=(1, 2), cv=4, seed=1, prove=False, stability=2, ridge=[0.1] if "loss" in options else None)
    problem = SubsetProblem(X, y, **options)
    before = quietly(select_size, problem, **how)
    rows = as_folds(4, problem, None, 1).left_out[2]
    spoiled = SubsetProblem(garbage(X, rows), y, **options)
    after = quietly(select_size, spoiled, **how)
    np.testing.assert_array_equal(problem.held_out(rows).columns, spoiled.held_out(rows).columns)
    mine = before.held_out_fold == 2
    assert not np.allclose(before.predictions[1:, mine], after.predictions[1:, mine])
    for a, b in zip(before.fold_supports, after.fold_supports, strict=True):
        np.testing.assert_array_equal(a[2], b[2])
    # A row that kept its values is predicted as before, beside garbage.
    kept = garbage(X, rows[1:])
    kept_rows = quietly(select_size, SubsetProblem(kept, y, **options), **how)
    first = mine & (before.held_out_rows == rows[0])
    np.testing.assert_allclose(before.predictions[:, first], kept_rows.predictions[:, first], rtol=1e-6)


def test_garbage_in_rows_set_aside_by_outer_folds():
    problem = SubsetProblem(HOLES, TARGETS["squares"], preprocess=Impute("knn"))
    how = dict(sizes=(1, 2), cv=4, outer=3, seed=1, prove=False)
    before = quietly(select_size, problem, **how).outer
    rows = before.rows[before.fold == 1]
    spoiled = SubsetProblem(garbage(HOLES, rows[1:]), TARGETS["squares"], preprocess=Impute("knn"))
    after = quietly(select_size, spoiled, **how).outer
    first = before.rows == rows[0]
    assert before.predictions[first] == after.predictions[first]
    assert not np.allclose(before.predictions, after.predictions)


@pytest.mark.parametrize("step", [SNV(), make_pipeline(SNV(), SavitzkyGolay(5, 2, 1))])
def test_row_wise_steps_need_no_folds(step):
    problem = SubsetProblem(SPECTRA, TARGETS["squares"], preprocess=step)
    plain = SubsetProblem(step.fit_transform(SPECTRA), TARGETS["squares"])
    assert problem.in_fold(np.arange(5)) is problem
    curve, other = (select_size(each, (1, 2), 4, stability=2, null=1) for each in (problem, plain))
    np.testing.assert_array_equal(curve.predictions, other.predictions)
    np.testing.assert_array_equal(curve.predict(SPECTRA, 2), other.predict(plain.X, 2))


def test_scaled_columns_give_the_same_answer_everywhere():
    """Least squares does not see how columns are scaled, so that any mistake of a fold would show."""
    X, y = SPECTRA, TARGETS["squares"]
    how = dict(sizes=(1, 2, 3), cv=4, stability=3, null=1, outer=3, ridge=[0.0, 0.1])
    curve = quietly(select_size, SubsetProblem(X, y), preprocess=StandardScaler(), **how)
    plain = quietly(select_size, SubsetProblem(X, y), **how)
    np.testing.assert_allclose(curve.predictions, plain.predictions, rtol=1e-8)
    np.testing.assert_allclose(curve.outer.predictions, plain.outer.predictions, rtol=1e-8)
    np.testing.assert_allclose(curve.null.r2, plain.null.r2, rtol=1e-7)
    for a, b in zip(curve.stability.supports, plain.stability.supports, strict=True):
        np.testing.assert_array_equal(a, b)
    for size in (1, 3):
        a, b = (quietly(each.predict, X + 0.1, size, interval=0.8) for each in (curve, plain))
        np.testing.assert_allclose([a.lower, a.upper], [b.lower, b.upper], rtol=1e-8)
    methods = ["quick", "omp", "lassocv"]
    mine, others = (
        compare(each, (1, 2), 4, methods=methods)
        for each in (SubsetProblem(X, y, preprocess=StandardScaler()), SubsetProblem(X, y))
    )
    for a, b in zip(mine.methods, others.methods, strict=True):
        assert a.note == b.note == ""
        assert a.cv_error == pytest.approx(b.cv_error, rel=1e-3)


def test_methods_that_are_compared_learn_from_the_table_of_their_fold():
    seen = []

    class Spy(LinearRegression):
        def fit(self, X, y):
            seen.append(X)
            return super().fit(X, y)

        def predict(self, X):
            seen.append(X)
            return super().predict(X)

    problem = SubsetProblem(SPECTRA, TARGETS["squares"], preprocess=MSC())
    compare(problem, (1,), 4, methods=["omp"], peers={"spy": Spy()})
    for left_out in as_folds(4, problem, None, 0).left_out:
        training = np.setdiff1d(np.arange(M), left_out)
        table = MSC().fit(SPECTRA[training]).transform(SPECTRA)
        for rows in (training, left_out):
            assert any(X.shape == table[rows].shape and np.allclose(X, table[rows], rtol=1e-9) for X in seen)


@pytest.mark.parametrize("budget", [0, 2**30])
def test_workers_resume_and_memory_give_the_same(tmp_path, budget):
    y, how = TARGETS["squares"], dict(sizes=(1, 2), cv=4, seed=1, progress=False)
    problem = SubsetProblem(HOLES, y, preprocess=Impute("knn"))
    curve = select_size(problem, **how)
    other = SubsetProblem(HOLES, y, preprocess=Impute("knn"), memory_budget=budget)
    again = select_size(other, **how, n_jobs=2, journal=tmp_path)
    resumed = select_size(other, **how, journal=tmp_path)
    np.testing.assert_allclose(curve.predictions, again.predictions, rtol=1e-9)
    np.testing.assert_array_equal(again.predictions, resumed.predictions)
    changed = SubsetProblem(HOLES, y, preprocess=Impute("knn", n_neighbors=4), memory_budget=budget)
    with pytest.raises(ValueError, match="preprocess"):
        select_size(changed, **how, journal=tmp_path)


@pytest.mark.parametrize("kind", ["squares", "logistic", "several"])
def test_a_saved_curve_predicts_raw_rows(tmp_path, kind):
    problem = SubsetProblem(HOLES, target(kind), preprocess=make_pipeline(Impute(), StandardScaler()), **KINDS[kind])
    curve = quietly(select_size, problem, (1, 2), 4)
    curve.save(tmp_path / "curve.json")
    loaded = SizeCurve.load(tmp_path / "curve.json")
    rows = garbage(HOLES, np.arange(3))
    np.testing.assert_array_equal(quietly(curve.predict, rows, 2), quietly(loaded.predict, rows, 2))
    frame = pd.DataFrame(rows, columns=loaded.raw_names)[loaded.raw_names[::-1]].assign(other="text")
    np.testing.assert_array_equal(quietly(curve.predict, rows, 2), quietly(loaded.predict, frame, 2))
    assert loaded.names[N:] == [f"missing(x{j})" for j in np.flatnonzero(np.isnan(HOLES).any(axis=0))]
    assert loaded.settings["preprocess"] == "missing values filled by the median, then columns standardized"


def test_a_file_says_what_it_could_not_keep(tmp_path):
    curve = select_size(SubsetProblem(SPECTRA, TARGETS["squares"], preprocess=PCA(5)), (1, 2), 4)
    assert curve.names == [f"pca{j}" for j in range(5)]
    assert np.isfinite(quietly(curve.predict, SPECTRA, 2, interval=0.8).lower).all()
    curve.save(tmp_path / "curve.json")
    loaded = SizeCurve.load(tmp_path / "curve.json")
    assert loaded.preprocess is None
    assert "could not keep its preprocessing (PCA)" in sentence_of(ValueError, lambda: loaded.predict(SPECTRA, 2))


def test_categories_that_only_some_rows_have():
    """A one-hot column of a category that a fold has not seen is zero there, and no candidate."""
    kinds = np.resize(["a", "b", "c"], M).astype(object)
    kinds[4] = "rare"
    frame = pd.DataFrame({"kind": kinds, "x": HOLES[:, 0], "z": HOLES[:, 6]})
    categories = ("kind", OneHotEncoder(handle_unknown="ignore"), ["kind"])
    steps = ColumnTransformer([categories, ("number", SimpleImputer(), ["x", "z"])])
    y = TARGETS["squares"] + 2.0 * (kinds == "b")
    problem = SubsetProblem(frame, y, preprocess=steps)
    assert problem.names[3] == "kind__kind_rare"
    part = problem.in_fold(np.array([3, 4]))
    assert not part.X[:, 3].any()
    np.testing.assert_array_equal(part.X[:, :3], problem.X[:, :3])
    curve = quietly(select_size, problem, (1, 2, 3), "loo", outer=3, stability=2)
    assert np.isfinite(curve.predictions).all()
    told, by_place = (quietly(curve.predict, each[::-1], 3) for each in (frame, frame.to_numpy()))
    np.testing.assert_array_equal(told, by_place)


def test_bad_preprocessing_is_refused_in_one_sentence():
    y = TARGETS["squares"]

    def refused(error, transformer, X=SPECTRA, **options):
        return sentence_of(error, lambda: SubsetProblem(X, y, preprocess=transformer, **options))

    assert "preprocess is 'snv'; expected a scikit-learn transformer" in refused(TypeError, "snv")
    assert "expected a scikit-learn transformer" in refused(TypeError, StandardScaler)
    assert "PCA" in refused(ValueError, PCA(2), HOLES)
    assert "NaN or infinity in column 'x0'" in refused(ValueError, StandardScaler(), HOLES)
    assert "always names the column 'x0'" in refused(ValueError, PCA(2), always=["x0"])
    forced = SubsetProblem(SPECTRA, y, always=[1])
    assert "other columns" in sentence_of(ValueError, lambda: forced.preprocessed(PCA(2)))
    np.testing.assert_array_equal(forced.preprocessed(StandardScaler()).always, [1])
    twice = forced.preprocessed(StandardScaler())
    assert "preprocess already" in sentence_of(ValueError, lambda: twice.preprocessed(SNV()))
    curve = select_size(twice, (1, 2), 4)
    few = pd.DataFrame(SPECTRA[:, :8], columns=curve.raw_names[:8])
    assert "X lacks the column 'x8'" in sentence_of(ValueError, lambda: curve.predict(few))
    words = "X has 3 columns, but the model was made from 9"
    assert words in sentence_of(ValueError, lambda: curve.predict(SPECTRA[:, :3]))


def test_a_given_transformer_is_left_alone_and_draws_the_same_numbers():
    noisy = Impute(noise=1.0, random_state=4)
    problem = SubsetProblem(HOLES, TARGETS["squares"], preprocess=noisy)
    assert not hasattr(noisy, "fill_")
    assert problem.preprocess is not noisy
    other = SubsetProblem(HOLES, TARGETS["squares"], preprocess=clone(noisy))
    assert problem.hash == other.hash
    np.testing.assert_array_equal(problem.in_fold(np.arange(4)).X, other.in_fold(np.arange(4)).X)
    random = SubsetProblem(SPECTRA, TARGETS["squares"], preprocess=PCA(3, svd_solver="randomized"))
    assert random.preprocess.random_state == 0
