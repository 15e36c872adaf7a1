"""A scikit-learn estimator of the user's: it gets the training rows of the table as they are, and predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairflip.comparison.registry import Peer, PeerFailed
from pairflip.comparison.training import Model, Training


def from_estimator(name: str, estimator: Any) -> Peer:
    """An estimator as a method: a clone on one thread is fitted to the training rows of every fold."""

    def fit(training: Training) -> Model:
        model, weight = one_thread(estimator), training.weight
        if np.all(weight == weight[0]):
            model.fit(training.X, training.y)
        else:
            from sklearn.utils.validation import has_fit_parameter

            if not has_fit_parameter(model, "sample_weight"):
                raise PeerFailed("takes no row weights")
            model.fit(training.X, training.y, sample_weight=weight)
        return Model(lambda X: np.asarray(model.predict(X), dtype=np.float64).reshape(-1), _columns(model, training))

    text = " ".join(str(estimator).split())
    return Peer(name, name, f"The user's estimator: {text[:200]}.", fit=fit)


def one_thread(estimator: Any) -> Any:
    """A clone that is not fitted, with every `n_jobs` set to 1, so that seconds can be compared."""
    from sklearn.base import clone

    model = clone(estimator)
    jobs = [key for key in model.get_params(deep=True) if key == "n_jobs" or key.endswith("__n_jobs")]
    return model.set_params(**dict.fromkeys(jobs, 1)) if jobs else model


def _columns(model: Any, training: Training) -> Any:
    """Columns with a coefficient other than zero, where the model has one for each column of the table."""
    coef = np.ravel(getattr(model, "coef_", np.empty(0)))
    return np.flatnonzero(coef) if coef.size == training.problem.n_columns else None
