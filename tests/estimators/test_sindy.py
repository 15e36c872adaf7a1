"""The optimizer for PySINDy: the same choices as our own searches, in the places where PySINDy puts an optimizer."""

import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest

ps = pytest.importorskip("pysindy", reason="PySINDy is not installed: pip install 'pairflip[sindy]'")

from sklearn.exceptions import NotFittedError  # noqa: E402

from pairflip.sindy import SubsetOptimizer  # noqa: E402

DT = 0.01


def lorenz(seconds=4.0, noise=0.0, start=(-8.0, 8.0, 27.0)):
    """Points (m, 3) of a trajectory."""
    from scipy.integrate import solve_ivp

    t = np.arange(0, seconds, DT)

    def rhs(_, x):
        return [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]

    x = solve_ivp(rhs, (0, t[-1]), start, t_eval=t, rtol=1e-9, atol=1e-9).y.T
    return x + noise * np.random.default_rng(0).normal(size=x.shape)


TRUE = [{1, 2}, {1, 2, 6}, {3, 5}]  # among 10 polynomials of degree 2


@pytest.fixture(scope="module")
def table():
    """Terms with a constant among them (60, 9), and two targets of known terms with noise."""
    rng = np.random.default_rng(0)
    X = np.hstack([np.ones((60, 1)), rng.normal(size=(60, 8)) * 10.0 ** rng.integers(-2, 3, 8)])
    Y = np.stack([3.0 + 2.0 * X[:, 4] / X[:, 4].std(), X[:, 2] / X[:, 2].std() - X[:, 7] / X[:, 7].std()], axis=1)
    return X, Y + 0.3 * rng.normal(size=Y.shape)


def terms(optimizer):
    return [set(np.flatnonzero(row).tolist()) for row in optimizer.coef_]


def best_by_trying(X, y, k, alpha=0.0, forced=()):
    """Lowest sum of squares plus ridge over all supports of k terms beside the forced ones."""
    free = [j for j in range(X.shape[1]) if j not in forced]

    def energy(support):
        columns = [*forced, *support]
        penalty = np.diag([0.0] * len(forced) + [alpha**0.5] * len(support))
        A = np.vstack([X[:, columns], penalty])
        b = np.append(y, np.zeros(len(columns)))
        return float(np.square(b - A @ np.linalg.lstsq(A, b, rcond=None)[0]).sum())

    return {*forced, *min(combinations(free, k), key=energy)}


@pytest.mark.parametrize(("k", "alpha", "forced"), [(1, 0.0, ()), (3, 0.0, ()), (2, 5.0, ()), (2, 0.0, (0, 3))])
def test_the_terms_are_the_best_of_all(table, k, alpha, forced):
    X, Y = table
    optimizer = SubsetOptimizer(k, alpha, forced=forced).fit(X, Y)
    assert terms(optimizer) == [best_by_trying(X, y, k, alpha, forced) for y in Y.T]
    assert all(proof.optimal for proof in optimizer.proof_)
    for e, chosen in enumerate(terms(optimizer)):  # without the ridge: PySINDy's `unbias`
        columns = sorted(chosen)
        np.testing.assert_allclose(
            optimizer.coef_[e, columns], np.linalg.lstsq(X[:, columns], Y[:, e], rcond=None)[0], rtol=1e-9
        )


def test_biased_coefficients_are_those_of_ridge_regression(table):
    X, Y = table
    optimizer = SubsetOptimizer(2, 4.0, forced=[1], unbias=False).fit(X, Y)
    for row, y in zip(optimizer.coef_, Y.T, strict=True):
        S = np.flatnonzero(row)
        penalty = np.diag(np.where(S == 1, 0.0, 4.0))
        np.testing.assert_allclose(row[S], np.linalg.solve(X[:, S].T @ X[:, S] + penalty, X[:, S].T @ y), rtol=1e-8)


@pytest.mark.parametrize("n_terms", ["cv", "aic", None])
def test_the_number_of_terms_is_chosen(table, n_terms):
    X, Y = table
    optimizer = SubsetOptimizer(n_terms, [0.0, 0.01], max_terms=6).fit(X, Y)
    assert optimizer.n_terms_ == [2, 2]
    assert terms(optimizer) == [{0, 4}, {2, 7}]
    assert {scores.shape for scores in optimizer.scores_} == {(2, 6 if n_terms == "aic" else 7)}


def test_the_scores_are_errors_of_blocks_that_were_left_out(table):
    X, Y = table
    optimizer = SubsetOptimizer("cv", max_terms=2, blocks=4).fit(X, Y)
    errors = []
    for block in np.array_split(np.arange(60), 4):
        rest = np.setdiff1d(np.arange(60), block)
        S = sorted(best_by_trying(X[rest], Y[rest, 0], 2))
        coef = np.linalg.lstsq(X[rest][:, S], Y[rest, 0], rcond=None)[0]
        errors.append(np.mean(np.square(Y[block, 0] - X[block][:, S] @ coef)))
    expected = np.mean(errors) / np.square(Y[:, 0]).sum()  # each target counts as one
    assert optimizer.scores_[0][0, 2] == pytest.approx(expected, rel=1e-9)


