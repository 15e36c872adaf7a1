"""Bands and clusters: made without the target, counted in half-samples, bounded, told, drawn, saved."""

import dataclasses
import json

import numpy as np
import pytest

from _errors import sentence_of
from pairflip import SubsetProblem, figures, half_sample_stability, posterior, select_size
from pairflip.report.answer import answer_of
from pairflip.report.registry import figures_of
from pairflip.report.stability_words import stability_record
from pairflip.selection.curve_file import curve_from_json, curve_to_json
from pairflip.selection.stability import ALIKE, Clusters, Family, Stability, disjoint_clusters, false_bound

NAMES = [f"nm{900 + 5 * j}" for j in range(81)]  # 900 to 1300: windows of 20, every 10


def spectra(rows=60, seed=0):
    """Smooth rows over 81 positions, and a target that one place of the spectrum says with noise."""
    rng = np.random.default_rng(seed)
    at, peaks = np.arange(81), rng.uniform(0, 80, 40)
    shapes = np.exp(-0.5 * ((at - peaks[:, None]) / 12.0) ** 2)
    smooth = rng.normal(size=(rows, 40)) @ shapes
    y = smooth[:, 30] + 0.6 * rng.normal(size=rows)
    return smooth + 0.1 * rng.normal(size=(rows, 81)), y


