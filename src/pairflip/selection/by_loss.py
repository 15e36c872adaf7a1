"""What a selection is for another loss than squared error of one target: what is refused, what is written down."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pairflip.problem import SubsetProblem
from pairflip.search.effort import as_descent
from pairflip.selection.folds import Folds
from pairflip.selection.settings import Selection
from pairflip.text import label_text, numbered


def loss_settings(problem: SubsetProblem) -> dict[str, Any]:
    """What the settings of a run say about another loss than squared error, and about what may be chosen."""
    said = problem.limits.settings(problem.names)
    if problem.target_names:
        scaled = problem.target_options()["scale_targets"]
        return {**said, "loss": problem.loss.name, "targets": problem.target_names, "scale_targets": scaled}
    if problem.loss.squared:
        return said
    classes = {} if problem.classes is None else {"classes": [label_text(label) for label in problem.classes.tolist()]}
    return {**said, "loss": problem.loss.name, **classes}


def by_descents(problem: SubsetProblem, selection: Selection) -> Selection:
    """The selection with a method that there is for the problem; "auto" is descents here."""
    if not problem.loss.squared:
        _check_likelihood(problem, selection)
    method = as_descent(problem, selection.method)
    return replace(selection, method="descend" if method == "auto" else method)


def _check_likelihood(problem: SubsetProblem, selection: Selection) -> None:
    """Refuse what there is not for classes and counts."""
    if selection.null:
        raise ValueError(
            f"null (--null) is {selection.null} and loss is {problem.loss.name!r}; expected 0: shuffled targets are "
            "for squared error (the p-value in the answer is there for all)."
        )


def check_learnable(problem: SubsetProblem, folds: Folds) -> None:
    """Refuse folds whose training rows lack a class, or all counts above 0."""
    if problem.loss.squared:
        return
    everything = np.arange(problem.n_rows)
    for f, left in enumerate(folds.left_out):
        why = problem.loss.lacking(problem, np.setdiff1d(everything, left))
        if why is not None:
            raise ValueError(
                f"the training rows of {numbered('fold', f)} have {why}; expected folds that leave rows of both kinds "
                "to learn from: fewer folds, or more rows."
            )
