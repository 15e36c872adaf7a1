r"""How well classes are told apart on held-out rows: misclassification and, of two, the area under the ROC curve.

The AUC is the probability that a row of the event has a higher predicted probability than a row of the other class,
ties counting half; rows count by their weights. Where folds are compared, it is computed over all held-out predictions
together; a row that is predicted several times counts as often.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.selection.records import ClassErrors

HALF = 0.5
"""Rows with a probability above this are put into the second class."""


def class_errors(
    observed: Floats, predictions: Floats, weights: Floats, labels: list[str], constant: bool
) -> ClassErrors:
    """Errors at every size."""
    q = n_probabilities(labels)
    rows = weights[::q]
    seen, told = class_of(observed, q), class_of(predictions, q)
    shares = np.bincount(seen, rows, len(labels)) / rows.sum()
    # Shares alone rank nothing: they differ from fold to fold only because they lack the rows held out.
    areas = [0.5 if constant and s == 0 else auc(observed, p, weights) for s, p in enumerate(predictions) if q == 1]
    return ClassErrors(
        labels=list(labels),
        shares=shares,
        misclassified=np.average(told != seen, axis=1, weights=rows),
        auc=np.array(areas) if areas else None,
    )


def n_probabilities(labels: list[str]) -> int:
    """How many probabilities a row has: of two classes that of the event alone, otherwise those of all classes."""
    return len(labels) if len(labels) > 2 else 1


def class_of(probabilities: Floats, q: int) -> NDArray[np.int64]:
    """The most probable class (..., P) by the q probabilities of each row (..., P q)."""
    if q == 1:
        return np.asarray(probabilities > HALF, dtype=np.int64)
    each = probabilities.reshape(*probabilities.shape[:-1], -1, q)
    return np.asarray(np.argmax(np.round(each, 12), axis=-1))  # the first of equal ones, however they are rounded


def auc(observed: Floats, predicted: Floats, weights: Floats) -> float:
    """Area under the ROC curve; not-a-number where a class has no weight."""
    values, at = np.unique(predicted, return_inverse=True)
    event = np.bincount(at, weights * observed, values.size)
    other = np.bincount(at, weights * (1.0 - observed), values.size)
    pairs = float(event.sum() * other.sum())
    below = np.cumsum(other) - other
    return float(event @ (below + 0.5 * other)) / pairs if pairs > 0 else float("nan")


def roc(observed: Floats, predicted: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Fractions of the other class (false alarms) and of the event (hits) at or above each threshold, from 0 to 1."""
    values, at = np.unique(-predicted, return_inverse=True)
    event = np.cumsum(np.bincount(at, weights * observed, values.size))
    other = np.cumsum(np.bincount(at, weights * (1.0 - observed), values.size))
    return np.append(0.0, other / other[-1]), np.append(0.0, event / event[-1])


def confusion(seen: NDArray[np.int64], told: NDArray[np.int64], weights: Floats, n: int) -> Floats:
    """Weights (n, n) of the rows of each class (first index) that were put into each of n classes."""
    table: Floats = np.bincount(n * seen + told, weights, n * n).astype(np.float64)
    return table.reshape(n, n)
