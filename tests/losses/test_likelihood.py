"""Classes and counts: exact fits, the penalty, forced columns, offsets, searches, and what is refused."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from pairflip import SubsetProblem, best_subset
from pairflip.losses import RIDGE

EXACT = {"tol": 1e-10, "max_iter": 10_000, "solver": "newton-cholesky"}


def table(seed, loss, rows=120, columns=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * np.logspace(-2, 3, columns) + rng.normal(size=columns)
    eta = (X - X.mean(0)) / X.std(0) @ (rng.normal(size=columns) * 0.6)
    y = (rng.random(rows) < 1 / (1 + np.exp(-eta))) if loss == "logistic" else rng.poisson(np.exp(0.5 + 0.6 * eta))
    return X, y.astype(int), rng.random(rows) + 0.2


def literal(problem, support, ridge):
    """E(S) by a general minimizer, from the definition."""
    w, y = problem.sample_weight, problem.y
    used = w > 0
    offset = np.zeros(y.size) if problem.offset is None else problem.offset
    X, W = problem.X[:, support], w.sum()
    means = np.average(X, axis=0, weights=w) if problem.center == "fold" else np.zeros(len(support))
    sd = np.sqrt(np.average((X - means) ** 2, axis=0, weights=w))
    Z = problem.X[:, problem.always]
    Z = np.column_stack([np.ones(y.size), (Z - Z.mean(0)) / Z.std(0)]) if problem.center == "fold" else Z / Z.std(0)
    D = np.column_stack([Z, (X - means) / sd])[used]
    y, w, offset, f = y[used], w[used], offset[used], Z.shape[1]

    def energy(theta):
        eta = offset + D @ theta
        logs = y * np.log(np.where(y > 0, y, 1.0)) - y
        each = np.logaddexp(0, eta) - y * eta if problem.loss.name == "logistic" else np.exp(eta) - y * eta + logs
        mean = 1 / (1 + np.exp(-eta)) if problem.loss.name == "logistic" else np.exp(eta)
        gradient = D.T @ (w * (mean - y))
        gradient[f:] += ridge * W * theta[f:]
        return w @ each + 0.5 * ridge * W * theta[f:] @ theta[f:], gradient

    if D.shape[1] == 0:
        return energy(np.zeros(0))[0]
    found = minimize(energy, np.zeros(D.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    return found.fun


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize("weighted", [False, True])
def test_default_fits_are_those_of_scikit_learn_without_penalty(loss, weighted):
    X, y, w = table(3, loss)
    w = w if weighted else None
    kind = LogisticRegression(C=np.inf, **EXACT) if loss == "logistic" else PoissonRegressor(alpha=0, **EXACT)
    support = [1, 3, 4]
    theirs = kind.fit(X[:, support], y, sample_weight=w)
    ours = SubsetProblem(X, y, loss=loss, sample_weight=w).fit(support)
    np.testing.assert_allclose(ours.coef, np.ravel(theirs.coef_), rtol=1e-3)
    near_nothing = SubsetProblem(X, y, loss=loss, sample_weight=w, ridge=1e-12).fit(support)
    np.testing.assert_allclose(near_nothing.coef, np.ravel(theirs.coef_), rtol=1e-6)
    np.testing.assert_allclose(near_nothing.intercept, np.ravel(theirs.intercept_)[0], rtol=1e-6)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_energies_are_the_minimum_of_their_definition(seed, loss):
    X, y, w = table(seed, loss)
    w[:7] = 0.0
    ridge = [RIDGE, 0.1][seed % 2]
    settings = {
        "sample_weight": w if seed % 3 else None,
        "always": [0, 2] if seed % 4 else [],
        "center": "fold" if seed % 5 else None,
        "offset": np.linspace(-1, 1, len(y)) if loss == "poisson" and seed % 2 else None,
        "ridge": None if ridge == RIDGE else ridge,
    }
    problem = SubsetProblem(X, y, loss=loss, **settings)
    assert problem.ridge == ridge
    for support in ([], [1], [1, 4], [1, 3, 4, 5]):
        assert problem.energy(support) == pytest.approx(literal(problem, support, ridge), rel=1e-7)
        fit = problem.fit(support)
        assert fit.energy == problem.energy(support)
        eta = fit.intercept + X[:, support] @ fit.coef + X[:, problem.always] @ fit.always_coef
        eta = eta + (0 if problem.offset is None else problem.offset)
        deviance = problem.loss.row_errors(problem.y, problem.loss.mean(eta))
        penalty = fit.energy - 0.5 * problem.sample_weight @ deviance
        assert -1e-9 * fit.energy <= penalty < 0.5 * fit.energy  # what is left is the penalty
        assert (penalty > 1e-7 * fit.energy) == (ridge == 0.1 and len(support) > 0) or ridge == RIDGE


def test_a_ridge_of_the_user_shrinks_and_a_row_of_weight_two_is_two_rows():
    X, y, _ = table(5, "logistic")
    plain, strong = (SubsetProblem(X, y, loss="logistic", ridge=r).fit([1, 3]) for r in (None, 10.0))
    assert np.all(np.abs(strong.coef) < 0.1 * np.abs(plain.coef))
    twice = SubsetProblem(np.vstack([X, X]), np.concatenate([y, y]), loss="logistic", ridge=0.1)
    weighted = SubsetProblem(X, y, loss="logistic", ridge=0.1, sample_weight=np.full(len(y), 2.0))
    assert twice.energy([1, 3]) == pytest.approx(weighted.energy([1, 3]), rel=1e-10)
    absent = SubsetProblem(X, y, loss="logistic", sample_weight=np.r_[np.zeros(20), np.ones(len(y) - 20)])
    assert absent.energy([1, 3]) == pytest.approx(
        SubsetProblem(X[20:], y[20:], loss="logistic").energy([1, 3]), rel=1e-12
    )


def test_separated_classes_have_a_finite_fit_and_a_remark():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    problem = SubsetProblem(X, X[:, 2] > 0, loss="logistic")
    fit = problem.fit([2])
    assert np.isfinite(fit.coef).all()
    assert 0 < fit.energy < 0.03 * problem.energy([])
    assert abs(fit.coef[0]) > 10
    assert "separate the classes" in problem.loss.remark(problem, np.array([2]))
    assert problem.loss.remark(problem, np.array([1])) == ""
    trace = best_subset(problem, 1)
    assert trace.best_support.tolist() == [2]
    assert "separate the classes" in trace.note


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array(["well", "sick"]), ["sick", "well"]),
        (np.array([False, True]), [False, True]),
        (np.array([3.5, -1.0]), [-1.0, 3.5]),
        (np.array(["b", "a"], dtype=object), ["a", "b"]),
    ],
)
def test_labels_of_any_kind_are_kept_and_sorted(labels, classes):
    X, y, _ = table(1, "logistic")
    problem = SubsetProblem(X, labels[y], loss="logistic")
    assert problem.classes.tolist() == classes
    np.testing.assert_array_equal(problem.y, labels[y] == classes[1])


BAD = [
    ({"y": np.zeros(30)}, "one class only"),
    ({"y": np.arange(30) % 3}, "3 different labels"),
    ({"y": np.array(["a", 1] * 15, dtype=object)}, "cannot be sorted"),
    ({"y": np.array([np.nan, 1.0] * 15)}, "NaN"),
    ({"y": np.arange(30) % 2, "center": "global"}, "'global'"),
    ({"y": np.arange(30) % 2, "ridge": 0.0}, "ridge is 0"),
    ({"y": np.arange(30) % 2, "offset": np.zeros(30)}, "loss='poisson' only"),
    ({"y": np.arange(30) - 3, "loss": "poisson"}, "negative numbers such as -3"),
    ({"y": np.arange(30) / 2, "loss": "poisson"}, "fractions such as 0.5"),
    ({"y": np.arange(30), "loss": "poisson", "offset": np.zeros(3)}, "offset has shape"),
    ({"y": np.zeros(30), "loss": "poisson"}, "no count above 0"),
    ({"y": np.arange(30), "loss": "gamma"}, "'squares', 'logistic', 'poisson'"),
]


@pytest.mark.parametrize(("given", "words"), BAD)
def test_bad_input_gets_one_sentence(given, words):
    X = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(ValueError, match=words.replace("(", r"\(")) as error:
        SubsetProblem(X, **({"loss": "logistic"} | given))
    assert "\n" not in str(error.value)


def test_columns_that_forced_columns_explain_are_not_candidates():
    X, y, _ = table(2, "logistic")
    X = np.column_stack([X, X[:, 0] * 2 + 1, np.ones(len(y))])
    problem = SubsetProblem(X, y, loss="logistic", always=[0])
    assert problem.candidates.tolist() == [1, 2, 3, 4, 5]


def test_forced_columns_that_separate_are_refused():
    X, _, _ = table(2, "logistic")
    with pytest.raises(ValueError, match="without error"):
        SubsetProblem(X, X[:, 0] > X[:, 0].mean(), loss="logistic", always=[0])


def harder(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 60)) + rng.normal(size=(90, 1))
    return SubsetProblem(X, rng.random(90) < 1 / (1 + np.exp(-X[:, :6].sum(1))), loss="logistic")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"method": "anneal"}, "method asks"),
        ({"schedule": "paper"}, "schedule asks"),
        ({"engine": "reference"}, "engine is 'reference'"),
        ({"engine": "cuda"}, "engine is 'cuda'"),
    ],
)
def test_what_is_for_squared_error_only_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        best_subset(harder(), 3, **given)
