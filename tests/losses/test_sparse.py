"""Sparse tables give what the same dense tables give, and are never written out."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import check_estimator_sparse_array, check_estimator_sparse_matrix

from _errors import sentence_of
from pairflip import (
    BayesianSubsetRegressor,
    SubsetClassifier,
    SubsetClassifierCV,
    SubsetProblem,
    SubsetRegressor,
    SubsetRegressorCV,
    best_subset,
    compare,
    posterior,
    prove,
    select_size,
)
from pairflip.losses.sparse import SparseForm
from pairflip.moments import Form
from pairflip.selection.facts import table_facts

M = 60
WEIGHTS = np.linspace(0.0, 2.0, M)
OPTIONS = {
    "plain": {},
    "no intercept": {"center": None},
    "centred once": {"center": "global"},
    "forced": {"always": [7, 9]},
    "weights": {"sample_weight": WEIGHTS},
    "ridge": {"ridge": 0.3},
    "everything": {"always": [7], "sample_weight": WEIGHTS, "ridge": 0.2},
    "bands": {"min_distance": 2},
    "one of each group": {"groups": [f"g{j // 3}" for j in range(24)], "one_per_group": True},
    "groups": {"groups": [f"g{j // 2}" for j in range(24)]},
    "signs": {"positive": True},
}


def table(seed, n=24, filled=0.2):
    """Columns with few values; among them constant ones, equal ones, one far from zero, one nearly that of column 7."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.uniform(size=(M, n)) < filled, rng.normal(size=(M, n)) * 3.0, 0.0)
    X[:, 1] = 3e4 + rng.normal(size=M)
    X[:, 2], X[:, 3], X[:, 5] = 4.0, 0.0, X[:, 4]
    X[:, 6] = X[:, 7] * (1.0 + 1e-3 * rng.normal(size=M))
    y = X[:, 8] - X[:, 10] + 0.5 * X[:, 4] + 0.3 * (X[:, 1] - 3e4) + 0.3 * rng.normal(size=M)
    return X, y


def stored(X, kind=sp.csr_array):
    """The same table with stored zeros and values in two parts."""
    rows, columns = np.nonzero(X != 0)
    more = np.arange(5)
    values = X[rows, columns]
    rows, columns = np.concatenate([rows, rows, more]), np.concatenate([columns, columns, more + 12])
    return kind(sp.coo_array((np.concatenate([0.25 * values, 0.75 * values, 0.0 * more]), (rows, columns)), X.shape))


def pair(X, y, kind=sp.csr_array, **options):
    """The dense problem, and the sparse one."""
    return SubsetProblem(X, y, **options), SubsetProblem(stored(X, kind), y, **options)


def close(ours, theirs, scale=1.0):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * scale)


def check_forms(dense, sparse):
    np.testing.assert_array_equal(dense.candidates, sparse.candidates)
    close(dense.yy, sparse.yy)
    close(dense.B, sparse.B, np.sqrt(dense.yy))
    close(dense.penalty, sparse.penalty)
    close(dense.matrix, sparse.matrix)
    close(dense.columns, sparse.columns)
    np.testing.assert_array_equal(sparse.matrix, sparse.matrix.T)
    row = np.empty(sparse.n_columns)
    sparse.write_rows([3], [row])
    close(row, dense.row(3))
    vectors = np.random.default_rng(0).normal(size=(3, dense.n_rows))
    close(dense.products(vectors), sparse.products(vectors))
    close(dense.on_rows(np.arange(9)), sparse.on_rows(np.arange(9)))


@pytest.mark.parametrize("filled", [0.05, 0.5])
@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in ("groups", "signs")])
def test_forms_of_all_rows_and_of_folds(name, filled):
    X, y = table(0, filled=filled)
    dense, sparse = pair(X, y, **OPTIONS[name])
    assert isinstance(sparse.form, SparseForm)
    assert type(dense.form) is Form
    check_forms(dense.form, sparse.form)
    for rows in ([4], range(10, 30), range(25)):
        check_forms(dense.held_out(list(rows)), sparse.held_out(list(rows)))
    if not dense.ridge:
        dense, sparse = dense.with_shrinkage(0.4), sparse.with_shrinkage(0.4)
        check_forms(dense.held_out(range(10)), sparse.held_out(range(10)))