def alike(rows=50, seed=1):
    """Twelve columns of noise, of which 3, 4 and 5 show the same, and so do 8 and 9 with opposite signs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 12))
    X[:, 4], X[:, 5] = X[:, 3] + 0.1 * rng.normal(size=rows), X[:, 3] + 0.1 * rng.normal(size=rows)
    X[:, 9] = 0.1 * rng.normal(size=rows) - X[:, 8]
    return X, 2 * X[:, 3] + X[:, 0] + rng.normal(size=rows)


def as_sets(clusters):
    return {tuple(each.tolist()) for each in clusters}


def test_windows_of_a_spectrum_overlap_by_half():
    family = Family(SubsetProblem(*spectra(), names=NAMES))
    windows = family.of(np.arange(81))
    assert family.ordered
    assert as_sets(windows) == {tuple(range(a, min(a + 4, 81))) for a in range(0, 76, 2)} | {(76, 77, 78, 79, 80)}
    assert as_sets(family.of(np.array([1, 40]))) == {(0, 1, 2, 3), (38, 39, 40, 41), (40, 41, 42, 43)}
    widths, numbers = family.sizes()
    assert dict(zip(widths.tolist(), numbers.tolist(), strict=True)) == {4: 38.0, 5: 1.0}


def test_windows_follow_the_numbers_in_the_names_and_other_columns_stand_alone():
    X, y = spectra()
    order = np.random.default_rng(3).permutation(81)
    mixed = Family(SubsetProblem(X[:, order], y, names=[NAMES[j] for j in order]))
    back = {tuple(sorted(order[list(each)].tolist())) for each in as_sets(mixed.of(np.arange(81)))}
    assert back == as_sets(Family(SubsetProblem(X, y, names=NAMES)).of(np.arange(81)))
    more = np.column_stack([np.random.default_rng(4).normal(size=60), X])
    assert (0,) in as_sets(Family(SubsetProblem(more, y, names=["temperature", *NAMES])).of(np.arange(82)))


def test_numbers_in_names_are_no_order_where_neighbours_are_not_alike():
    rng = np.random.default_rng(0)
    assert not Family(SubsetProblem(rng.normal(size=(40, 81)), rng.normal(size=40), names=NAMES)).ordered
    X, y = spectra()
    assert not Family(SubsetProblem(X, y, names=[f"{name}{chr(97 + j % 7)}" for j, name in enumerate(NAMES)])).ordered


def test_bits_and_columns_that_are_all_alike_have_no_bands():
    rng = np.random.default_rng(0)
    bits = np.repeat(rng.random((40, 10)) < 0.4, 4, axis=1) ^ (rng.random((40, 40)) < 0.005)
    factor = rng.normal(size=(40, 1)) + 0.1 * rng.normal(size=(40, 40))
    names = [f"X{j}" for j in range(100, 140)]
    for X, seen in ((bits.astype(float), bits[:, 21]), (factor, factor[:, 21])):
        halves = half_sample_stability(SubsetProblem(X, seen + 0.3 * rng.normal(size=40), names=names), 1, 4)
        assert halves.profile is None
        assert max(each.size for each in halves.clusters[0].members) > 1


@pytest.mark.parametrize("options", [{}, {"ridge": 5.0}, {"always": [0]}], ids=["plain", "ridge", "forced"])
def test_clusters_of_unordered_columns_are_those_correlated_with_one(options):
    X, y = alike()
    family = Family(SubsetProblem(X, y, **options))
    Z = X - X.mean(axis=0)
    for column in options.get("always", ()):
        Z = Z - np.outer(Z[:, column], Z[:, column] @ Z) / (Z[:, column] @ Z[:, column])
    columns = np.setdiff1d(np.arange(12), options.get("always", ()))
    R = np.abs(np.corrcoef(Z[:, columns].T))
    assert as_sets(family.of(columns)) == {tuple(columns[row >= ALIKE].tolist()) for row in R}
    assert {(3, 4, 5), (8, 9)} < as_sets(family.of(columns))
    assert as_sets(family.of(np.array([4]))) == {(3, 4, 5)}


def test_clusters_are_made_without_the_target_and_have_at_most_root_n_columns():
    X, y = alike()
    one, other = (Family(SubsetProblem(X, target)) for target in (y, np.random.default_rng(9).normal(size=50)))
    assert as_sets(one.of(np.arange(12))) == as_sets(other.of(np.arange(12)))
    np.testing.assert_equal(one.sizes(), other.sizes())
    assert one.sizes()[1].sum() == 12
    same = X[:, :1] + 0.01 * np.random.default_rng(0).normal(size=(50, 30))
    letters = [chr(97 + j) for j in range(26)] + list("ABCD")
    assert {each.size for each in Family(SubsetProblem(same, y, names=letters)).of(np.arange(30))} == {5}


def test_sizes_of_many_clusters_are_estimated_from_some(monkeypatch):
    X, y = alike()
    X = np.tile(X, (1, 10)) + 0.02 * np.random.default_rng(5).normal(size=(50, 120))
    every = Family(SubsetProblem(X, y)).sizes()
    monkeypatch.setattr("pairflip.selection.stability._SAMPLE", 60)
    some = Family(SubsetProblem(X, y)).sizes()
    assert some[1].sum() == pytest.approx(every[1].sum()) == 120
    assert some[0] @ some[1] == pytest.approx(every[0] @ every[1], rel=0.3)


def record(supports, clusters, sizes=(2,), n=40, **more):
    """Half-samples that selected given supports."""
    supports = np.array(supports)
    columns = np.unique(supports)
    known = Clusters(tuple(np.array(each) for each in clusters), np.array([1, 3]), np.array([20.0, 10.0]))
    return Stability(
        sizes=np.array(sizes), pairs=len(supports) // 2, rows=20, n_candidates=n, how="random halves of the rows",
        chosen=(supports[0],), columns=columns, names=[f"c{j}" for j in columns], supports=(supports,),
        coefs=(np.ones(supports.shape),), clusters=(known,), **more,
    )  # fmt: skip


def test_a_band_found_on_both_sides_of_a_boundary_is_one():
    supports = np.array([[3, 20], [4, 21], [3, 22], [4, 23], [5, 30], [4, 31], [3, 32], [4, 33], [5, 34], [4, 35]])
    halved = [np.arange(0, 4), np.arange(4, 8), np.arange(2, 6), np.arange(20, 24)]
    assert [each.tolist() for each in disjoint_clusters(halved, supports)] == [[2, 3, 4, 5], [20, 21, 22, 23]]
    partition = [each.tolist() for each in disjoint_clusters([halved[0], halved[1]], supports)]
    assert partition == [[4, 5, 6, 7], [0, 1, 2, 3]]
    assert disjoint_clusters([np.array([99])], supports) == ()


def test_findings_are_told_at_the_level_at_which_they_are_stable():
    halves = record([[1, 5 + i % 3] for i in range(10)], [[1, 2], [5, 6, 7], [9, 10]])
    one, band = halves.stable_clusters()
    assert (one.columns.tolist(), one.members.tolist(), one.frequency) == ([1], [1, 2], 1.0)
    assert (band.columns.tolist(), band.frequency) == ([5, 6, 7], 1.0)
    halves = record([[1 + i % 2, 5 if i < 6 else 30 + i] for i in range(10)], [[1, 2], [5, 6, 7]])
    assert [each.columns.tolist() for each in halves.stable_clusters()] == [[1, 2]]
    assert [each.columns.tolist() for each in halves.stable_clusters(0.5)] == [[1, 2], [5]]
    assert halves.cluster_frequency(np.array([5, 31, 37])) == 0.7
    frame = halves.clusters_to_pandas()
    assert frame.to_numpy().tolist() == [[2, 1.0, 2, True, "c1; c2"], [2, 0.6, 3, True, "c5"]]


def test_the_bound_sums_over_all_clusters():
    halves, single = record([[1, 5]] * 10, [[1]]), false_bound(2, 40, 5, 0.8)
    wide = false_bound(6, 40, 5, 0.8)  # as often as three columns of which two are selected blindly
    bound = halves.cluster_bound(0.8)
    assert bound.r_concave == pytest.approx(0.5 * single.r_concave + 0.25 * wide.r_concave)
    assert bound.worst_case == pytest.approx(0.5 * single.worst_case + 0.25 * wide.worst_case)
    many = dataclasses.replace(halves.clusters[0], numbers=np.array([20.0, 1e6]))
    assert dataclasses.replace(halves, clusters=(many,)).cluster_bound(0.8).worst_case == 2.0  # of two columns, two
    without = dataclasses.replace(halves, clusters=None)
    assert without.stable_clusters() == []
    assert sentence_of(ValueError, without.cluster_bound).startswith("the half-samples have no clusters; expected")


@pytest.fixture(scope="module")
def curve():
    return select_size(SubsetProblem(*spectra(), names=NAMES), [1, 2], cv=5, stability=15, stability_at="all")


def test_counts_in_half_samples_for_any_number_of_workers(curve):
    halves = curve.stability
    again = half_sample_stability(SubsetProblem(*spectra(), names=NAMES), [1, 2], 15, n_jobs=2)
    for at, (ours, theirs) in enumerate(zip(halves.clusters, again.clusters, strict=True)):
        np.testing.assert_equal(dataclasses.asdict(ours), dataclasses.asdict(theirs))
        members = np.concatenate(ours.members)
        assert np.unique(members).size == members.size
        sets = [set(s) for s in halves.supports[at].tolist()]
        for each in ours.members:
            assert halves.cluster_frequency(each, at + 1) == np.mean([bool(s & set(each.tolist())) for s in sets])
    np.testing.assert_allclose(halves.profile, spectra()[0].mean(axis=0))


def test_groups_chosen_as_a_whole_have_no_clusters_and_other_losses_have():
    X, y = alike()
    grouped = half_sample_stability(SubsetProblem(X, y, groups={"a": [3, 4], "b": [0, 1]}), 2, 4)
    assert (grouped.clusters, grouped.profile) == (None, None)
    for target, loss in ((y > 0, "logistic"), (np.floor(np.exp(0.5 * y)), "poisson")):
        halves = half_sample_stability(SubsetProblem(X, target, loss=loss), 2, 4)
        assert (3, 4, 5) in as_sets(halves.clusters[0].members)
    both = half_sample_stability(SubsetProblem(X, np.column_stack([y, -y + X[:, 1]])), 2, 4)
    assert both.clusters[0].members


def test_saved_and_read_again(curve):
    saved = json.loads(json.dumps(curve_to_json(curve)))
    again = curve_from_json(saved).stability
    np.testing.assert_equal(dataclasses.asdict(again), dataclasses.asdict(curve.stability))
    older = {name: value for name, value in saved["stability"].items() if name not in ("clusters", "profile")}
    old = curve_from_json({**saved, "stability": older})
    assert (old.stability.clusters, old.stability.profile) == (None, None)
    assert "In 30 random halves" in answer_of(old).text
    saved["stability"]["clusters"][0]["members"][0] = [81]
    with pytest.raises(ValueError, match="stability clusters has 81"):
        curve_from_json(saved)


def test_the_answer_names_the_band_and_the_figure_shows_it(curve):
    chosen = dataclasses.replace(curve, stability=half_sample_stability(SubsetProblem(*spectra(), names=NAMES), 1, 15))
    (band, *_) = chosen.stability.stable_clusters()
    assert band.columns.size > 1
    ends = f"one of “{NAMES[band.columns[0]]}” to “{NAMES[band.columns[-1]]}” in "
    assert ends in answer_of(chosen).text
    assert "Of bands of columns, at most" in answer_of(chosen).text
    shown = stability_record(chosen)
    assert shown["clusters"][0]["columns"] == [NAMES[j] for j in band.columns]
    assert len(shown["expected_false_clusters"]) == 4
    ax = figures.plot_bands(chosen, size=1)
    assert ax.get_lines()[0].get_xdata().tolist() == [900 + 5 * j for j in range(81)]
    (box,) = [path.get_extents() for path in ax.collections[0].get_paths()][:1]
    assert (box.x0, box.x1) == (900 + 5 * band.columns[0] - 2.5, 900 + 5 * band.columns[-1] + 2.5)
    assert "bands" in [figure.name for figure in figures_of(chosen)]


# Posterior ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"groups": {"g": [0, 1]}}], ids=["columns", "groups"])
def test_probability_of_at_least_one_is_the_sum_over_models(options):
    X, y = alike()
    problem = SubsetProblem(X[:, :8], y, **options)
    every = posterior(problem)
    for columns in ([3, 4, 5], [0], [1, 7], []):
        wanted = columns if problem.units is None else problem.columns_of(problem.units.units_of(columns))
        inside = [np.isin(model, wanted).any() for model in every.models]
        assert every.any_of(columns) == (pytest.approx(every.model_probability[inside].sum(), abs=1e-12), 0.0)
    drawn = posterior(problem, method="sample", sweeps=400)
    share, error = drawn.any_of([4, 5])
    assert 0 < error < 0.1
    assert abs(share - every.any_of([4, 5])[0]) < 5 * error


def test_any_of_a_forced_column_and_of_none():
    X, y = alike()
    forced = posterior(SubsetProblem(X[:, :8], y, always=[0]))
    assert forced.any_of([0, 7]) == (1.0, 0.0)
    assert "names the column 'q'" in sentence_of(ValueError, lambda: forced.any_of(["q"]))
