"""Each method of a comparison: exact where that can be checked, and blind to the rows it is tested on."""

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LassoCV, Ridge
from sklearn.neighbors import KNeighborsRegressor

from pairflip import SubsetProblem, datasets
from pairflip.comparison.peers.amp import BernoulliGauss, begin, pass_messages, step
from pairflip.comparison.peers.predictors import pls_paths
from pairflip.comparison.peers.supports import backward, forward
from pairflip.comparison.registry import PEERS, PeerFailed, Training, as_peer
from pairflip.comparison.run import CommonGround, find_supports, fit_models
from pairflip.selection.folds import as_folds

M, N = 36, 12
GROUPS = np.arange(M) // 4
MINE = {"neighbours": KNeighborsRegressor(3), "ridge": Ridge()}
OTHERS = [name for name, peer in PEERS.items() if peer.search is None] + list(MINE)


def table(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(M, N)) + 1.5
    return X, X[:, :3] @ [1.0, -1.0, 0.5] + 0.7 * rng.normal(size=M)


def peer_of(name):
    peer = as_peer(name, MINE[name]) if name in MINE else PEERS[name]
    if peer.lacking():
        pytest.skip(peer.lacking())
    return peer


def ground_of(X, y, groups, **options):
    problem = SubsetProblem(X, y, **options)
    return CommonGround(problem, as_folds(3, problem, groups), (1, 3), 0, 3, groups)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
@pytest.mark.parametrize("name", OTHERS)
def test_a_held_out_row_touches_nothing_that_predicts_it(name, groups):
    X, y = table()
    peer, clean = peer_of(name), ground_of(X, y, groups)
    left = clean.folds.left_out[1]
    bad, worse, rng = X.copy(), y.copy(), np.random.default_rng(9)
    size = 2.0 if name.startswith("amp") else 1e4  # with larger numbers, message passing has no result on all rows
    bad[left], worse[left] = size * rng.normal(size=(left.size, N)), size * rng.normal(size=left.size)
    spoiled = ground_of(bad, worse, groups)
    if peer.find is not None:
        before, after = find_supports(peer, clean), find_supports(peer, spoiled)
        for size in clean.sizes:
            np.testing.assert_array_equal(before.folds[size][1], after.folds[size][1])
        return
    predicted = peer.fit(clean.training(1)).predict(bad[left])
    residuals = fit_models(peer, spoiled)[0][spoiled.folds.places[1]]
    np.testing.assert_allclose(residuals, worse[left] - predicted, rtol=1e-12)


def literal_energy(columns, target, support):
    chosen = columns[:, support]
    return 0.5 * np.sum((target - chosen @ np.linalg.lstsq(chosen, target, rcond=None)[0]) ** 2)


def scaled(seed=3):
    training = Training(SubsetProblem(*table(seed)), np.arange(M))
    return training.columns, training.target


def test_forward_and_backward_selection_by_the_book():
    columns, target = scaled()
    chosen, sizes, rest = [], range(1, 7), list(range(N))
    for _ in sizes:
        free = [j for j in range(N) if j not in chosen]
        chosen.append(min(free, key=lambda j: literal_energy(columns, target, [*chosen, j])))
    supports = forward(columns, target, sizes)
    assert [supports[k].tolist() for k in sizes] == [sorted(chosen[:k]) for k in sizes]
    supports = backward(columns, target, [1])
    while len(rest) > 1:
        rest.remove(min(rest, key=lambda j: literal_energy(columns, target, [i for i in rest if i != j])))
        assert supports[len(rest)].tolist() == rest
    twice = np.hstack([columns[:, :3], columns[:, :3]])
    assert max(forward(twice, target, sizes)) == 3
    with pytest.raises(PeerFailed, match="must be independent"):
        backward(twice, target, [1])


def test_pls_is_that_of_scikit_learn():
    columns, target = scaled()
    paths = pls_paths(columns, target, 5)
    for components in (1, 2, 5):
        theirs = PLSRegression(components, scale=False, tol=1e-12).fit(columns, target)
        np.testing.assert_allclose(paths[components - 1], theirs.coef_.ravel(), rtol=1e-6, atol=1e-9)


def test_lasso_cv_is_that_of_scikit_learn_on_standardized_columns():
    X, y = table()
    training = Training(SubsetProblem(X, y), np.arange(M))
    middle, spread = X.mean(axis=0), X.std(axis=0)
    theirs = LassoCV(cv=training.splits(), max_iter=5000).fit((X - middle) / spread, y)
    ours = PEERS["lassocv"].fit(training)
    assert ours.columns.tolist() == np.flatnonzero(theirs.coef_).tolist()
    # Its intercept is fitted in every inner fold, ours once: the penalty may differ by one step of its grid.
    np.testing.assert_allclose(ours.predict(X), theirs.predict((X - middle) / spread), atol=0.1 * y.std())


@pytest.mark.parametrize("name", ["omp", "lasso", "abess", "skglm", "amp"])
def test_supports_have_the_sizes_that_were_asked_for(name):
    found = peer_of(name).find(*scaled(0), (2, 3, 5))
    assert {size: support.size for size, support in found.items() if size in (2, 3, 5)} == {2: 2, 3: 3, 5: 5}
    assert found[3].tolist() == [0, 1, 2]


def state_evolution(x0, prior, noise, alpha, steps):
    """Mean squared error after each step, by the scalar recursion: each coefficient is seen with Gaussian error.

    E' = < (x - x0)^2 >, with the posterior mean x of x0 + sqrt((noise + E) / alpha) z.
    """
    z = np.random.default_rng(0).normal(size=(40, x0.size))
    error, errors = float(np.mean(x0**2)), []
    for _ in range(steps):
        spread = (noise + error) / alpha
        R, total = x0 + np.sqrt(spread) * z, prior.variance + spread
        likely = prior.rate * np.exp(-(R**2) / (2 * total)) / np.sqrt(total)
        unlikely = (1 - prior.rate) * np.exp(-(R**2) / (2 * spread)) / np.sqrt(spread)
        error = float(np.mean((likely / (likely + unlikely) * R * prior.variance / total - x0) ** 2))
        errors.append(error)
    return np.array(errors)


def test_message_passing_follows_its_state_evolution():
    alpha, noise, prior = 0.5, 0.1, BernoulliGauss(0.1, 10.0)
    planted = datasets.make_planted(N=2000, alpha=alpha, var_noise=noise, seed=1)
    norms = np.linalg.norm(planted.X, axis=0)
    columns = planted.X / norms

    def error(state):
        return np.mean((state.mean / norms - planted.x0) ** 2)

    expected = state_evolution(planted.x0, prior, noise, alpha, 15)
    state, errors = begin(planted.y, 2000, BernoulliGauss(0.1, 10.0 * alpha)), []  # coefficients of scaled columns
    for _ in range(15):
        state = step(columns, planted.y, state, learn=False)
        errors.append(error(state))
    np.testing.assert_allclose(errors, expected, rtol=0.25)  # 2,000 columns are not infinitely many
    np.testing.assert_allclose(errors[-5:], expected[-5:], rtol=0.05)
    learned = pass_messages(columns, planted.y)
    assert error(learned) == pytest.approx(expected[-1], rel=0.05)
    assert learned.prior.rate == pytest.approx(np.mean(planted.x0 != 0), rel=0.3)


def test_message_passing_says_that_it_diverged():
    data = datasets.make_correlated(M=60, N=200, correlation=0.9999, seed=1)
    training = Training(SubsetProblem(data.X, data.y), np.arange(60))
    with pytest.raises(PeerFailed, match="diverged"):
        pass_messages(training.columns, training.target)
