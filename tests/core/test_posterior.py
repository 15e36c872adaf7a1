"""Probabilities of models: against literal sums over all of them, published numbers, and a literal walk."""

import json
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln

from _cli import invoke
from pairflip import BayesianSubsetRegressor, SubsetProblem, posterior
from pairflip.engines.numba.annealing import Walks, new_output
from pairflip.philox import STREAM_MODELS, chain_keys, philox4x32, start_order


def table(seed, n=6, m=24, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) @ (np.eye(n) + 0.4 * rng.normal(size=(n, n))) * rng.uniform(0.1, 10, n) + 3
    return X, X[:, : n // 3] @ rng.normal(size=n // 3) / np.std(X[:, 0]) + noise * rng.normal(size=m) + 5


def literal(X, y, g, log_prior, w=None, forced=None, variance=None):
    """Probabilities of all models, coefficients and their deviations, by least squares on each; forced ones last."""
    m, n = X.shape
    w = np.ones(m) if w is None else w
    Z = np.ones((m, 1)) if forced is None else forced
    root, rows, shrink = np.sqrt(w)[:, None], w.sum(), g / (1 + g)
    lift, inverse = (np.linalg.lstsq(root * Z, root * A, rcond=None)[0] for A in (X, np.eye(m)))
    models = [list(s) for k in range(n + 1) for s in combinations(range(n), k)]
    rest = lambda A: root * A - (root * Z) @ np.linalg.lstsq(root * Z, root * A, rcond=None)[0]  # noqa: E731
    X_, y_ = rest(X), rest(y[:, None])[:, 0]
    E0, nu = y_ @ y_ / 2, rows - Z.shape[1]
    logs, means, squares = [], [], []
    for s in models:
        x = np.linalg.lstsq(X_[:, s], y_, rcond=None)[0]
        E = np.sum((y_ - X_[:, s] @ x) ** 2) / 2
        fit = -nu / 2 * np.log(E + E0 / g) if variance is None else -shrink * E / variance
        logs.append(log_prior(len(s)) - len(s) / 2 * np.log(1 + g) + fit)
        v = 2 * (E0 + g * E) / ((1 + g) * (nu - 2)) if variance is None else variance
        mean, covariance = np.zeros(n), np.zeros((n, n))
        mean[s] = shrink * x
        covariance[np.ix_(s, s)] = shrink * v * np.linalg.inv(X_[:, s].T @ X_[:, s])
        forced_covariance = v * np.linalg.inv((root * Z).T @ (root * Z)) + lift @ covariance @ lift.T
        means.append(np.append(mean, inverse @ (y - X @ mean)))
        squares.append(means[-1] ** 2 + np.append(np.diag(covariance), np.diag(forced_covariance)))
    p = np.exp(np.array(logs) - max(logs))
    p /= p.sum()
    mean = p @ np.array(means)
    return models, p, mean, np.sqrt(p @ np.array(squares) - mean**2)


PRIORS = {
    "uniform": lambda n: lambda k: 0.0,
    "beta-binomial": lambda n: lambda k: betaln(k + 1, n - k + 1),
    (2.0, 5.0): lambda n: lambda k: betaln(k + 2, n - k + 5),
    0.2: lambda n: lambda k: k * np.log(0.2) + (n - k) * np.log(0.8),
}


@pytest.mark.parametrize("prior", PRIORS, ids=str)
@pytest.mark.parametrize("variance", [None, 0.7])
def test_all_models_are_weighed_as_the_formula_says(prior, variance):
    for seed in range(4):
        X, y = table(seed)
        models, p, mean, sd = literal(X, y, 12.0, PRIORS[prior](X.shape[1]), variance=variance)
        found = posterior(SubsetProblem(X, y), 12.0, prior, variance=variance)
        inside = np.array([[j in s for j in range(X.shape[1])] for s in models])
        np.testing.assert_allclose(found.inclusion_probability, p @ inside, rtol=1e-10)
        np.testing.assert_allclose(found.size_probability, np.bincount([len(s) for s in models], p), rtol=1e-10)
        np.testing.assert_allclose(found.coef_mean, mean[:-1], rtol=1e-8, atol=1e-14)
        np.testing.assert_allclose(found.coef_sd, sd[:-1], rtol=1e-8)
        best = models[int(np.argmax(p))]
        assert found.highest_probability_model.tolist() == best
        np.testing.assert_allclose(found.model_probability, np.sort(p)[::-1], rtol=1e-9)
        assert (found.method, found.visited) == ("enumeration", 64)


def test_weights_forced_columns_and_sizes():
    X, y = table(7, n=7)
    w = np.random.default_rng(1).uniform(0.2, 2, len(y))
    w[3] = 0
    Z = np.column_stack([np.ones(len(y)), X[:, 2]])
    others = [0, 1, 3, 4, 5, 6]
    log_prior = lambda k: 0.0 if 1 <= k <= 3 else -np.inf  # noqa: E731
    models, p, mean, sd = literal(X[:, others], y, 20.0, log_prior, w=w, forced=Z)
    problem = SubsetProblem(X, y, always=[2], sample_weight=w)
    found = posterior(problem, 20.0, "uniform", sizes=range(1, 4))
    inside = np.array([[j in s for j in range(6)] for s in models])
    np.testing.assert_allclose(found.inclusion_probability[others], p @ inside, rtol=1e-9)
    np.testing.assert_allclose([*found.coef_mean[others], found.intercept, found.coef_mean[2]], mean, rtol=1e-8)
    np.testing.assert_allclose(found.coef_sd[[*others, 2]], np.delete(sd, 6), rtol=1e-8)
    assert found.inclusion_probability[2] == 1.0
    walked = posterior(problem, 20.0, "uniform", sizes=range(1, 4), method="sample", sweeps=1000)
    np.testing.assert_allclose(walked.coef_sd, found.coef_sd, rtol=0.1)


@pytest.mark.parametrize("groups", [None, {"ab": [0, 1]}], ids=str)
@pytest.mark.parametrize("g", [9.0, "hyper"])
def test_forced_columns_are_as_uncertain_as_predictions_far_along_them(g, groups):
    X, y = table(3)
    found = posterior(SubsetProblem(X, y, always=[5], groups=groups), g)
    far = X.mean(axis=0) + 1e6 * (np.arange(6) == 5)  # where nothing else counts
    mean, sd = found.predict(far[None], return_std=True)
    assert mean[0] / 1e6 == pytest.approx(found.coef_mean[5], rel=1e-3)
    assert sd[0] / 1e6 == pytest.approx(found.coef_sd[5], rel=1e-3)
    assert found.to_pandas()["coef_sd"][5] == found.coef_sd[5] > 0


def over_g(d, r2, nu):
    """Weight of a model of d columns under the hyper-g prior, and means of u = g / (1 + g) and u^2, by quadrature."""
    if d == 0:
        return np.ones(3)
    terms = [
        quad(lambda u: 0.5 * u**j * (1 - u) ** ((d - 1) / 2) * (1 - r2 * u) ** (-nu / 2), 0, 1, epsabs=0, epsrel=1e-11)  # noqa: B023
        for j in range(3)
    ]
    weight, first, second = (term[0] for term in terms)
    return np.array([weight, first / weight, second / weight])


@pytest.mark.parametrize("groups", [None, {"ab": [0, 1]}], ids=str)
def test_hyper_g_is_an_integral_over_g(groups):
    for seed in range(3):
        X, y = table(seed)
        X_, y_ = X - X.mean(axis=0), y - y.mean()
        E0, nu, n = y_ @ y_ / 2, len(y) - 1, X.shape[1]
        units = [[j] for j in range(n)] if groups is None else [[0, 1], [2], [3], [4], [5]]
        weights, means, squares, inside = [], [], [], []
        for k in range(len(units) + 1):
            for chosen in combinations(range(len(units)), k):
                s = [j for u in chosen for j in units[u]]
                x = np.linalg.lstsq(X_[:, s], y_, rcond=None)[0]
                E = np.sum((y_ - X_[:, s] @ x) ** 2) / 2
                weight, u, square = over_g(len(s), 1 - E / E0, nu)
                noise = 2 * (E0 * (u - square) + square * E) / (nu - 2)
                mean, second = np.zeros(n), np.zeros(n)
                mean[s] = u * x
                second[s] = square * x**2 + noise * np.diag(np.linalg.inv(X_[:, s].T @ X_[:, s])) if s else []
                weights.append(weight / comb(len(units), k))
                means.append(mean)
                squares.append(second)
                inside.append(np.isin(np.arange(n), s))
        p = np.array(weights) / sum(weights)
        problem = SubsetProblem(X, y, groups=groups)
        found = posterior(problem, "hyper")
        np.testing.assert_allclose(found.inclusion_probability, p @ np.array(inside), rtol=1e-7)
        np.testing.assert_allclose(found.coef_mean, p @ np.array(means), rtol=1e-6)
        np.testing.assert_allclose(found.coef_sd, np.sqrt(p @ np.array(squares) - found.coef_mean**2), rtol=1e-6)
        assert "the hyper-g prior (a = 3)" in found.assumptions
    walked = posterior(problem, "hyper", method="sample", sweeps=3000)
    assert np.all(np.abs(walked.inclusion_probability - found.inclusion_probability) < 4 * walked.inclusion_se)
    np.testing.assert_allclose(walked.coef_mean, found.coef_mean, atol=0.1 * found.coef_sd.max())


def test_hyper_g_predicts_by_the_mean_over_g():
    X, y = table(2, n=2)
    problem, new = SubsetProblem(X, y), X[:5] + 1.0
    mean, std = posterior(problem, "hyper", sizes=[2]).predict(new, return_std=True)
    # The same by a sum over values of g, weighed by the evidence of the one model that is possible.
    t = np.arange(-15, 25, 0.1)
    g = np.exp(t)
    target = y - y.mean()
    r = 2 * problem.energy([0, 1]) / (target @ target)
    logs = t - 1.5 * np.log1p(g) + (len(y) - 3) / 2 * np.log1p(g) - (len(y) - 1) / 2 * np.log1p(r * g)
    share = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    means, stds = zip(*(posterior(problem, each, sizes=[2]).predict(new, return_std=True) for each in g), strict=True)
    np.testing.assert_allclose(mean, share @ np.array(means), rtol=1e-6)
    variance = share @ (np.array(stds) ** 2 + np.array(means) ** 2) - mean**2
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-6)
    with pytest.raises(ValueError, match="leave variance out"):
        posterior(problem, "hyper", variance=1.0)