def test_the_aic_is_that_of_the_last_rows_and_learns_nothing_from_them(table):
    X, Y = table
    options = {"max_terms": 3, "validation": 20}
    first = SubsetOptimizer("aic", refit=False, **options).fit(X, Y)
    columns = sorted(terms(first)[0])
    np.testing.assert_allclose(
        first.coef_[0, columns], np.linalg.lstsq(X[:40, columns], Y[:40, 0], rcond=None)[0], rtol=1e-9
    )
    again = SubsetOptimizer("aic", **options).fit(X, Y)
    np.testing.assert_allclose(again.coef_[0, columns], np.linalg.lstsq(X[:, columns], Y[:, 0], rcond=None)[0])
    residual = Y[40:, 0] - X[40:] @ first.coef_[0]
    k = 2 * len(columns)  # of both equations
    rss = np.square(residual).sum() / np.square(Y[:, 0]).sum()
    expected = 20 * np.log(rss / 20) + 2 * k + 2 * (k + 1) * (k + 2) / (20 - k - 2)
    assert first.scores_[0][0, len(columns) - 1] == pytest.approx(expected, rel=1e-9)


def test_noise_has_no_terms_and_an_absent_derivative_none():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 6)), np.zeros((80, 2))
    Y[:, 0] = rng.normal(size=80)
    optimizer = SubsetOptimizer().fit(X, Y)
    assert optimizer.n_terms_ == [0, 0]
    assert not optimizer.coef_.any()
    assert optimizer.complexity == 0


def test_equations_may_share_their_terms(table):
    X, Y = table
    together = SubsetOptimizer(3, shared=True).fit(X, Y)
    assert len({frozenset(chosen) for chosen in terms(together)}) == 1
    scaled = Y / np.linalg.norm(Y, axis=0)

    def energy(S):
        return np.linalg.lstsq(X[:, S], scaled, rcond=None)[1].sum()

    assert terms(together)[0] == set(min(combinations(range(9), 3), key=lambda S: energy(list(S))))
    assert together.proof_[0] is together.proof_[1]
    Z = np.hstack([Y, Y[:, :1] ** 2])
    some = SubsetOptimizer(2, shared=[[0, 2]]).fit(X, Z)
    assert terms(some)[0] == terms(some)[2]
    assert terms(some)[1] == {2, 7}


def test_half_samples_of_blocks_say_how_stable_the_terms_are(table):
    X, Y = table
    optimizer = SubsetOptimizer(2, stability=10).fit(X, Y)
    for e, stability in enumerate(optimizer.stability_):
        assert stability.pairs == 10
        assert "blocks" in stability.how
        assert [stability.frequency(j) for j in terms(optimizer)[e]] == [1.0, 1.0]
    assert SubsetOptimizer(2).fit(X, Y).stability_ == [None, None]


def test_copies_of_a_term_are_named(table):
    X, Y = table
    doubled = np.hstack([X, 5.0 * X[:, [2]], 7.0 * X[:, [0]]])
    with pytest.warns(UserWarning, match="equal up to a factor") as said:
        optimizer = SubsetOptimizer([2, 2]).fit(doubled, Y)
    assert [str(each.message).split(",")[0] for each in said] == ["terms 0", "terms 2"]
    assert "terms 0, 10 of the library are equal up to a factor on these rows (constant)" in str(said[0].message)
    assert terms(optimizer) == [{0, 4}, {2, 7}]
    with pytest.warns(UserWarning, match="term 9 stands for all of them"):
        assert SubsetOptimizer(1, forced=[9]).fit(doubled[:, :10], Y).coef_[:, 2].tolist() == [0.0, 0.0]
    with (
        pytest.warns(UserWarning, match="equal"),
        pytest.raises(ValueError, match="n_terms is 10, but the library has 9 distinct"),
    ):
        SubsetOptimizer(10).fit(doubled, Y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_terms": [2]}, r"n_terms is \[2\]; expected a whole number, one for each of the 2 equations"),
        ({"n_terms": -1}, "n_terms is -1"),
        ({"alpha": -1.0}, "alpha is -1.0; expected a number >= 0"),
        ({"forced": [9]}, "forced has 9, but the library has 9 terms; expected indices from 0 to 8"),
        ({"shared": [[0, 2]]}, "each from 0 to 1 once"),
        ({"blocks": 1}, "blocks is 1; expected a whole number of at least 2"),
        ({"n_terms": "aic", "validation": 59}, "validation is 59, of 60 rows"),
    ],
)
def test_what_cannot_be_meant_is_refused(table, options, words):
    with pytest.raises(ValueError, match=words):
        SubsetOptimizer(**options).fit(*table)


