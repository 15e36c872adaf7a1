"""What is said about half-samples and shuffled targets: in the answer, on the page, in files, on the command line."""

import dataclasses
import json

import numpy as np
import pytest

from _cli import invoke, planted, without_figures, write_csv
from _page import text_of
from pairflip import SubsetProblem, figures, select_size
from pairflip.cli.select import DEFAULT_STABILITY
from pairflip.report.answer import answer_of
from pairflip.report.page import render
from pairflip.report.registry import figures_of
from pairflip.report.stability_words import stability_record, stability_words
from pairflip.selection.after_selection import shuffled


def curve_of(seed=0, signal=True, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 20))
    y = signal * (2 * X[:, 3] - 2 * X[:, 8] + 0.5 * X[:, 5]) + rng.normal(size=50)
    names = [f"<b>c{j}</b>" for j in range(20)]
    how = {"cv": 10, "stability": 20, **options}
    return select_size(SubsetProblem(X, y, names=names), [1, 2, 3], **how)


@pytest.fixture(scope="module")
def curve():
    return curve_of(null=4)


@pytest.fixture(scope="module")
def noise():
    return curve_of(seed=2, signal=False)


def changed(curve, size, frequencies):
    """The same curve whose half-samples selected the chosen columns in so many of 20 cases, else columns 10 to 19."""
    chosen = np.sort(curve.supports[curve.at(size)])
    supports = np.tile(chosen, (20, 1))
    for place, times in enumerate(frequencies):
        supports[times:, place] = 10 + place
    supports = np.sort(supports, axis=1)
    columns = np.unique(np.concatenate([chosen, supports.ravel()]))
    halves = dataclasses.replace(
        curve.stability, sizes=np.array([size]), pairs=10, chosen=(chosen,), columns=columns,
        names=[curve.names[j] for j in columns], supports=(supports,), coefs=(np.ones((20, size)),),
    )  # fmt: skip
    return dataclasses.replace(curve, stability=halves)


def test_the_answer_says_how_often_halves_select_the_same(curve):
    size = curve.answer.shown
    assert size == 3
    text = answer_of(changed(curve, 3, [20, 20, 8])).text
    for told in (
        "In 20 random halves of the rows, exactly these 3 columns were selected in 40 %. One by one: “<b>c3</b>” and "
        "“<b>c8</b>” each in at least 80 %, “<b>c9</b>” in 40 %.",
        "Not chosen, but selected more often than “<b>c9</b>”: “<b>c12</b>” in 60 %. Of 20 candidate columns, at "
        "most 0.75 without effect would be expected to reach 80 % by chance (Meinshausen and Bühlmann), if the size "
        "had been fixed beforehand and all columns without effect were equally likely to be selected; at most ",
    ):
        assert told in text
    assert "fold" not in text
    alone = stability_words(changed(curve, 1, [19]), 1)
    assert "In 20 random halves of the rows, this column was selected in 95 %." in alone


def test_names_that_halves_do_not_repeat_are_doubted(curve):
    doubted = answer_of(changed(curve, 3, [2, 3, 4]))
    assert doubted.mood == "not"
    (caution,) = [text for text in doubted.cautions if "Which columns is not certain" in text]
    assert "selected only 15 % of these columns again" in caution
    assert "candidate columns, at most" not in doubted.text, "nothing passed"
    assert not any("not certain" in text for text in answer_of(changed(curve, 3, [20, 18, 20])).cautions)


@pytest.mark.usefixtures("undrawn")
def test_without_half_samples_nothing_is_said(curve):
    silent = dataclasses.replace(curve, stability=None, null=None)
    assert "halves" not in answer_of(silent).text
    assert "halves" not in text_of(render(silent)).replace("halves of the rows", "")
    assert stability_record(silent) is None
    with pytest.raises(ValueError, match="no half-samples"):
        figures.plot_frequencies(silent)


def test_noise_is_not_stable_and_the_answer_has_both(noise):
    answer = answer_of(noise)
    assert not answer.predicts
    assert "In 40 random halves of the rows, this column was selected in" in answer.text
    assert noise.stability.set_frequency[0] < 0.5