def test_published_probabilities_of_the_attitude_table(shared_data):
    import pandas as pd

    data = pd.read_csv(shared_data / "attitude" / "attitude.csv")
    problem = SubsetProblem(data.drop(columns="target_rating"), data["target_rating"])
    published = [0.9996351, 0.1737658, 0.4056392, 0.1665853, 0.1535886, 0.2129325]  # manual of the R package BMS
    found = posterior(problem, 30, "uniform")
    np.testing.assert_allclose(found.inclusion_probability, published, atol=1e-7)
    walked = posterior(problem, 30, "uniform", method="sample", sweeps=4000)
    assert np.all(np.abs(walked.inclusion_probability - published) < 4 * walked.inclusion_se)


# Employment 1947-1962 (Longley 1967; condition number 4.9e9): facts of an old textbook, target last.
LONGLEY = """
83.0 234289 2356 1590 107608 1947 60323; 88.5 259426 2325 1456 108632 1948 61122
88.2 258054 3682 1616 109773 1949 60171; 89.5 284599 3351 1650 110929 1950 61187
96.2 328975 2099 3099 112075 1951 63221; 98.1 346999 1932 3594 113270 1952 63639
99.0 365385 1870 3547 115094 1953 64989; 100.0 363112 3578 3350 116219 1954 63761
101.2 397469 2904 3048 117388 1955 66019; 104.6 419180 2822 2857 118734 1956 67857
108.4 442769 2936 2798 120445 1957 68169; 110.8 444546 4681 2637 121950 1958 66513
112.6 482704 3813 2552 123366 1959 68655; 114.2 502601 3931 2514 125368 1960 69564
115.7 518173 4806 2572 127852 1961 69331; 116.9 554894 4007 2827 130081 1962 70551
"""