def check_curves(dense, sparse):
    """Two curves are the same to rounding."""
    for name in ("cv_error", "cv_error_se", "energies", "bic"):
        close(getattr(dense, name), getattr(sparse, name))
    for ours, theirs in zip(dense.supports, sparse.supports, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(dense.coefs, sparse.coefs, strict=True):
        close(ours, theirs, np.max(np.abs(ours), initial=1.0))
    np.testing.assert_allclose(dense.intercepts, sparse.intercepts, rtol=1e-7, atol=1e-7)
    proofs = [[None if proof is None else proof.columns for proof in c.proved or ()] for c in (dense, sparse)]
    assert proofs[0] == proofs[1]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", OPTIONS)
def test_curves(name, seed):
    X, y = table(seed)
    dense, sparse = (select_size(p, sizes=range(1, 5), cv=5, seed=1) for p in pair(X, y, **OPTIONS[name]))
    check_curves(dense, sparse)
    rows = X[:7]
    if name != "no intercept":
        close(dense.predict(rows, size=3), sparse.predict(sp.coo_array(rows), size=3), 10.0)
    if name not in ("signs", "groups"):
        ours, theirs = (c.predict(r, size=2, interval=0.8) for c, r in ((dense, rows), (sparse, sp.csr_matrix(rows))))
        close(ours.lower, theirs.lower, 10.0)


LOSSES = {
    "several targets": ("squares", lambda y: np.column_stack([y, np.roll(y, 1) + y, y**2])),
    "logistic": ("logistic", lambda y: y > np.median(y)),
    "multinomial": ("multinomial", lambda y: np.digitize(y, np.quantile(y, [0.3, 0.7]))),
    "poisson": ("poisson", lambda y: np.random.default_rng(0).poisson(np.exp(0.3 * np.clip(y, -4, 4)))),
    "cox": ("cox", lambda y: np.column_stack([np.exp(0.2 * np.clip(y, -9, 9)), np.arange(M) % 3 > 0])),
}


@pytest.mark.parametrize("more", ["plain", "weights", "forced", "groups", "bands"])
@pytest.mark.parametrize("loss", LOSSES)
def test_other_losses(loss, more):
    X, y = table(3)
    kind, target = LOSSES[loss]
    options = {**OPTIONS[more], "loss": kind, **({} if kind == "squares" else {"ridge": 0.01})}
    dense, sparse = pair(X, target(y), **options)
    np.testing.assert_array_equal(dense.candidates, sparse.candidates)
    close(dense.form.yy, sparse.form.yy)
    np.testing.assert_allclose(dense.form.working.matrix, sparse.form.working.matrix, rtol=1e-8, atol=1e-8)
    check_curves(*(select_size(p, sizes=[1, 2, 3], cv=4, seed=0, effort="quick") for p in (dense, sparse)))


@pytest.mark.parametrize("options", [{}, {"ridge": 0.5}, {"always": [7], "sample_weight": WEIGHTS}])
def test_searches_proofs_and_posteriors(options):
    X, y = table(5)
    dense, sparse = pair(X, y, **options)
    ours, theirs = (best_subset(p, 4, seed=2) for p in (dense, sparse))
    np.testing.assert_array_equal(ours.best_support, theirs.best_support)
    close(ours.best_energy, theirs.best_energy)
    ours, theirs = (prove(p, 3, n_best=4) for p in (dense, sparse))
    assert ours.optimal == theirs.optimal
    np.testing.assert_array_equal(ours.support, theirs.support)
    close(ours.energy, theirs.energy)
    if options.get("ridge"):
        return
    ours, theirs = (posterior(p, sizes=range(4)) for p in (dense, sparse))
    close(ours.inclusion_probability, theirs.inclusion_probability)
    close(ours.coef_mean, theirs.coef_mean)
    for a, b in zip(ours.predict(X, True), theirs.predict(sp.csc_matrix(X), True), strict=True):
        close(a, b, 10.0)


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_matrix", "csc_array", "lil_array", "dok_array"])
def test_all_kinds_of_sparse_tables(kind):
    X, y = table(1)
    close(SubsetProblem(X, y).form.matrix, SubsetProblem(getattr(sp, kind)(X), y).form.matrix)


def test_whole_numbers_truth_values_and_frames():
    pd = pytest.importorskip("pandas")
    X, y = table(2)
    X = np.round(X)
    whole = SubsetProblem(X, y)
    close(whole.form.matrix, SubsetProblem(sp.csr_array(X.astype(np.int32)), y).form.matrix)
    close(SubsetProblem(X != 0, y).form.matrix, SubsetProblem(sp.csr_array(X != 0), y).form.matrix)
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(X.shape[1])])
    sparse = SubsetProblem(frame.astype(pd.SparseDtype("float64", 0.0)), y)
    assert sp.issparse(sparse.X)
    assert sparse.names == list(frame.columns)
    close(whole.form.matrix, sparse.form.matrix)


