"""scikit-learn estimators: thin shells around `best_subset`, `select_size` and `posterior`."""

from __future__ import annotations

from pairflip.estimators.classification import SubsetClassifier, SubsetClassifierCV
from pairflip.estimators.regression import BayesianSubsetRegressor, SubsetRegressor, SubsetRegressorCV

__all__ = ["BayesianSubsetRegressor", "SubsetClassifier", "SubsetClassifierCV", "SubsetRegressor", "SubsetRegressorCV"]