@pytest.mark.parametrize("g", [30.0, 1000.0])
def test_a_classic_table_of_nearly_dependent_columns(g):
    numbers = np.array([row.split() for row in LONGLEY.strip().replace("\n", ";").split(";")], dtype=float)
    X, y = numbers[:, :-1], numbers[:, -1]
    models, p, mean, sd = literal(X, y, g, lambda k: 0.0)
    inclusion = [sum(p[at] for at, model in enumerate(models) if j in model) for j in range(X.shape[1])]
    given = posterior(SubsetProblem(X, y), g=g, prior="uniform")
    np.testing.assert_allclose(given.inclusion_probability, inclusion, atol=1e-10)
    np.testing.assert_allclose(given.coef_mean, mean[:-1], rtol=1e-7)
    np.testing.assert_allclose(given.coef_sd, sd[:-1], rtol=1e-6)


def transition_matrix(X, y, g, log_prior, ways):
    """One move between all models, from the literal weights; `ways` is whether choices are counted."""
    models, p, _, _ = literal(X, y, g, log_prior)
    n, at = X.shape[1], {frozenset(s): i for i, s in enumerate(models)}
    T = np.zeros((len(models), len(models)))
    for i, s in enumerate(models):
        k, out = len(s), [j for j in range(n) if j not in s]
        for j in out:
            to = at[frozenset(s) | {j}]
            ratio = p[to] / p[i] * ((n - k) / (k + 1) if ways else 1)
            T[i, to] += 0.25 / (n - k) * min(1, ratio)
        for j in s:
            to = at[frozenset(s) - {j}]
            ratio = p[to] / p[i] * (k / (n - k + 1) if ways else 1)
            T[i, to] += 0.25 / k * min(1, ratio)
            for l in out:
                to = at[frozenset(s) - {j} | {l}]
                T[i, to] += 0.5 / k / (n - k) * min(1, p[to] / p[i])
        T[i, i] += 1 - T[i].sum()
    return p, T


