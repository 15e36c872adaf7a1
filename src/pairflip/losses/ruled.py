"""Squared error under rules: columns that may not be chosen together, or only with others (see `limits.Rules`).

Energies, fits and held-out errors are those of squared error; what is searched is another set of supports. The form is
that of several targets with one of them, because its engine asks the rules before a flip.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.limits import Rules
from pairflip.losses.base import HeldOutJudge
from pairflip.losses.several import SeveralForm
from pairflip.losses.squares import SquaredError

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds


class RuledForm(SeveralForm):
    """The inner products of some rows and one target, with rules; `working` is the same without them."""

    def __init__(self, form: Gram, rules: Rules) -> None:
        super().__init__(form, form.target[:, None], np.ones(1), rules)

    @property
    def target(self) -> Floats:  # type: ignore[override]
        """The target (M,)."""
        return self.form.target

    @property
    def b(self) -> Floats:  # type: ignore[override]
        """Products (N,) of the columns with the target."""
        return self.form.b

    @property
    def working(self) -> Gram:
        """The quadratic form, which knows no rules."""
        return self.form


class RuledError(SquaredError):
    """Squared error of supports that keep rules; those against them have no energy."""

    quadratic = False

    def prepare(self, problem: SubsetProblem) -> Gram:
        """The form of squared error, with the rules for its candidates."""
        form = super().prepare(problem)
        n = form.n_columns
        if not form.dense:
            raise ValueError(
                f"the matrix of {n:,} columns takes more than the memory budget of {problem.memory_budget:,} bytes, "
                f"and limits on what may be chosen need it; expected fewer columns, or memory_budget={8 * n**2}."
            )
        return self._with_rules(problem, form)

    def without_rows(self, problem: SubsetProblem, rows: NDArray[np.int64], anew: bool = False) -> Gram:
        """The form of squared error without some rows, with the rules for its own candidates.

        Parameters
        ----------
        problem, rows
            The problem, and the rows left out.
        anew
            The remaining rows as a new problem in any case.
        """
        return self._with_rules(problem, super().without_rows(_plain(problem), rows, anew))

    def held_out(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """Held-out residuals of supports that were chosen elsewhere: rules play no part."""
        return super().held_out(_plain(problem), folds)

    def _with_rules(self, problem: SubsetProblem, form: Gram) -> RuledForm:
        return RuledForm(form, problem.limits.rules(form.candidates, problem.always))


def _plain(problem: SubsetProblem) -> SubsetProblem:
    """The same problem without rules."""
    plain = copy(problem)
    plain.loss, plain.gram = SquaredError(), problem.gram.working
    return plain
