"""scikit-learn estimators: thin shells around `best_subset` and `select_size`."""

from __future__ import annotations

from pairflip.estimators.bayesian import BayesianSubsetRegressor
from pairflip.estimators.classification import SubsetClassifier, SubsetClassifierCV
from pairflip.estimators.regression import SubsetRegressor, SubsetRegressorCV

__all__ = ["BayesianSubsetRegressor", "SubsetClassifier", "SubsetClassifierCV", "SubsetRegressor", "SubsetRegressorCV"]