def test_moves_keep_the_distribution_and_would_not_without_counting_choices():
    X, y = table(3, n=5)
    p, T = transition_matrix(X, y, 9.0, lambda k: betaln(k + 1, 6 - k), ways=True)
    np.testing.assert_allclose(p @ T, p, atol=1e-14)
    p, T = transition_matrix(X, y, 9.0, lambda k: betaln(k + 1, 6 - k), ways=False)
    assert np.abs(p @ T - p).max() > 1e-3


@pytest.mark.parametrize("way", ["auto", "square", "table"])
@pytest.mark.parametrize("variance", [None, 0.7])
def test_the_compiled_walk_is_the_literal_one(way, variance):
    X, y = table(1, n=7)
    problem = SubsetProblem(X, y)
    g, n, most, moves, k = 15.0, 7, 4, 1000, 2
    keys, nu, E0 = chain_keys(0, 99, None, [0]), len(y) - 1, problem.energy([])
    key, size = keys[0], np.arange(most + 1)
    prior = betaln(size + 1, n - size + 1) - size / 2 * np.log(1 + g)
    counted = prior + [np.log(comb(n, k)) for k in range(most + 1)]
    offset, a = (E0 / g, nu / 2) if variance is None else (0.0, g / (1 + g) / variance)
    output = new_output(1, moves, most, record=True)
    walks = Walks(problem.form, k, keys, way, sizes=np.append(counted, -np.inf), offset=offset)
    walks.chains(np.full(moves, a), np.ones(moves, int), output, 0, 1, [], lambda _: None)
    order, records, energies = start_order(key, n).tolist(), output.record[0], output.record_energy[0]

    def log_weight(support):
        E = problem.energy(support)
        return prior[len(support)] - a * (E if variance is not None else np.log(E + offset))

    for t in range(moves):
        w0, w1, w2, w3 = (int(w) for w in philox4x32([t, 0, STREAM_MODELS, 0], key))
        u = (((w2 >> 5) << 26 | (w3 >> 6)) + 1) * 2.0**-53
        slot, position = ((w0 << 2) & 0xFFFFFFFF) * max(k, 1) >> 32, w1 * max(n - k, 1) >> 32
        new, size, ways = order.copy(), k, 0.0
        if w0 >> 30 == 0 and k < most:
            new[k], new[k + position], size, ways = new[k + position], new[k], k + 1, np.log((n - k) / (k + 1))
        elif w0 >> 30 == 1 and k > 0:
            new[slot], new[k - 1], size, ways = new[k - 1], new[slot], k - 1, np.log(k / (n - k + 1))
        elif w0 >> 30 > 1 and k > 0:
            new[slot], new[k + position] = new[k + position], new[slot]
        if new != order or size != k:
            gain = log_weight(new[:size]) - log_weight(order[:k]) + ways
            if np.log(u) <= gain:
                order, k = new, size
        assert records[t, :k].tolist() == order[:k]
        assert (records[t, k:] == -1).all()
        assert energies[t] == pytest.approx(problem.energy(order[:k]), rel=1e-9)