# What PySINDy expects of its optimizers.


@pytest.mark.parametrize("targets", [1, 2])
def test_shapes_history_and_complexity(table, targets):
    X, Y = table
    y = Y[:, 0] if targets == 1 else Y
    optimizer = SubsetOptimizer(3)
    with pytest.raises(NotFittedError):
        optimizer.predict(X)
    with pytest.raises(NotFittedError):
        _ = optimizer.complexity
    assert optimizer.fit(X, y) is optimizer
    assert optimizer.coef_.shape == optimizer.ind_.shape == (targets, 9)
    assert optimizer.ind_.dtype == bool
    assert [coef.shape for coef in optimizer.history_] == [(targets, 9)] * 2
    assert optimizer.complexity == np.count_nonzero(optimizer.coef_) == 3 * targets
    assert optimizer.Theta_.shape == X.shape
    assert optimizer.intercept_ == 0.0
    np.testing.assert_allclose(optimizer.predict(X), X @ optimizer.coef_.T)


def test_normalized_columns_give_coefficients_in_the_units_of_the_terms(table):
    X, Y = table
    plain, unit = (SubsetOptimizer(3, normalize_columns=norm).fit(X, Y) for norm in (False, True))
    np.testing.assert_allclose(unit.coef_, plain.coef_, rtol=1e-8)
    np.testing.assert_allclose(unit.history_[-1], unit.coef_, rtol=1e-8)


def test_weights_of_rows_count(table):
    X, Y = table
    weights = np.repeat([1.0, 0.0], [45, 15])
    some = SubsetOptimizer(2).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(some.coef_, SubsetOptimizer(2).fit(X[:45], Y[:45]).coef_, atol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_equations_of_a_trajectory(noise):
    model = ps.SINDy(optimizer=SubsetOptimizer(), feature_library=ps.PolynomialLibrary(degree=2))
    model.differentiation_method = ps.SmoothedFiniteDifference()
    model.fit(lorenz(noise=noise), t=DT)
    assert terms(model.optimizer) == TRUE
    assert all(proof.optimal for proof in model.optimizer.proof_)
    assert model.complexity == 7
    np.testing.assert_allclose(model.coefficients()[2, [3, 5]], [-8 / 3, 1.0], atol=0.1)
    assert np.isfinite(model.simulate(np.array([-8.0, 8.0, 27.0]), np.arange(0, 0.5, DT))).all()


@pytest.mark.parametrize("how", [{"bagging": True}, {"library_ensemble": True}])
def test_inside_an_ensemble(how):
    np.random.seed(0)  # noqa: NPY002 - PySINDy draws from it
    ensemble = ps.EnsembleOptimizer(SubsetOptimizer(2, effort="quick", prove=False), n_models=5, **how)
    ps.SINDy(optimizer=ensemble, feature_library=ps.PolynomialLibrary(degree=2)).fit(lorenz(), t=DT)
    assert len(ensemble.coef_list) == 5
    assert terms(ensemble)[2] == TRUE[2]


def test_with_a_weak_form():
    t = np.arange(0, 4.0, DT)
    library = ps.WeakPDELibrary(ps.PolynomialLibrary(degree=2, include_bias=False), spatiotemporal_grid=t, K=100)
    model = ps.SINDy(optimizer=SubsetOptimizer([2, 3, 2]), feature_library=library)
    np.random.seed(0)  # noqa: NPY002
    model.fit(lorenz(noise=0.1), t=t)
    assert terms(model.optimizer) == [{j - 1 for j in chosen} for chosen in TRUE]


def test_with_terms_of_a_partial_differential_equation():
    x, t = np.linspace(0, 2 * np.pi, 64, endpoint=False), np.linspace(0, 1, 80)
    u = sum(a * np.exp(-0.5 * k**2 * t) * np.sin(k * x[:, None] + a) for k, a in ((1, 1.0), (2, 0.6), (3, 0.4)))
    library = ps.PDELibrary(
        ps.PolynomialLibrary(degree=2, include_bias=False), derivative_order=2, spatial_grid=x, periodic=True
    )
    model = ps.SINDy(optimizer=SubsetOptimizer(max_terms=3), feature_library=library)
    model.fit(u[:, :, None], t=t)
    names = model.get_feature_names()
    (chosen,) = terms(model.optimizer)
    assert [names[j] for j in chosen] == ["x0_11"]
    assert model.coefficients()[0, chosen.pop()] == pytest.approx(0.5, rel=0.02)


def test_without_pysindy_it_is_said_what_to_install():
    code = "import sys; sys.modules['pysindy'] = None; import pairflip.sindy"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'pairflip[sindy]'" in done.stderr.splitlines()[-1]
    loaded = "import sys, pairflip; assert 'pysindy' not in sys.modules; from pairflip import SubsetProblem; "
    loaded += "assert 'pysindy' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0
