r"""How well classes are told apart on held-out rows: misclassification and the area under the ROC curve.

The AUC is the probability that a row of the event has a higher predicted probability than a row of the other class,
ties counting half; rows count by their weights. Where folds are compared, it is computed over all held-out predictions
together; a row that is predicted several times counts as often.
"""

from __future__ import annotations

import numpy as np

from pairflip.least_squares import Floats
from pairflip.selection.records import ClassErrors

HALF = 0.5
"""Rows with a probability above this are put into the second class."""


def class_errors(
    observed: Floats, predictions: Floats, weights: Floats, labels: list[str], constant: bool
) -> ClassErrors:
    """Errors at every size.

    Parameters
    ----------
    observed, weights : (P,)
        1 for the event, else 0; weights of the held-out rows.
    predictions : (S, P)
        Probabilities of the event.
    labels : two str
        Names of the classes, the event second.
    constant : bool
        Whether the first size has no columns at all, so that a fold predicts the same for every row.
    """
    wrong = (predictions > HALF) != (observed > HALF)
    share = float(np.average(observed, weights=weights))
    return ClassErrors(
        labels=list(labels),
        share=share,
        misclassified=np.average(wrong, axis=1, weights=weights),
        # Shares alone rank nothing: they differ from fold to fold only because they lack the rows held out.
        auc=np.array([0.5 if constant and s == 0 else auc(observed, p, weights) for s, p in enumerate(predictions)]),
    )


def auc(observed: Floats, predicted: Floats, weights: Floats) -> float:
    """Area under the ROC curve; not-a-number where a class has no weight.

    Parameters
    ----------
    observed, predicted, weights : (P,)
        Classes (0 or 1), probabilities and weights.
    """
    values, at = np.unique(predicted, return_inverse=True)
    event = np.bincount(at, weights * observed, values.size)
    other = np.bincount(at, weights * (1.0 - observed), values.size)
    pairs = float(event.sum() * other.sum())
    below = np.cumsum(other) - other
    return float(event @ (below + 0.5 * other)) / pairs if pairs > 0 else float("nan")


def roc(observed: Floats, predicted: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Fractions of the other class (false alarms) and of the event (hits) at or above each threshold, from 0 to 1.

    Parameters
    ----------
    observed, predicted, weights : (P,)
        Classes (0 or 1), probabilities and weights.
    """
    values, at = np.unique(-predicted, return_inverse=True)
    event = np.cumsum(np.bincount(at, weights * observed, values.size))
    other = np.cumsum(np.bincount(at, weights * (1.0 - observed), values.size))
    return np.append(0.0, other / other[-1]), np.append(0.0, event / event[-1])


def confusion(observed: Floats, predicted: Floats, weights: Floats) -> Floats:
    """Weights (2, 2) of the rows of each class (first index) that were put into each class.

    Parameters
    ----------
    observed, predicted, weights : (P,)
        Classes (0 or 1), probabilities and weights.
    """
    told = (predicted > HALF).astype(np.int64)
    table: Floats = np.bincount(2 * observed.astype(np.int64) + told, weights, 4).astype(np.float64)
    return table.reshape(2, 2)