def test_walks_agree_with_all_models_within_their_errors():
    far, of = 0, 0
    for seed in range(6):
        X, y = table(seed, n=10, m=30)
        problem = SubsetProblem(X, y)
        exact = posterior(problem)
        walked = posterior(problem, method="sample", sweeps=3000, seed=seed)
        far += int(np.sum(np.abs(walked.inclusion_probability - exact.inclusion_probability) > 2 * walked.inclusion_se))
        of += 10
        assert np.abs(walked.inclusion_probability - exact.inclusion_probability).max() < 0.03
        np.testing.assert_allclose(walked.coef_mean, exact.coef_mean, atol=0.05 * np.abs(exact.coef_mean).max())
    assert far <= 8  # of 60, where 3 are expected of errors of the right size


def test_nothing_depends_on_threads_and_columns_that_repeat_do_no_harm():
    X, y = table(1, n=9)
    X = np.column_stack([X, X[:, 0], np.ones(len(y))])
    problem = SubsetProblem(X, y)
    one, two = (posterior(problem, method="sample", sweeps=200, n_jobs=jobs, seed=3) for jobs in (1, 2))
    np.testing.assert_array_equal(one.draws, two.draws)
    both = [{0, 9} <= set(each.tolist()) for each in one.models]
    assert not any(both)
    exact = posterior(problem)
    assert exact.inclusion_probability[0] == pytest.approx(exact.inclusion_probability[9])
    assert exact.inclusion_probability[10] == 0.0
    assert "depend on each other" in exact.note


def grouped(seed=3, m=40):
    """A category of three levels (dependent beside the constant), two columns together, and three alone."""
    rng = np.random.default_rng(seed)
    levels = np.eye(3)[rng.integers(0, 3, m)]
    X = np.column_stack([rng.normal(size=(m, 2)), levels, rng.normal(size=(m, 3))])
    y = 0.3 * X[:, 0] + levels @ [0.6, 0.0, -0.6] + 0.3 * X[:, 5] + rng.normal(size=m)
    return X, y, [[0], [1], [2, 3, 4], [5, 6], [7]], SubsetProblem(X, y, groups={"c": [2, 3, 4], "d": [5, 6]})


