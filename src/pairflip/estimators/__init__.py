"""scikit-learn estimators: thin shells around `anneal` and `select_size`."""

from __future__ import annotations

from pairflip.estimators.bayesian import BayesianSubset
from pairflip.estimators.classification import AnnealedSubsetClassifier, AnnealedSubsetClassifierCV
from pairflip.estimators.regression import AnnealedSubset
from pairflip.estimators.regression_cv import AnnealedSubsetCV

__all__ = [
    "AnnealedSubset",
    "AnnealedSubsetCV",
    "AnnealedSubsetClassifier",
    "AnnealedSubsetClassifierCV",
    "BayesianSubset",
]
