"""How often the choice depends on the values that were filled in."""

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from pairflip import SubsetProblem, select_size
from pairflip.preprocessing import Impute
from pairflip.selection.facts import imputed_words

HOW = {"sizes": range(1, 4), "cv": 3, "effort": "quick"}


def table(share, seed=0):
    """Column 0 has most of the signal; 1 and 2 are nearly the same, so that gaps decide between them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6))
    X[:, 2] = X[:, 1] + 0.3 * rng.normal(size=60)
    y = 3 * X[:, 0] + X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=60)
    X[:, 1:][rng.random((60, 5)) < share] = np.nan
    return X, y


@pytest.mark.parametrize("method", ["median", "knn"])
def test_counted_by_hand(method):
    X, y = table(0.3)
    curve = select_size(SubsetProblem(X, y, preprocess=Impute(method)), sizes=[2], cv=3, effort="quick", seed=1)
    chosen, same = set(curve.supports[curve.at(2)].tolist()), 0
    for number in range(3):
        noisy = Impute(method, noise=1.0, random_state=3 + number).fit(X).transform(X)
        pairs = [(a, b) for a in range(noisy.shape[1]) for b in range(a)]
        residual = [np.linalg.lstsq(np.column_stack([np.ones(60), noisy[:, p]]), y)[1][0] for p in pairs]
        same += set(pairs[int(np.argmin(residual))]) == chosen
    assert curve.facts["imputed"] == {"missing": int(np.isnan(X).sum()), "same": same, "of": 3}


def test_depends_or_not():
    told = [select_size(SubsetProblem(*table(share), preprocess=Impute()), **HOW) for share in (0.01, 0.6)]
    few, many = (curve.facts["imputed"]["same"] for curve in told)
    assert (few, many < 3) == (3, True)
    assert imputed_words(told[0].facts) == [
        f"{told[0].facts['imputed']['missing']} missing values were filled in; the same columns are the best in 3 of 3 "
        "imputations with noise."
    ]


def test_only_where_something_was_filled_in():
    X, y = table(0.0)
    for transformer in (Impute(), StandardScaler()):
        assert "imputed" not in select_size(SubsetProblem(X, y, preprocess=transformer), **HOW).facts
    X, y = table(0.1)
    curve = select_size(SubsetProblem(X, y, preprocess=SimpleImputer()), **HOW)  # which knows no noise
    assert "imputed" not in curve.facts
    assert imputed_words(curve.facts) == []
