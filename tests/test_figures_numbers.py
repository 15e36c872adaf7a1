"""The numbers behind the figures, without drawing."""

import dataclasses

import numpy as np
import pytest

from _curves import LONG, make_curve, plain_names, unannealed
from pairflip import SubsetProblem, anneal
from pairflip.figures import labels, numbers

CURVE = make_curve()


def test_error_bars_are_one_standard_error_and_sorted_by_size():
    backwards = make_curve(sizes=[5, 2, 7])
    bars = numbers.error_bars(backwards)
    assert bars.sizes.tolist() == [2, 5, 7]
    np.testing.assert_allclose((bars.high - bars.low)[0], 2 * backwards.cv_error_se[1])
    at = backwards.at(backwards.best_size)
    assert bars.limit == pytest.approx(backwards.cv_error[at] + backwards.cv_error_se[at])


def test_an_unknown_standard_error_gives_no_bar():
    errors = np.where(CURVE.sizes == CURVE.best_size, CURVE.cv_error_se, np.nan)
    bars = numbers.error_bars(dataclasses.replace(CURVE, cv_error_se=errors))
    assert np.count_nonzero(bars.high > bars.low) == 1
    assert np.isfinite(bars.limit)


def test_counts_are_ordered_cut_and_say_so():
    counts = numbers.count_map(CURVE, limit=6)
    total = CURVE.selection_counts.sum(axis=0)
    assert counts.columns.tolist() == np.argsort(-total, kind="stable")[:6].tolist()
    assert counts.cut == f"6 most selected of {np.count_nonzero(total)} columns"
    np.testing.assert_array_equal(counts.counts, CURVE.selection_counts[:, counts.columns])
    np.testing.assert_allclose(counts.share * CURVE.n_folds, counts.counts)
    assert counts.final[3].sum() == 4
    assert numbers.count_map(CURVE).cut == f"all {np.count_nonzero(total)} columns selected in any fold"


def test_columns_never_selected_are_not_shown():
    wide = make_curve(columns=2000, names=plain_names(2000))
    counts = numbers.count_map(wide)
    assert counts.columns.size == 40
    assert wide.selection_counts.sum(axis=0)[counts.columns].min() > 0


def test_the_final_fit_is_shown_even_if_no_fold_selected_it():
    supports = list(CURVE.supports)
    supports[3] = np.array([0, 1, 2, 23])
    lonely = CURVE.selection_counts.copy()
    lonely[:, 23] = 0
    counts = numbers.count_map(dataclasses.replace(CURVE, supports=tuple(supports), selection_counts=lonely), limit=6)
    assert 23 in counts.columns
    assert counts.columns.size == 6
    assert counts.cut == "5 most selected of 23 columns and 1 more of the final fits"


def test_paths_hold_the_coefficients_and_gaps():
    paths = numbers.coefficient_paths(CURVE)
    assert not paths.relative
    for s, support in enumerate(CURVE.supports):
        has = np.isfinite(paths.coefs[s])
        assert sorted(paths.columns[has].tolist()) == support.tolist()
        np.testing.assert_allclose(paths.coefs[s][has], CURVE.coef(int(CURVE.sizes[s]))[paths.columns[has]])
    assert set(paths.columns[: CURVE.best_size].tolist()) == set(CURVE.supports[3].tolist())


def test_paths_are_relative_where_units_differ_too_much():
    coefs = tuple(c * np.where(s == 0, 1e6, 1.0) for c, s in zip(CURVE.coefs, CURVE.supports, strict=True))
    paths = numbers.coefficient_paths(dataclasses.replace(CURVE, coefs=coefs))
    assert paths.relative
    np.testing.assert_allclose(np.nanmax(np.abs(paths.values), axis=0), 1.0)
    assert np.nanmax(paths.coefs) > 1e5


def test_share_explained_is_one_minus_residual_over_total():
    y = CURVE.observed
    for s, k in enumerate(CURVE.sizes.tolist()):
        expected = 1 - 2 * CURVE.cv_error[s] / np.var(y)
        assert numbers.share_explained(CURVE, k) == pytest.approx(expected)
    constant = dataclasses.replace(CURVE, observed=np.ones_like(y))
    assert np.isnan(numbers.share_explained(constant, 1))


