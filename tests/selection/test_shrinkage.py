"""A relative ridge: least squares with more rows, in folds, without leaks; and chosen together with the size."""

from dataclasses import replace

import numpy as np
import pytest

from _cli import invoke, small_table, without_figures
from _curves import assert_same_curve
from pairflip import Selection, SizeCurve, SubsetProblem, SubsetRegressor, SubsetRegressorCV, figures, select_size
from pairflip.report.answer import answer_of, shrinkage_words
from pairflip.report.page import render
from pairflip.selection import JournalError, merge_journals, run_shard
from pairflip.selection.curve_file import curve_from_json, curve_to_json
from pairflip.selection.run import identify, select_many
from pairflip.selection.settings import GRID

M, N = 26, 12
QUICK = {"cv": 5, "effort": "quick", "progress": False}


def table(seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((M, N)) + 1.0) * 10.0 ** rng.integers(-3, 4, N)
    X[:, 3] = X[:, 4] + 0.05 * X[:, 4].std() * rng.standard_normal(M)
    return X, (X / X.std(axis=0))[:, [0, 1, 3]] @ [1.0, -1.0, 0.5] + rng.standard_normal(M) + 3.0


def test_wide_table_gives_the_same():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 1100)).astype(np.float32)
    y = X[:, :3] @ [2.0, -1.0, 1.0] + rng.standard_normal(30)
    wide, ordinary = SubsetProblem(X, y, memory_budget=0), SubsetProblem(X, y)
    assert (wide.wide, ordinary.wide) == (True, False)
    one, other = (select_size(problem, [1, 3], ridge=[0.2], **QUICK) for problem in (wide, ordinary))
    np.testing.assert_allclose(one.cv_error, other.cv_error, rtol=1e-6)
    np.testing.assert_allclose(one.coef(3), other.coef(3), rtol=1e-5, atol=1e-9)


def test_multiplying_a_column_changes_nothing():
    X, y = table()
    factor = np.r_[1e-4, 3.0, -7.0, np.ones(N - 3)]
    one, other = (select_size(SubsetProblem(Z, y), [1, 2, 4], ridge=[0, 0.1, 1], **QUICK) for Z in (X, X * factor))
    assert one.ridge == other.ridge
    np.testing.assert_allclose(one.ridge_errors, other.ridge_errors, rtol=1e-8)
    np.testing.assert_allclose(one.coef(4), other.coef(4) * factor, rtol=1e-7)


def test_ridge_zero_is_no_ridge():
    problem = SubsetProblem(*table(), always=[2])
    plain, zero = select_size(problem, [1, 2], **QUICK), select_size(problem, [1, 2], ridge=[0.0], **QUICK)
    assert_same_curve(plain, zero, but=("seconds", "settings", "ridge_surface"))
    assert (zero.ridge, zero.ridge_predictions, plain.ridges) == (0.0, None, None)