def test_groups_are_weighed_by_their_independent_columns():
    X, y, units, problem = grouped()
    g, nu, D, t = 9.0, len(y) - 1, X - X.mean(axis=0), y - y.mean()
    logs, sets, means = [], [s for k in range(6) for s in combinations(range(5), k)], []
    for chosen in sets:
        columns = [j for u in chosen for j in units[u]]
        rank, mean = np.linalg.matrix_rank(D[:, columns]) if columns else 0, np.zeros(8)
        mean[columns] = g / (1 + g) * np.linalg.pinv(D[:, columns]) @ t  # of smallest norm, as levels add up to zero
        E = np.sum((t - D @ mean * (1 + g) / g) ** 2) / 2
        logs.append(
            betaln(len(chosen) + 1, 6 - len(chosen)) - rank / 2 * np.log(1 + g) - nu / 2 * np.log(E + t @ t / 2 / g)
        )
        means.append(mean)
    p = np.exp(np.array(logs) - max(logs))
    p /= p.sum()
    inclusion = np.array([sum(q for q, s in zip(p, sets, strict=True) if u in s) for u in range(5)])
    found = posterior(problem, g)
    for u, columns in enumerate(units):
        np.testing.assert_allclose(found.inclusion_probability[columns], inclusion[u], rtol=1e-9)
    np.testing.assert_allclose(found.size_probability, np.bincount([len(s) for s in sets], p), rtol=1e-9)
    np.testing.assert_allclose(found.coef_mean, p @ np.array(means), atol=1e-9)
    best = sets[int(np.argmax(p))]
    assert found.models[0].tolist() == sorted(j for u in best for j in units[u])
    assert found.median_probability_model.tolist() == sorted(
        j for u in np.flatnonzero(inclusion >= 0.5) for j in units[u]
    )


def test_a_walk_among_groups_agrees_with_all_of_their_models(tmp_path):
    X, _, _, problem = grouped()
    exact = posterior(problem, 9.0)
    walked = posterior(problem, 9.0, method="sample", sweeps=3000, journal=tmp_path / "j")
    assert np.all(np.abs(walked.inclusion_probability - exact.inclusion_probability) < 4 * walked.inclusion_se)
    np.testing.assert_allclose(walked.coef_mean, exact.coef_mean, atol=0.03)
    np.testing.assert_allclose(walked.coef_sd, exact.coef_sd, atol=0.03)
    np.testing.assert_allclose(walked.predict(X[:4], True), exact.predict(X[:4], True), atol=0.03)
    again = posterior(problem, 9.0, method="sample", sweeps=3000, journal=tmp_path / "j")
    np.testing.assert_array_equal(again.draws, walked.draws)
    few = posterior(problem, 9.0, sizes=range(1, 3), method="sample", sweeps=200)
    assert set(few.sizes.ravel().tolist()) == {1, 2}


