"""The number of groups: held-out errors against literal refits, what a curve tells of groups, half-samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from _groups import combined_case, people
from pairflip import SizeCurve, SubsetProblem, best_subset, select_size
from pairflip.report import write_report
from pairflip.report.answer import answer_of
from pairflip.report.figures_by_column import CountMap
from pairflip.selection.folds import as_folds


def problem_of(X: Any, y: Any, **more: Any) -> SubsetProblem:
    _, _, names, groups = people()
    return SubsetProblem(X, y, names=names, groups=groups, **more)


@pytest.fixture(scope="module")
def curve() -> SizeCurve:
    return select_size(problem_of(*people()[:2]), range(1, 5), cv=5, stability=10)


def test_what_is_told_is_in_columns_and_sizes_in_groups(curve: SizeCurve) -> None:
    X, y, _, groups = people()
    assert curve.best_size in (2, 3)
    assert curve.columns(2) == ["x0", "x1", "race=a", "race=b", "race=c", "race=d"]
    assert curve.supports[curve.at(2)].tolist() == [0, 1, 8, 9, 10, 11]
    assert curve.selection_counts[curve.at(2)].tolist() == [5, 5, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5]
    assert {name: own.tolist() for name, own in (curve.groups or {}).items()} == groups
    assert curve.unchanged[curve.at(2)] == 1.0
    fit = problem_of(X, y).fit([0, 1, 8, 9, 10, 11])
    np.testing.assert_allclose(curve.predict(X[:4], 2), X[:4, fit.support] @ fit.coef + fit.intercept)
    frame = curve.coefficients(2)
    assert frame["column"].tolist() == ["", "x0", "x1", "race=a", "race=b", "race=c", "race=d"]
    assert frame["standard_error"].gt(0).all()
    # Five coefficients are fitted beside the constant: the fourth dummy adds nothing.
    energy = curve.energies[curve.at(2)]
    assert curve.bic[curve.at(2)] == pytest.approx(60 * np.log(2 * energy / 60) + 6 * np.log(60))
    stand_ins = curve.stand_ins.of(8)
    assert stand_ins
    assert not {other for other, _ in stand_ins} & {8, 9, 10, 11}


def test_half_samples_count_groups(curve: SizeCurve) -> None:
    halves = curve.stability
    assert halves is not None
    assert halves.n_candidates == 6
    size = int(halves.sizes[0])
    names = dict(zip(halves.columns.tolist(), halves.names, strict=True))
    assert {names[j] for j in halves.chosen[0].tolist()} >= {"pair", "race"}
    frame = curve.coefficients(size).set_index("column")
    assert frame.loc["race=b", "frequency"] == frame.loc["race=d", "frequency"] == halves.frequency(8, size)


def test_a_level_that_only_the_held_out_row_has_is_predicted_by_the_others() -> None:
    X, y, _, _ = people(30)
    X[:, 8:] = np.eye(4)[np.arange(30) % 3]
    X[7, 8:] = [0, 0, 0, 1]  # the one row of this level
    curve = select_size(problem_of(X, y), [1, 2], cv="loo")
    assert np.isfinite(curve.predictions).all()
    at = curve.at(2)
    assert curve.fold_supports[at][7].tolist() == [0, 1, 8, 9, 10, 11]
    kept = np.delete(np.arange(30), 7)
    design = np.column_stack([X[:, :2], X[:, 8:11]])  # no constant: one for each level
    coef = np.linalg.lstsq(design[kept], y[kept], rcond=None)[0]
    assert curve.predictions[at, 7] == pytest.approx(X[7, :2] @ coef[:2] + coef[2:].mean())


def test_sizes_that_cannot_be_are_refused() -> None:
    X, y, _, _ = people(24)
    problem = problem_of(X, y)
    with pytest.raises(ValueError, match=r"sizes \(--sizes\) holds 7, but the columns that vary make up 6 groups"):
        select_size(problem, [7])
    with pytest.raises(TypeError, match="expected whole numbers of groups from 1 to 6"):
        select_size(problem, [2.5])  # type: ignore[list-item]
    wide = SubsetProblem(X, y, groups={"all": range(4), "rest": range(4, 11)})
    few = [(np.arange(8), np.arange(8, 24)), (np.arange(8, 24), np.arange(8))]
    with pytest.raises(
        ValueError, match=r"even the smallest 3 groups have 12 independent columns, and a fold has 8 rows"
    ):
        select_size(wide, [3], cv=few)
    assert select_size(problem, cv=5).sizes.tolist() == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("seed", range(12))
def test_held_out_rows_are_predicted_by_least_squares_on_the_others(seed: int) -> None:
    case = combined_case(seed)
    problem = case.problem()
    folds = as_folds("loo" if seed in (3, 5) else 4, problem, None)
    judge = problem.loss.held_out(problem, folds)
    units = problem.form.candidates[: 1 + seed % 3]
    residuals, energies = judge.judged(np.tile(units, (len(folds), 1, 1)))
    columns = problem.columns_of(units)
    fits = judge.fits(np.tile(columns, (len(folds), 1)))
    for f, (left, place) in enumerate(zip(folds.left_out, folds.places, strict=True)):
        kept = np.delete(np.arange(problem.n_rows), left)
        fit = case.literal_fit(columns, kept)
        told = residuals[0].reshape(-1, len(fit.scale))[place] * fit.scale
        expected = (problem.targets - fit.predict(problem.X))[folds.rows[f]]
        np.testing.assert_allclose(told, expected, rtol=1e-9, atol=1e-9 * np.abs(problem.y).max())
        if np.isfinite(energies[f, 0]):
            assert energies[f, 0] == pytest.approx(fit.energy, rel=1e-9, abs=1e-10 * problem.form.yy)
        coefs = np.reshape(fits.coefs[f], (columns.size, -1))
        forced = np.reshape(fits.always_coefs[f], (problem.always.size, len(fit.scale)))
        again = problem.X[:, columns] @ coefs + problem.X[:, problem.always] @ forced
        again = (again + fits.intercepts[f])[folds.rows[f]]
        np.testing.assert_allclose(problem.targets[folds.rows[f]] - again, expected, rtol=1e-8, atol=1e-8)


def test_a_reader_is_told_of_groups(curve: SizeCurve, tmp_path: Path) -> None:
    size = int(curve.stability.sizes[0])  # type: ignore[union-attr]
    text = " ".join(curve.summary().split())
    assert f"Keep {size} groups (" in text
    assert "“pair” (“x0” and “x1”)" in text
    assert "“race” (“race=a”, “race=b”, “race=c” and “race=d”)" in text
    assert "allow for the number of groups having been chosen" in text
    assert f"exactly these {size} groups were selected" in text
    assert "pair (2 columns), race (4 columns)" in text
    assert curve.top_columns(2) == [("pair", 5), ("race", 5)]
    assert curve.to_pandas().set_index("size").loc[2, "groups"] == ["pair", "race"]
    assert answer_of(curve).to_json(curve)["groups"]["pair"] == ["x0", "x1"]
    page = write_report(curve, tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("How many groups", "Which groups:", "size (number of groups)", "2 groups (6 columns", ">Group<"):
        assert words in page
    counts = CountMap(curve)
    assert counts.labels[:2] == ["pair", "race"]
    assert counts.cut.endswith("groups selected in any fold")
    trace = best_subset(problem_of(*people()[:2]), 2)
    assert "The best 2 groups found." in trace._repr_html_()
    assert curve.to_datatree()["size_curve"]["mask"].sum("column").values[curve.at(2)] == 6
