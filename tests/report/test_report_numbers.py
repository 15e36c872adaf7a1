"""The numbers behind the figures, without drawing, and numbers as text."""

from dataclasses import replace

import numpy as np
import pytest

from _curves import LONG, make_curve, plain_names
from pairflip import text
from pairflip.report import curve_tables
from pairflip.report.figures_by_column import CountMap
from pairflip.report.figures_by_size import ErrorBars, marks
from pairflip.report.figures_held_out import HeldOutPoints
from pairflip.selection.decide import held_out

CURVE = make_curve()


def test_error_bars_are_one_standard_error_and_sorted_by_size():
    curve = make_curve(sizes=[5, 2, 7])
    bars, at = ErrorBars(curve), curve.at(curve.best_size)
    assert bars.sizes.tolist() == [2, 5, 7]
    np.testing.assert_allclose((bars.high**2 - bars.low**2)[0] / 2, 2 * curve.cv_error_se[curve.at(2)])
    assert bars.limit**2 / 2 == pytest.approx(curve.cv_error[at] + curve.cv_error_se[at])
    np.testing.assert_allclose(bars.error, [held_out(curve, size).rmse for size in (2, 5, 7)])
    assert bars.name == "RMSE"


def test_size_0_is_a_line_and_not_a_size():
    bars = ErrorBars(CURVE)
    assert bars.sizes.tolist() == list(range(1, 9))
    assert bars.without == pytest.approx(held_out(CURVE, 0).rmse)
    forced = replace(CURVE, always=np.array([23]), always_coefs=np.ones((9, 1)))
    uncentred = replace(CURVE, settings={"center": None})
    texts = [ErrorBars(curve).without_text for curve in (CURVE, forced, uncentred)]
    assert texts == ["mean alone", "forced columns alone", "zero for every row"]


def test_marks_are_the_recommended_size_and_one_worth_knowing():
    assert [(m.size, m.text) for m in marks(CURVE)] == [(4, "recommended")]
    two = make_curve(columns=60, rows=100, sizes=range(1, 9), names=plain_names(60), noise=2.5)
    assert two.one_se_size < two.best_size
    assert [(m.size, m.text, m.recommended) for m in marks(two)] == [
        (two.one_se_size, "recommended", True),
        (two.best_size, "lowest error", False),
    ]


def test_where_nothing_predicts_the_lowest_error_with_columns_is_shown():
    noise = make_curve(rows=40, noise=8, seed=0)
    lowest = 1 + int(np.argmin(noise.cv_error[1:]))
    assert noise.best_size == 0
    assert noise.answer.shown == lowest
    assert [(m.size, m.recommended) for m in marks(noise)] == [(lowest, False)]
    assert curve_tables.size_words(noise, 0) == ["lowest error", "one-SE size"]


def test_counts_are_ordered_cut_and_say_so():
    counts, total = CountMap(CURVE, limit=6), CURVE.selection_counts.sum(axis=0)
    assert counts.columns.tolist() == np.argsort(-total, kind="stable")[:6].tolist()
    assert counts.cut == f"6 most selected of {np.count_nonzero(total)} columns"
    np.testing.assert_array_equal(counts.counts, CURVE.selection_counts[1:, counts.columns])
    np.testing.assert_allclose(counts.fraction * CURVE.n_folds, counts.counts)
    assert counts.final[3].sum() == 4
    assert CountMap(CURVE).cut == f"all {np.count_nonzero(total)} columns selected in any fold"
    wide = make_curve(columns=2000, names=plain_names(2000))
    assert CountMap(wide).columns.size == 40
    assert wide.selection_counts.sum(axis=0)[CountMap(wide).columns].min() > 0


def test_thinned_predictions_keep_outliers_and_the_numbers_of_all_rows():
    full, thin, errors = HeldOutPoints(CURVE), HeldOutPoints(CURVE, limit=30), held_out(CURVE, 4)
    assert (full.size, len(full.names), len(thin.names)) == (4, 60, 30)
    assert (full.rmse, full.explained) == (thin.rmse, thin.explained)
    assert full.rmse == errors.rmse
    assert thin.cut == "30 of 60 held-out predictions"
    worst = np.array(full.names)[np.argsort(-np.abs(full.residual))[:10]]
    assert set(worst.tolist()) <= set(thin.names)
    np.testing.assert_allclose(full.residual, full.observed - full.predicted)