def test_categories_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, _, _ = grouped()
    names = np.array(["red", "green", "blue"])[X[:, 2:5].argmax(axis=1)]
    rows = [f"{a},{b},{c},{t}" for a, b, c, t in zip(X[:, 0], X[:, 7], names, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,colour,y", *rows]) + "\n")
    command = ["posterior", "t.csv", "--target", "y", "--categories", "colour", "--json", "--out", "p.csv"]
    told = json.loads(invoke(*command).stdout)
    chances = {each["column"]: each["inclusion_probability"] for each in told["columns"]}
    assert len({chance for name, chance in chances.items() if name.startswith("colour")}) == 1
    assert len(told["size_probability"]) == 4
    assert all(set(each["columns"]) <= {"a", "b", "colour"} for each in told["models"])


def test_predictions_are_mixtures():
    X, y = table(5, n=4)
    problem = SubsetProblem(X, y)
    found = posterior(problem, 10.0, "uniform")
    new = X[:5] + 1
    mean, sd = found.predict(new, return_std=True)
    p, nu, g = found.model_probability, len(y) - 1, 10.0
    told, variances = [], []
    for s in found.models:
        D = X[:, s] - X[:, s].mean(axis=0)
        d = new[:, s] - X[:, s].mean(axis=0)
        x = np.linalg.lstsq(D, y - y.mean(), rcond=None)[0]
        E, E0 = np.sum((y - y.mean() - D @ x) ** 2) / 2, np.sum((y - y.mean()) ** 2) / 2
        v = 2 * (E0 + g * E) / ((1 + g) * (nu - 2))
        told.append(y.mean() + g / (1 + g) * d @ x)
        h = np.einsum("ri,ij,rj->r", d, np.linalg.inv(D.T @ D), d) if s.size else np.zeros(5)
        variances.append(v * (1 + 1 / len(y) + g / (1 + g) * h))
    told = np.array(told)
    np.testing.assert_allclose(mean, p @ told)
    np.testing.assert_allclose(sd, np.sqrt(p @ (np.array(variances) + told**2) - (p @ told) ** 2), rtol=1e-4)


def test_it_prints_as_one_line():
    X = np.random.default_rng(0).normal(size=(30, 8))
    line = repr(posterior(SubsetProblem(X, X[:, 2] - X[:, 5], names=[f"column {j} " + "z" * 99 for j in range(8)])))
    assert len(line) < 400
    assert "\n" not in line
    assert "Posterior(256 models, 8 columns of which 2 have" in line


def test_intervals_hold_new_rows_as_often_as_they_say():
    rng, inside = np.random.default_rng(0), []
    for _ in range(40):
        X = rng.normal(size=(260, 8))
        y = X @ (rng.normal(size=8) * (rng.random(8) < 0.4)) + rng.normal(size=260)
        mean, sd = posterior(SubsetProblem(X[:60], y[:60])).predict(X[60:], return_std=True)
        inside.append(np.mean(np.abs(y[60:] - mean) < 1.645 * sd))
    assert abs(np.mean(inside) - 0.9) < 0.02


def test_probabilities_are_frequencies_when_data_are_drawn_as_assumed():
    rng, m, n, g = np.random.default_rng(0), 40, 7, 40.0
    told, true = [], []
    for _ in range(300):
        X = rng.normal(size=(m, n)) @ np.linalg.cholesky(0.5 * np.eye(n) + 0.5).T
        inside = np.zeros(n, dtype=bool)
        inside[rng.permutation(n)[: rng.integers(0, n + 1)]] = True  # all sizes alike
        D = X[:, inside] - X[:, inside].mean(axis=0)
        x = np.linalg.cholesky(g * np.linalg.inv(D.T @ D)) @ rng.normal(size=inside.sum()) if inside.any() else 0.0
        y = 3 + 2 * ((D @ x if inside.any() else 0.0) + rng.normal(size=m))
        told.append(posterior(SubsetProblem(X, y), g).inclusion_probability)
        true.append(inside)
    told, true = np.concatenate(told), np.concatenate(true)
    for low, high in ((0.0, 0.15), (0.15, 0.4), (0.4, 0.7), (0.7, 1.01)):
        here = (told >= low) & (told < high)
        error = np.sqrt(told[here] @ (1 - told[here])) / here.sum()
        assert abs(told[here].mean() - true[here].mean()) < 3 * error


# ---- the estimator


def test_the_estimator_is_the_posterior():
    X, y = table(2, n=8)
    model, found = (
        BayesianSubsetRegressor(9.0, prior="uniform").fit(X, y),
        posterior(SubsetProblem(X, y), 9.0, "uniform"),
    )
    np.testing.assert_array_equal(model.inclusion_probability_, found.inclusion_probability)
    np.testing.assert_array_equal(model.predict(X), found.predict(X))
    assert model.get_support(indices=True).tolist() == found.median_probability_model.tolist()
    mean, sd = model.predict(X[:3], return_std=True)
    assert mean.shape == sd.shape == (3,)
    assert (sd > 0).all()
