"""Whole groups of columns: energies, fits and searches against literal computation."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from _groups import people
from pairflip import Schedule, SubsetProblem, best_subset, select_size
from pairflip.engines import RankTooSmall, Refused, WalkPlan, get_engine
from pairflip.engines.numba import units
from pairflip.engines.numba.table import GAIN
from pairflip.selection.coefficients import standard_errors


def test_a_unit_is_out_of_reach_only_if_it_depends_on_the_others() -> None:
    X, y, _, groups = people()
    X[:, 5] = X[:, 0] - X[:, 1]  # depends on the pair
    problem = SubsetProblem(X, y, groups=groups)
    assert problem.form.candidates.tolist() == [0, 2, 5, 6, 7, 8]
    assert problem.form.energy(np.array([0, 2])) == np.inf
    assert np.isfinite(problem.form.energy(np.array([0, 5])))
    with pytest.raises(ValueError, match="columns of these groups are linearly dependent"):
        problem.fit([0, 1, 5])


@pytest.mark.parametrize("center", ["fold", "global", None])
@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_coefficients_give_the_energy_and_are_the_smallest(center: str | None, ridge: float) -> None:
    X, y, _, groups = people()
    weight = np.arange(60) % 3
    problem = SubsetProblem(X, y, groups=groups, center=center, always=[7], ridge=ridge, sample_weight=weight)  # type: ignore[arg-type]
    fit = problem.fit([0, 1, 8, 9, 10, 11])
    assert fit.support.tolist() == [0, 1, 8, 9, 10, 11]
    left = y - fit.intercept - X[:, fit.support] @ fit.coef - X[:, [7]] @ fit.always_coef
    energy = 0.5 * (weight @ left**2 + ridge * fit.coef @ fit.coef)
    assert fit.energy == pytest.approx(energy, rel=1e-12)
    if center is not None:  # of all coefficients of dummies that fit alike, the smallest ones
        assert fit.coef[2:].sum() == pytest.approx(0.0, abs=1e-10)
    near = SubsetProblem(X, y, groups=groups, center=center, always=[7], ridge=1e-7 + ridge, sample_weight=weight)  # type: ignore[arg-type]
    np.testing.assert_allclose(near.fit(fit.support).coef, fit.coef, atol=1e-5)


def test_standard_errors_are_those_of_the_columns_and_of_contrasts() -> None:
    X, y, _, groups = people()
    plain, grouped = SubsetProblem(X, y, always=[7]), SubsetProblem(X, y, always=[7], groups=groups)
    for support in ([0, 1, 5], [0, 1, 2, 3, 4, 6]):
        there, here = (standard_errors(p, [p.fit(support)]).ordinary for p in (plain, grouped))
        for a, b in (
            (there.chosen[0], here.chosen[0]),
            (there.always, here.always),
            (there.intercepts, here.intercepts),
        ):
            np.testing.assert_allclose(b, a, rtol=1e-9)
    # Dummies that add up to zero: the same as with columns that code for that (the last one is minus the others).
    coded = X.copy()
    coded[:, 8:11] -= X[:, [11]]
    literal = SubsetProblem(coded, y)
    dummies = SubsetProblem(X, y, groups={"race": [8, 9, 10, 11]})
    expected, found = (
        standard_errors(p, [p.fit(s)]).ordinary for p, s in ((literal, [0, 8, 9, 10]), (dummies, [0, 8, 9, 10, 11]))
    )
    np.testing.assert_allclose(found.chosen[0][:4], expected.chosen[0], rtol=1e-9)
    np.testing.assert_allclose(found.intercepts, expected.intercepts, rtol=1e-9)


def test_wide_groups_leave_room_for_narrow_ones() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 27))
    y = X[:, :15].sum(axis=1)  # the wide group explains everything, but leaves no room for three others
    problem = SubsetProblem(X, y, groups={"wide": range(15), **{f"g{i}": range(i, i + 3) for i in range(15, 27, 3)}})
    assert problem.form.n_columns == 5
    trace = best_subset(problem, 4)
    assert trace.best_support.tolist() == list(range(15, 27))
    few = SubsetProblem(
        X[:9], y[:9], groups={"wide": range(15), **{f"g{i}": range(i, i + 3) for i in range(15, 27, 3)}}
    )
    with pytest.raises(RankTooSmall, match="only 2 of the candidate groups are linearly independent"):
        best_subset(few, 3)


def test_what_cannot_be_is_said() -> None:
    X, y, names, groups = people()
    problem = SubsetProblem(X, y, names=names, groups=groups)
    assert "3 groups" in repr(problem)
    with pytest.raises(ValueError, match=r"k is 6, but the columns that vary make up 6 groups .* below 6"):
        best_subset(problem, 6)
    with pytest.raises(TypeError, match=r"k is 1\.5; expected a whole number of groups"):
        best_subset(problem, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lacks the column 'race=b' of the group 'race'; expected all columns"):
        problem.fit([8, 10, 11])
    with pytest.raises(ValueError, match="engine is 'cuda' and groups is given"):
        best_subset(problem, 2, engine="cuda")
    with pytest.raises(ValueError, match=r"matrix of 12 columns .* groups of columns .* memory_budget=1152"):
        SubsetProblem(X, y, groups=groups, memory_budget=100)
    for asked in ({"method": "anneal"}, {"chains": 2}, {"schedule": Schedule.paper()}):
        with pytest.raises(ValueError, match=r"asks for annealing, .* groups are given; expected method='descend'"):
            best_subset(problem, 2, **asked)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"method asks for annealing, .* groups are given"):
        select_size(problem, [2], method="anneal")
    plan = WalkPlan(2, np.ones(1), np.ones(1, np.int64), np.zeros((1, 2), np.uint32))
    with pytest.raises(Refused, match="Groups of columns are not annealed"):
        get_engine("numba").walk([(problem.form, plan)])
    with pytest.raises(ValueError, match="hierarchy says that 'race' needs itself"):
        SubsetProblem(X, y, names=names, groups=groups, hierarchy={"race=a": ["x0"], "x1": ["race=b"]})
    with pytest.raises(ValueError, match="k is 4, but with min_distance at most 3 groups can be chosen together"):
        best_subset(SubsetProblem(X, y, groups=groups, min_distance=1.5), 4)
    X[:, 8:12] = 1.0
    assert SubsetProblem(X, y, groups=groups).form.candidates.tolist() == [0, 2, 5, 6, 7]


@pytest.mark.parametrize(("name", "wide", "k"), [("tecator", 5, 2), ("tecator", 5, 3), ("hitters", 2, 4)])
def test_windows_of_real_tables(shared_data: Path, name: str, wide: int, k: int) -> None:
    """Neighbouring wavelengths are all but equal, inside a window and between windows."""
    table = pd.read_csv(shared_data / name / f"{name}.csv")
    X = table[[column for column in table if not column.startswith("target")]]
    target = next(column for column in table if column.startswith("target"))
    groups = {f"w{j}": range(j, min(j + wide, X.shape[1])) for j in range(0, X.shape[1], wide)}
    problem = SubsetProblem(X, table[target], groups=groups)
    lowest = min(problem.form.energy(np.array(own)) for own in combinations(range(problem.form.n_columns), k))
    assert best_subset(problem, k, effort="quick").best_energy == pytest.approx(lowest, rel=1e-9)


def test_gains_of_units_are_differences_of_energies() -> None:
    X, y, _, groups = people()
    form = SubsetProblem(X, y, groups=groups).form
    kernel_form = units.form_of(form)
    table = units.new_table(kernel_form, 3)
    units.empty(kernel_form, table)
    units.add_unit(form.matrix, kernel_form, table, 0, 1)
    units.best_addition(kernel_form, table, 1, np.ones(form.n_columns, np.uint8))
    for u in (0, 2, 3, 4, 5):
        lower = form.energy(np.array([1])) - form.energy(np.array(sorted([1, u])))
        assert 0.5 * table.values[GAIN, u] == pytest.approx(lower, rel=1e-9)
