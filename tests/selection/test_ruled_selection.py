"""The number of columns under rules: folds keep them, errors are those of refits, everything else is as without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pairflip import SubsetProblem, select_size, write_report
from test_kinds import KINDS


def data(seed: int = 0, rows: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 11))
    X[:, 5] = X[:, 4] + 0.3 * X[:, 5]
    return X, X[:, [1, 4, 5, 7]] @ [1.0, -1.0, 0.7, 1.2] + 0.5 * rng.normal(size=rows)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("one per group", "At most one column is chosen of each of 3 groups."),
        ("bands", "No two columns are closer than 2 (by the numbers in their names)."),
        ("hierarchy", "A product is chosen only together with its factors."),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_the_answer_and_the_report_say_the_limits(kind: str, says: str, tmp_path: Path) -> None:
    curve = select_size(SubsetProblem(*data(), **KINDS[kind]), [1, 2, 3], cv=4, effort="quick")
    assert says in " ".join(curve.summary().split())
    page = write_report(curve, tmp_path / "report.html").read_text(encoding="utf-8")
    assert says in " ".join(page.split())


def test_noise_under_rules_is_called_noise() -> None:
    rng = np.random.default_rng(2)
    curve = select_size(SubsetProblem(rng.normal(size=(40, 12)), rng.normal(size=40), min_distance=3), cv=5)
    assert curve.sizes[-1] == 4  # by default, as many as can stand together
    text = " ".join(curve.summary().split())
    assert "No set of columns predicts the target better than its mean" in text
    assert "No two columns are closer than 3" in text


def test_sizes_that_cannot_be_had_are_refused() -> None:
    problem = SubsetProblem(*data(), min_distance=4)
    with pytest.raises(ValueError, match="holds 5, but with min_distance at most 3 columns can be chosen"):
        select_size(problem, [1, 5], cv=4)
    with pytest.raises(TypeError, match="expected whole numbers of columns from 1 to 3"):
        select_size(problem, [1.5], cv=4)  # type: ignore[list-item]