def test_wild_predictions_of_a_size_are_outside_its_axes_and_counted():
    predictions = CURVE.predictions.copy()
    predictions[4, 7], predictions[8, 9] = 1e6, -1e9
    points = HeldOutPoints(replace(CURVE, predictions=predictions), 4)
    low, high = CURVE.observed.min(), CURVE.observed.max()
    assert (points.beyond, HeldOutPoints(CURVE, 4).beyond) == (1, 0)
    assert low - (high - low) <= points.axis[0] <= low
    assert high <= points.axis[1] <= high + (high - low)
    assert points.residual_axis[0] > -100


def test_labels_are_one_line_short_and_different():
    names = ["a\nb", "same", "same", LONG, LONG[:-1] + "!!", "", "x\x00\u202e", "\ud800"]
    shown = text.column_labels(names, range(8), 20)
    assert shown[:3] == ["a↵b", "same [1]", "same [2]"]
    assert all(len(label) <= 26 and label.isprintable() for label in shown)
    assert len(set(shown)) == 8
    assert text.column_labels(names, [1])[0] == "same [1]", "alone in its list, still not the only one of its name"


NAN, INF = np.nan, np.inf
TEXTS = {
    "number": {
        **{NAN: "–", INF: "–", 0: "0", 123456.7: "123457", 0.00123456: "0.001235", 9999.96: "10000"},
        **{1e-9: "1e-09", -2.5: "-2.5", 3.2e12: "3.2e+12", 99999.6: "100000"},
    },
    "percent": {0.0: "0 %", 1.0: "100 %", 0.999: ">99 %", 0.002: "<1 %", -0.001: "<0 %", -0.5: "-50 %", NAN: "–"},
    "plus_minus": {
        **{(0.12776, 0.0251): "0.128 ± 0.025", (41.91, 11.3): "42 ± 11", (31234.0, 1234.0): "31200 ± 1200"},
        **{(1.0, NAN): "1", (NAN, 1.0): "–", (2.5e-9, 1e-10): "2.500e-09 ± 1.0e-10", (3.0, 0.0): "3"},
    },
    "explained": {
        **{0.874: "explained 87 % of the variance", -0.2: "worse than the mean", -2.34: "worse than the mean"},
        **{NAN: "explained variance unknown (the target does not vary)"},
    },
    "r2_text": {
        0.874: "0.87",
        0.9962: "0.996",
        0.99996: "0.99996",
        1.0: "1.00",
        -0.2: "-0.20",
        -2.34: "worse than the mean",
        NAN: "–",
    },
    "aligned": {
        ((1, 2.5, 30),): ["1.00", "2.50", "30.00"],
        ((0.0012, 0.5),): ["0.0012", "0.5000"],
        ((1e-9, 2.3e-8),): ["0.100e-08", "2.300e-08"],
        ((1e5, 2e-3, NAN),): ["1.000e+05", "2.000e-03", "–"],
        ((123456.0, -99999.0),): ["123456", "-99999"],
        ((9.9996, 1),): ["10.00", "1.00"],
        ((0, 0, INF),): ["0", "0", "–"],
    },
    "aligned_plus_minus": {
        ((0.128, 41.2), (0.025, 11.0)): ["0.128 ± 0.025", "41.200 ± 11.000"],
        ((1e5, 1.0), (10.0, 0.01)): ["1.000e+05 ± 1.0e+01", "1.000e+00 ± 1.0e-02"],
        ((3.0, 2.0, NAN), (0.0, 0.5, 1.0)): ["3.00", "2.00 ± 0.50", "–"],
        ((3.0, 2.0), (NAN, NAN)): ["3.000", "2.000"],
    },
}


@pytest.mark.parametrize("name", TEXTS)
def test_numbers_as_text(name):
    texts = {given: getattr(text, name)(*given if isinstance(given, tuple) else (given,)) for given in TEXTS[name]}
    assert list(texts.values()) == list(TEXTS[name].values())
