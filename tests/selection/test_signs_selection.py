"""The number of columns where coefficients have signs: held-out errors against literal refits, and all that follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pairflip import SizeCurve, SubsetProblem, select_size

SIGNS = np.array([1, 1, -1, 0, 1, -1, 1, 0, 1, 1])


def table(seed: int = 0, rows: int = 40) -> tuple[Any, Any]:
    """Columns that are all alike; some effects have the wrong sign."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 10)) + 1.5 * rng.normal(size=(rows, 1)) + 3.0
    return X, X @ np.array([1.0, 0.5, -1.0, -1.0, -1.0, 0.5, 0, 0, 0, 0.2]) + 0.7 * rng.normal(size=rows) + 5.0


@pytest.fixture(scope="module")
def curve() -> SizeCurve:
    return select_size(SubsetProblem(*table(), positive=SIGNS.tolist()), range(1, 6), cv=5, stability=4)


def test_what_only_wrong_signs_explain_is_noise() -> None:
    X = np.random.default_rng(0).normal(size=(40, 6))
    wrong = -X[:, 0] - X[:, 1] + 0.2 * np.random.default_rng(1).normal(size=40)
    assert select_size(SubsetProblem(X, wrong), [1, 2], cv=4, effort="quick").facts["p_value"] < 0.02
    assert select_size(SubsetProblem(X, wrong, positive=True), [1, 2], cv=4, effort="quick").facts["p_value"] > 0.1


def test_standard_errors_are_those_of_the_columns_that_carry() -> None:
    problem = SubsetProblem(*table(), positive=SIGNS.tolist())
    curve = select_size(problem, [9], cv=3, effort="quick")
    frame = curve.coefficients(9).iloc[1:]
    idle = frame["coefficient"] == 0
    assert 0 < idle.sum() < 9
    assert frame["standard_error"].isna().equals(idle)
    carrying = [curve.names.index(name) for name in frame["column"][~idle]]
    ordinary = select_size(SubsetProblem(problem.X[:, carrying], problem.y), [len(carrying)], cv=3)
    np.testing.assert_allclose(
        frame["standard_error"][~idle], ordinary.coefficients(len(carrying))["standard_error"][1:], rtol=1e-9
    )


def test_the_answer_says_once_that_signs_were_kept(curve: SizeCurve) -> None:
    assert curve.settings["signs"] == {f"x{j}": int(sign) for j, sign in enumerate(SIGNS) if sign}
    assert curve.summary().count("Coefficients were kept") == 1
    assert "Coefficients were kept to the signs that were asked for." in " ".join(curve.summary().split())
    X, _ = table()
    positive = select_size(SubsetProblem(X, X[:, 0] + X[:, 4], positive=True), [1, 2], cv=3, effort="quick")
    assert positive.settings["signs"] == "all positive"
    assert "Coefficients were kept positive." in " ".join(positive.summary().split())
    assert "Coefficients were kept positive." in positive._repr_html_()
    # What only coefficients of the wrong sign would explain.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    wrong = SubsetProblem(X, 3.0 * X[:, 0] - X[:, 1:] @ np.ones(5) + 0.1 * rng.normal(size=30), positive=True)
    told = " ".join(select_size(wrong, [3], cv=5, effort="quick").summary().split())
    assert "Coefficients were kept positive; “x" in told
    assert "carry no weight in this fit: their coefficients are zero at the bound, so a smaller size does the" in told