def test_the_table_of_the_user_is_left_alone():
    X, y = table(4)
    given = stored(X, sp.csc_array)
    before = given.data.copy(), given.indices.copy(), given.indptr.copy()
    SubsetProblem(given, y)
    for ours, theirs in zip((given.data, given.indices, given.indptr), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_facts_and_half_samples():
    X, y = table(6)
    X[[1, 2]], y[[1, 2]] = X[0], y[0]
    X[:, 23] = 2.0 * y
    dense, sparse = pair(X, y)
    assert table_facts(dense) == table_facts(sparse)
    assert table_facts(sparse)["identical_rows"] == 2
    dense, sparse = pair(X[:, :22], y)
    ours, theirs = (select_size(p, sizes=[2, 3], cv=5, stability=6, seed=0) for p in (dense, sparse))
    for a, b in zip(ours.stability.supports, theirs.stability.supports, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(ours.stability.coefs, theirs.stability.coefs, strict=True):
        close(a, b)


def test_identity():
    X, y = table(0)
    one, same, other = (SubsetProblem(kind, y).hash for kind in (stored(X), sp.coo_array(X), sp.csr_array(2.0 * X)))
    assert one == same
    assert one != other


# Memory ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def largest(monkeypatch):
    """The most numbers that any sparse table was written out to."""
    most = [0]
    for kind in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, counted(getattr(kind, name), most))
    return most


def counted(written, most):
    """A method that writes a table out, and how many numbers that were."""

    def counting(self, *args, **how):
        most[0] = max(most[0], int(np.prod(self.shape)))
        return written(self, *args, **how)

    return counting


def large(seed=0, shape=(3000, 1200), filled=0.01):
    rng = np.random.default_rng(seed)
    X = sp.random_array(shape, density=filled, rng=rng, format="csr")
    return X, X[:, [5, 100, 800]].sum(axis=1) + 0.1 * rng.normal(size=shape[0])


@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_no_dense_copy(largest, monkeypatch, loss):
    monkeypatch.setattr("pairflip.sparse._BLOCK", 2**16)
    monkeypatch.setattr("pairflip.projection.BYTES", 2**19)
    X, y = large()
    budget = 2**20
    problem = SubsetProblem(X, y if loss == "squares" else y > 0.01, loss=loss, memory_budget=budget)
    assert not problem.form.dense
    curve = select_size(problem, sizes=[1, 2], cv=3, effort="quick", seed=0)
    assert set(curve.supports[curve.at(2)]) <= {5, 100, 800}
    assert largest[0] < 0.1 * X.shape[0] * X.shape[1]


def test_the_same_without_the_matrix():
    X, y = large(1, (80, 1200), filled=0.2)
    dense, sparse = (SubsetProblem(each, y, memory_budget=2**20) for each in (X.toarray(), X))
    check_curves(*(select_size(p, sizes=[1, 2, 3], cv=5, seed=0) for p in (dense, sparse)))


# What is refused ------------------------------------------------------------------------------------------------------


def test_values_that_are_missing():
    X, y = table(0)
    X[3, 8], X[4, 8] = np.nan, np.inf
    message = sentence_of(ValueError, lambda: SubsetProblem(sp.csr_array(X), y))
    assert "NaN or infinity in column 'x8' (2 values)" in message


def test_complex_numbers():
    X, y = table(0)
    assert "complex" in sentence_of(ValueError, lambda: SubsetProblem(sp.csr_array(X + 1j), y))


def test_what_needs_all_columns_as_ordinary_numbers():
    X, y = large()
    problem = SubsetProblem(X, y, memory_budget=2**20)
    groups = {"groups": [f"g{j // 2}" for j in range(1200)], "memory_budget": 12 * 2**20}
    for call in (
        lambda: best_subset(problem, 2, method="anneal", effort="quick"),
        lambda: compare(problem, [1], cv=3, methods=["omp"]),
        lambda: SubsetProblem(X, y, **groups),
    ):
        message = sentence_of(ValueError, call)
        assert "as ordinary numbers" in message
        assert f"memory_budget={8 * 3000 * 1200}" in message


# Estimators -----------------------------------------------------------------------------------------------------------

ESTIMATORS = [
    SubsetRegressor(2, effort="quick"),
    SubsetRegressorCV([1, 2], cv=3, effort="quick"),
    SubsetClassifier(2, effort="quick"),
    SubsetClassifierCV([1, 2], cv=3, effort="quick", ridge=0.01),
    BayesianSubsetRegressor(sizes=[0, 1, 2]),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scikit_learn_checks(estimator):
    assert estimator.__sklearn_tags__().input_tags.sparse
    for check in (check_estimator_sparse_array, check_estimator_sparse_matrix):
        check(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_estimators(estimator):
    X, y = table(7)
    y = np.where(y > 0, "yes", "no") if "Classifier" in type(estimator).__name__ else y
    estimator.set_params(**({} if "Bayesian" in type(estimator).__name__ else {"random_state": 0}))
    whole, sparse = (estimator.__class__(**estimator.get_params()).fit(each, y) for each in (X, sp.csr_array(X)))
    np.testing.assert_array_equal(whole.support_, sparse.support_)
    close(whole.coef_, sparse.coef_)
    if "Classifier" in type(estimator).__name__:
        close(whole.predict_proba(X), sparse.predict_proba(sp.csc_array(X)))
    else:
        close(whole.predict(X), sparse.predict(sp.coo_array(X)), 10.0)
    close(whole.transform(X), sparse.transform(sp.csr_array(X)).toarray())
