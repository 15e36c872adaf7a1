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


@pytest.mark.parametrize("cv", ["loo", 5])
def test_limits_that_forbid_nothing_change_nothing(cv: Any) -> None:
    X, y = data(3, 30)
    weights = np.random.default_rng(0).integers(1, 3, size=30).astype(float)
    more = {"cv": cv, "stability": 4, "outer": 3 if cv == 5 else 0, "prove": False}
    free, ruled = (
        select_size(SubsetProblem(X, y, always=[10], sample_weight=weights, **limits), range(1, 4), **more)
        for limits in ({}, {"min_distance": 0.5})
    )
    for name in ("cv_error", "cv_error_se", "energies", "predictions", "selection_counts", "intercepts"):
        np.testing.assert_allclose(getattr(ruled, name), getattr(free, name), rtol=1e-12, err_msg=name)
    assert ruled.facts == free.facts
    assert ruled.chosen is not None
    assert free.chosen is not None
    assert ruled.chosen.to_json() == free.chosen.to_json()
    assert ruled.stability is not None
    assert free.stability is not None
    np.testing.assert_allclose(ruled.stability.frequencies, free.stability.frequencies)
    assert ruled.standard_errors is not None
    assert free.standard_errors is not None
    for own, others in zip(ruled.standard_errors.chosen, free.standard_errors.chosen, strict=True):
        np.testing.assert_allclose(own, others)
    told, expected = ruled.predict(X[:5], interval=0.8), free.predict(X[:5], interval=0.8)
    np.testing.assert_allclose(told.lower, expected.lower)
    np.testing.assert_allclose(told.upper, expected.upper)
    if cv == 5:
        assert ruled.outer is not None
        assert free.outer is not None
        assert ruled.outer.error == pytest.approx(free.outer.error)


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


def test_a_long_list_of_groups_is_cut_in_the_report() -> None:
    from pairflip.report.page import flat

    lines = flat({"column_groups": {f"g{j}": ["a"] for j in range(40)}})
    assert len(lines) == 13
    assert lines[-1] == ("column_groups", "and 28 more")


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


def test_bands_on_a_table_of_spectra(shared_data: Path) -> None:
    pd = pytest.importorskip("pandas")
    file = shared_data / "gasoline" / "gasoline.csv"
    if not file.exists():
        pytest.skip("gasoline is not there")
    table = pd.read_csv(file)
    octane = table.pop("target_octane")
    curve = select_size(SubsetProblem(table, octane, min_distance=20), [1, 2, 3], cv=10, effort="quick")
    for support in [*curve.supports, *(row for of_size in curve.fold_supports for row in of_size)]:
        places = np.array([float(curve.names[j].removeprefix("nm")) for j in support])
        assert np.all(np.diff(np.sort(places)) >= 20)
    assert curve.best_size >= 2


def test_products_of_the_diabetes_table(shared_data: Path) -> None:
    pd = pytest.importorskip("pandas")
    file = shared_data / "diabetes" / "diabetes_64.csv"
    if not file.exists():
        pytest.skip("diabetes is not there")
    table = pd.read_csv(file)
    y = table.pop("target_y")
    problem = SubsetProblem(table, y, hierarchy=True)
    assert len(problem.limits.needs) == 54
    curve = select_size(problem, [2, 6, 8], cv=4, effort="quick")
    for support in [*curve.supports, *(row for of_size in curve.fold_supports for row in of_size)]:
        names = {curve.names[j] for j in support}
        for name in names:
            assert {part.split("^")[0] for part in name.split(":")} <= names
    assert "bmi:map" in curve.columns(6)