def test_a_shuffled_target_has_the_same_values_and_what_is_forced_stays():
    rng = np.random.default_rng(3)
    X, w = rng.normal(size=(30, 4)), np.r_[np.zeros(3), np.ones(27)]
    problem = SubsetProblem(X, rng.normal(size=30), sample_weight=w)
    other = shuffled(problem, 0, 1)
    np.testing.assert_allclose(np.sort(other.y[3:]), np.sort(problem.y[3:]))
    np.testing.assert_array_equal(other.y[:3], problem.y[:3])
    assert not np.allclose(other.y, shuffled(problem, 0, 2).y)
    forced = SubsetProblem(X, 10 * X[:, 2] + rng.normal(size=30), always=[2])
    fit, again = forced.fit([]), shuffled(forced, 0, 0).fit([])
    assert fit.always_coef[0] == pytest.approx(again.always_coef[0], abs=1.0)


@pytest.mark.usefixtures("undrawn")
def test_names_are_escaped_on_the_page(curve):
    page = render(curve)
    assert "<b>c3" not in page
    assert "Selected in halves" in text_of(page)


def test_the_figure_and_the_record_for_machines(curve):
    assert figures.plot_frequencies(curve).get_xlabel() == "selected in half-samples"
    plain = dataclasses.replace(curve, stability=None)
    assert ["half_samples" in [figure.name for figure in figures_of(each)] for each in (curve, plain)] == [True, False]
    record = stability_record(curve)
    json.dumps(record, allow_nan=False)
    assert record["half_samples"] == 40
    halves = curve.stability
    often = [n for j, n in zip(halves.columns.tolist(), halves.names, strict=True) if halves.frequency(j, 3) >= 0.8]
    assert record["passing"] == often
    assert often
    assert [b["threshold"] for b in record["expected_false"]] == [0.6, 0.7, 0.8, 0.9]


# The command line -----------------------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    monkeypatch.chdir(tmp_path)
    y, X = planted(rows=30)
    return write_csv(tmp_path / "t.csv", ["y", *"abcdef"], np.column_stack([y, X]).tolist())


def select(data, *options):
    return invoke("select", data, "--target", "y", "--sizes", "1-3", "--effort", "quick", "--jobs", "1", *options)


def test_half_samples_are_made_by_default_and_kept_in_files(data, tmp_path):
    done = select(data)
    assert done.exit_code == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "In 100 random halves of the rows, exactly these 2 columns were selected in 100 %" in told
    record = json.loads((tmp_path / "t-pairflip" / "result.json").read_text())
    assert record["settings"]["stability"] == DEFAULT_STABILITY == 50
    assert record["stability_shown"]["set_frequency"] == 1.0
    assert "coef_5" in (tmp_path / "t-pairflip" / "half_samples.csv").read_text().splitlines()[0]
    head = (tmp_path / "t-pairflip" / "coefficients.csv").read_text().splitlines()[0]
    assert head == '"size","column","kind","coefficient","standard_error","robust_error","frequency","coef_5","coef_95"'
    assert "stability = 50" in (tmp_path / "t-pairflip" / "run.toml").read_text()


def test_options_say_how_many_and_where(data, tmp_path):
    options = ["--stability", "3", "--stability-at", "all", "--null", "2", "--journal", "run"]
    done = select(data, *options)
    assert done.exit_code == 0, done.stderr
    assert "With the target shuffled 2 times" in " ".join(done.stdout.split())  # since it was asked for
    record = json.loads((tmp_path / "t-pairflip" / "result.json").read_text())
    assert record["stability"]["sizes"] == [1, 2, 3]
    assert len(record["null"]["r2"]) == 2
    again = select(data, *options, "--force", "--full")
    assert "With the target shuffled 2 times" in " ".join(again.stdout.split()), again.stderr
    assert set(done.stdout.splitlines()) <= set(again.stdout.splitlines())
    none = select(data, "--stability", "0", "--out", "none")
    assert "halves" not in none.stdout
    assert not (tmp_path / "none" / "half_samples.csv").exists()