def test_exact_folds_do_not_depend_on_the_order_of_columns():
    turned = dataclasses.replace(CURVE, fold_supports=tuple(f[:, ::-1] for f in CURVE.fold_supports))
    for s, k in enumerate(CURVE.sizes.tolist()):
        assert numbers.exact_folds(turned, k) == round(CURVE.stability[s] * CURVE.n_folds)


def test_thinned_predictions_keep_outliers_and_the_numbers_of_all_rows():
    full, thin = numbers.held_out(CURVE), numbers.held_out(CURVE, limit=30)
    assert (full.rows.size, thin.rows.size) == (60, 30)
    assert (full.rmse, full.share_explained) == (thin.rmse, thin.share_explained)
    assert thin.cut == "30 of 60 held-out predictions"
    worst = full.rows[np.argsort(-np.abs(full.residual))[:10]]
    assert set(worst.tolist()) <= set(thin.rows.tolist())
    np.testing.assert_allclose(full.residual, full.observed - full.predicted)


def test_cooling_runs_from_hot_to_cold_and_keeps_best_and_worst_chain():
    curves = numbers.cooling(CURVE, 3, chains=2)
    assert np.all(np.diff(curves.temperature) < 0)
    last = CURVE.annealing.energy[2, :, -1]
    assert sorted(curves.energy[:, -1]) == [last.min(), last.max()]
    assert curves.cut == "2 of 6 chains"


def test_cooling_of_a_trace_leaves_out_infinite_temperature():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8))
    trace = anneal(SubsetProblem(X, X[:, 0] + rng.normal(size=30)), 2, "paper", chains=3, engine="reference")
    curves = numbers.cooling(trace)
    assert curves.temperature[0] < 1e3  # the paper starts at 1e8
    assert curves.energy.shape == (3, curves.temperature.size)


def test_the_frozen_end_of_a_schedule_is_left_out():
    acceptance = CURVE.annealing.acceptance.copy()
    acceptance[:, :, 20:] = 0
    frozen = dataclasses.replace(CURVE, annealing=dataclasses.replace(CURVE.annealing, acceptance=acceptance))
    assert numbers.cooling(frozen).temperature.size == 23


def test_a_size_that_was_not_annealed_has_no_curves():
    curves = numbers.cooling(unannealed(CURVE), 8)
    assert curves.temperature.size == curves.energy.size == 0
    assert "no annealing" in curves.cut


def test_labels_are_one_line_short_and_different():
    names = ["a\nb", "same", "same", LONG, LONG[:-1] + "!!", "", "x\x00\u202e", "\ud800"]
    shown = labels.column_labels(names, range(8), 20)
    assert shown[:3] == ["a↵b", "same [1]", "same [2]"]
    assert all(len(text) <= 26 and text.isprintable() for text in shown)
    assert len(set(shown)) == 8
    assert labels.column_labels(names, [1])[0] == "same [1]", "alone in its list, still not the only one of its name"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *[(np.nan, "–"), (np.inf, "–"), (0, "0"), (123456.7, "123457"), (0.00123456, "0.001235"), (9999.96, "10000")],
        *[(1e-9, "1e-09"), (-2.5, "-2.5"), (3.2e12, "3.2e+12"), (99999.6, "100000")],
    ],
)
def test_numbers_are_never_nan_and_rarely_exponents(value, text):
    assert labels.number(value) == text


@pytest.mark.parametrize(
    ("part", "text"),
    [(0.0, "0 %"), (1.0, "100 %"), (0.999, ">99 %"), (0.002, "<1 %"), (-0.001, "<0 %"), (-0.5, "-50 %"), (np.nan, "–")],
)
def test_percent_rounds_honestly(part, text):
    assert labels.percent(part) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        *[(0.12776, 0.0251, "0.128 ± 0.025"), (41.91, 11.3, "42 ± 11"), (31234.0, 1234.0, "31200 ± 1200")],
        *[(1.0, np.nan, "1"), (np.nan, 1.0, "–"), (2.5e-9, 1e-10, "2.500e-09 ± 1.0e-10"), (3.0, 0.0, "3")],
    ],
)
def test_plus_minus_rounds_to_two_digits_of_the_error(value, error, text):
    assert labels.plus_minus(value, error) == text