@pytest.fixture(scope="module")
def chosen():
    """A table of many weak columns, and its curve."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 30))
    y = X @ rng.standard_normal(30) + 4.0 * rng.standard_normal(50)
    return X, y, select_size(SubsetProblem(X, y), [1, 3, 8, 15], ridge="auto", **QUICK)


def test_pair_with_the_lowest_error(chosen):
    X, y, curve = chosen
    r, s = np.unravel_index(np.argmin(curve.ridge_errors), curve.ridge_errors.shape)
    assert (curve.ridge, curve.best_size) == (GRID[r], curve.sizes[s])
    assert curve.ridge > 0
    np.testing.assert_array_equal(curve.ridges, GRID)
    np.testing.assert_array_equal(curve.ridge_errors[r], curve.cv_error)
    np.testing.assert_array_equal(curve.ridge_predictions[r], curve.predictions)
    mse = 0.5 * np.mean((curve.observed - curve.ridge_predictions) ** 2, axis=2)
    np.testing.assert_allclose(mse, curve.ridge_errors, rtol=1e-10)
    assert curve.settings["ridge"] == list(GRID)
    alone = SubsetProblem(X, y).with_shrinkage(curve.ridge)
    np.testing.assert_allclose(alone.fit(curve.supports[s]).coef, curve.coefs[s])


def test_files_with_and_without_the_ridge_surface(chosen, monkeypatch):
    *_, curve = chosen
    record = curve_to_json(curve)
    older = {name: value for name, value in record.items() if name != "ridge_surface"}
    assert curve_from_json(older).ridge_surface is None
    as_before = {**older, "surface": record["ridge_surface"]}  # its older name
    # Files of 0.2 may hold errors of temperatures under that name.
    with_more = {**record, "surface": {"sizes": [1], "betas": [1.0], "cv_error": [[0.5]], "unit": "greedy"}}
    for each in (record, as_before, with_more):
        assert_same_curve(curve, curve_from_json(each), but=())
    record["ridge_surface"]["ridge"] = 0.5
    with pytest.raises(ValueError, match="do not fit the sizes"):
        curve_from_json(record)
    monkeypatch.setattr("pairflip.selection.curve_file.MOST_PREDICTIONS", 10)
    short = curve_from_json(curve_to_json(curve))
    assert short.ridge_predictions is None
    np.testing.assert_array_equal(short.ridge_errors, curve.ridge_errors)


def test_journal_resumes_and_takes_more_ridges(tmp_path, monkeypatch):
    problem, folder = SubsetProblem(*table()), tmp_path / "journal"
    first = select_size(problem, [1, 2], ridge=[0, 0.1], journal=folder, **QUICK)
    with pytest.raises(JournalError, match=r"ridge = \"chosen with the size\", but this run has ridge = 0.0"):
        select_size(problem, [1, 2], journal=folder, **QUICK)
    more = select_size(problem, [1, 2], ridge=[0, 0.1, 1], journal=folder, **QUICK)
    np.testing.assert_array_equal(more.ridge_errors[:2], first.ridge_errors)
    monkeypatch.setattr("pairflip.selection.worker._descents", None)  # nothing is searched again
    again = select_size(problem, [1, 2], ridge=[0, 0.1], journal=folder, **QUICK)
    assert_same_curve(first, again)


def test_shards_are_joined(tmp_path):
    problem, settings = SubsetProblem(*table()), {"ridge": [0, 0.1], **QUICK}
    for part in (1, 2):
        run_shard(problem, [1, 2], journal=tmp_path / str(part), shard=(part, 2), **settings)
    whose = identify(problem, [1, 2], cv=5, effort="quick", ridge=[0, 0.1])
    merge_journals(tmp_path / "all", [tmp_path / "1", tmp_path / "2"], whose)
    joined = select_size(problem, [1, 2], journal=tmp_path / "all", **settings)
    assert_same_curve(select_size(problem, [1, 2], **settings), joined)


def test_estimator_keeps_the_chosen_pair(chosen):
    X, y, curve = chosen
    settings = {"sizes": [1, 3, 8, 15], "cv": 5, "effort": "quick", "random_state": 0, "choose": "best"}
    model = SubsetRegressorCV(ridge="auto", **settings).fit(X, y)
    assert (model.ridge_, model.n_nonzero_coefs_) == (curve.ridge, curve.best_size)
    np.testing.assert_allclose(model.coef_, curve.coef())
    np.testing.assert_allclose(model.predict(X), curve.predict(X, curve.best_size))
    assert SubsetRegressorCV(ridge=[0, 1.0], **settings).fit(X, y).curve_.ridges.tolist() == [0, 1]
    assert SubsetRegressorCV(ridge=2, **settings).fit(X, y).ridge_ == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0, -0.1], "ridge holds -0.1; expected numbers from 0"),
        ("much", "ridge is 'much'; expected 'auto'"),
        ([], "ridge is empty; expected 'auto'"),
        (0.1, "ridge is 0.1; expected 'auto'"),
    ],
)
def test_bad_values(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Selection([1], ridge=given)


def test_two_kinds_of_ridge_do_not_mix():
    X, y = table()
    with pytest.raises(ValueError, match="has ridge=2, a penalty in the units of the table"):
        select_size(SubsetProblem(X, y, ridge=2.0), [1], ridge="auto", **QUICK)
    with pytest.raises(ValueError, match=r"a relative ridge of 0\.1 already"):
        SubsetProblem(X, y).with_shrinkage(0.1).with_shrinkage(0.1)
    with pytest.raises(ValueError, match=r"ridge is auto; .* SubsetRegressorCV can choose it"):
        SubsetRegressor(1, ridge="auto").fit(X, y)
    with pytest.raises(ValueError, match="select_size for each problem"):
        next(select_many([SubsetProblem(X, y)], [1], ridge="auto"))


@pytest.mark.usefixtures("undrawn")
def test_answer_page_and_figure(chosen):
    *_, curve = chosen
    words, page = shrinkage_words(curve), render(curve)
    assert f"a ridge term of {curve.ridge:g}, chosen with the size from 0, 0.1, 1; the lowest RMSE" in words
    assert (words in answer_of(curve).text) == answer_of(curve).predicts
    assert "Table: error by ridge and size" in page
    assert '<h2 id="h-ridge_surface">How much shrinkage</h2>' in page
    labels = [line.get_label() for line in figures.plot_ridge_surface(curve).get_lines()]
    assert [label for label in labels if "chosen" in label] == [f"ridge {curve.ridge:g} (chosen)"]
    zero = replace(curve, ridge_surface=replace(curve.ridge_surface, ridge=0.0))
    assert "did not lower the error" in shrinkage_words(zero)
    plain = replace(curve, ridge_surface=None)
    assert shrinkage_words(plain) == ""
    assert "How much shrinkage" not in render(plain)
    with pytest.raises(ValueError, match="expected select_size"):
        figures.plot_ridge_surface(plain)


def test_command_line_and_its_settings(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    small_table(tmp_path / "small.csv")
    options = ["--sizes", "1-3", "--cv", "5", "--effort", "quick", "--jobs", "1"]
    result = invoke("select", tmp_path / "small.csv", "-t", "y", *options, "--ridge", "auto", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    curve = SizeCurve.load(tmp_path / "out" / "result.json")
    assert curve.ridges.tolist() == list(GRID)
    again = invoke("select", "--config", tmp_path / "out" / "run.toml", "-o", tmp_path / "again")
    assert again.exit_code == 0, again.stderr
    assert_same_curve(curve, SizeCurve.load(tmp_path / "again" / "result.json"))
    some = invoke("select", tmp_path / "small.csv", "-t", "y", *options, "--ridge", "0, 0.5", "-o", tmp_path / "some")
    assert some.exit_code == 0, some.stderr
    assert SizeCurve.load(tmp_path / "some" / "result.json").ridges.tolist() == [0, 0.5]
