"""The record of a selection: its rules, its tables, and its file."""

import dataclasses
import json
import sys

import numpy as np
import pytest

from _curves import LONG, ODD, assert_same_curve, make_curve
from _errors import sentence_of
from pairflip import Schedule, SizeCurve, SubsetProblem, select_size
from pairflip.engines import WalkPlan
from pairflip.report.answer import answer_of
from pairflip.search.effort import kick_nanoseconds
from pairflip.selection import run_shard, worker
from pairflip.selection.decide import held_out, sizes_by_repetition
from pairflip.text import plural

SCHEDULE = Schedule.geometric(1.0, 1e4, steps=5, sweeps=2, unit="greedy")


def real_curve(sizes=(1, 2, 3), columns=6, names=None, chains=2, **options):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, columns))
    y = 5.0 + X[:, 0] - 0.5 * X[:, -1] + 0.4 * rng.normal(size=12)
    return select_size(SubsetProblem(X, y, names=names, **options), sizes, schedule=SCHEDULE, chains=chains)


def with_errors(errors, se=0.1, sizes=None, mean=99.0):
    """A curve with these errors of sizes 1, 2, ... (or `sizes`), and of the mean alone."""
    curve = make_curve(sizes=range(1, len(errors) + 1), columns=12)
    sizes = curve.sizes if sizes is None else np.array([0, *sizes])
    errors, se = np.array([mean, *errors]), np.array([0.1, *np.broadcast_to(se, len(errors))])
    return dataclasses.replace(curve, sizes=sizes, cv_error=errors, cv_error_se=se)


@pytest.mark.parametrize(
    ("errors", "se", "mean", "best", "thrifty"),
    [
        ([3.0, 1.0, 2.0], 0.1, 99.0, 2, 2),
        ([1.05, 1.0, 2.0], 0.1, 99.0, 2, 1),
        ([1.1, 1.0, 0.9], 0.1, 99.0, 3, 2),  # within one standard error includes its end
        ([1.2, 1.0, 1.0], 0.1, 99.0, 2, 2),  # of equal errors, the smaller size
        ([1.0], 0.1, 99.0, 1, 1),
        ([1.5, 1.0, 0.9, 1.6], [9.0, 9.0, 0.2, 9.0], 99.0, 3, 2),  # the standard error is that of the best size
        ([5.0, 4.0, 3.0], 0.0, 99.0, 3, 3),
        ([1.1, 1.0, 1.3], 0.1, 1.05, 2, 0),  # the mean alone is a size like the others
        ([1.1, 1.0, 1.3], 0.1, 0.9, 0, 0),
        ([1.1, 1.0, 1.3], 0.1, 1.0, 0, 0),
        ([1.1, 1.0, 1.3], 0.1, 1.15, 2, 1),
    ],
)
def test_best_and_one_standard_error_size(errors, se, mean, best, thrifty):
    curve = with_errors(errors, se, mean=mean)
    assert (curve.best_size, curve.one_se_size) == (best, thrifty)


def test_size_is_not_a_place():
    curve = with_errors([1.0, 1.05, 0.99], 0.1, sizes=[3, 5, 9])
    assert (curve.best_size, curve.one_se_size) == (9, 3)
    assert curve.at(5) == 2
    assert sentence_of(ValueError, lambda: curve.at(4)) == "size is 4; expected one of 0, 3, 5, 9."


def test_columns_and_coefficients():
    curve = real_curve(always=["x1"])
    at = curve.at(2)
    dense = curve.coef(2)
    assert dense.shape == (6,)
    assert np.flatnonzero(dense).tolist() == sorted([1, *curve.supports[at].tolist()])
    assert dense[curve.supports[at]].tolist() == curve.coefs[at].tolist()
    assert dense[1] == curve.always_coefs[at, 0]
    assert curve.columns(2) == [f"x{j}" for j in curve.supports[at]]
    assert curve.columns() == curve.columns(curve.best_size)
    assert np.array_equal(curve.coef(), curve.coef(curve.best_size))


def test_frames():
    curve = real_curve()
    assert np.array_equal(curve.selection_counts.sum(axis=1), curve.sizes * curve.n_folds)
    frame = curve.to_pandas()
    assert frame["size"].tolist() == [0, 1, 2, 3]
    assert frame["cv_error"].tolist() == curve.cv_error.tolist()
    assert frame["rmse"].to_numpy() == pytest.approx(np.sqrt(2 * curve.cv_error))
    assert frame["r2"].tolist() == [held_out(curve, k).r2 for k in range(4)]
    assert frame.loc[frame["best"], "size"].tolist() == [curve.best_size]
    assert frame.loc[frame["one_se"], "size"].tolist() == [curve.one_se_size]
    assert frame["columns"][2] == curve.columns(2)
    assert {"cv_error_se", "energy_per_row", "unchanged", "agreement", "aic", "bic", "ebic"} <= set(frame)
    assert not frame.drop(columns="columns").isna().any().any()
    pytest.importorskip("polars")
    polars = curve.to_polars()
    assert polars.columns == list(frame.columns)
    assert polars["cv_error"].to_list() == curve.cv_error.tolist()
    assert polars["columns"].to_list()[2] == curve.columns(2)


def test_datatree():
    pytest.importorskip("xarray")
    curve = real_curve(names=["a", "b", "b", "d", "é 漢", ""])
    tree = curve.to_datatree()
    table = tree["size_curve"].to_dataset()
    assert table["cv_error"].sel(size=2).item() == curve.cv_error[2]
    assert table["selection_counts"].values.tolist() == curve.selection_counts.tolist()
    assert table["mask"].values.sum(axis=1).tolist() == [0, 1, 2, 3]
    assert table["column"].values.tolist() == curve.names
    assert table.attrs["best_size"] == curve.best_size
    assert tree["held_out"]["prediction"].shape == curve.predictions.shape
    assert tree["annealing"]["energy"].dims == ("size", "chain", "draw")


@pytest.mark.parametrize(("module", "call"), [("polars", "to_polars"), ("xarray", "to_datatree")])
def test_missing_package_is_named(module, call, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"{call} needs {module}; install it with: pip install"):
        getattr(make_curve(), call)()


SAVED = {
    "plain": lambda: real_curve(),
    "always": lambda: real_curve(always=["x1", "x2"]),
    "no intercept": lambda: real_curve(center=None),
    "all columns": lambda: real_curve(sizes=[2, 6]),
    "all columns only": lambda: real_curve(sizes=[6]),
    "one column": lambda: real_curve(sizes=[1], columns=1),
    "two columns": lambda: real_curve(sizes=[1, 2], columns=2),
    "more chains than are kept": lambda: real_curve(sizes=[2], chains=20),
    "odd names": lambda: real_curve(columns=13, names=ODD),
    "odder names": lambda: real_curve(names=["\ud800", "\x00", LONG, '"', "\\", "\u2028"]),
    "made up": lambda: make_curve(),
    "not a number": lambda: dataclasses.replace(make_curve(), criteria={"bic": np.full(9, np.nan)}),
}


@pytest.mark.parametrize("make", SAVED.values(), ids=SAVED)
def test_file_and_summary(make, tmp_path):
    curve = make()
    curve.save(tmp_path / "curve.json")
    assert_same_curve(curve, SizeCurve.load(tmp_path / "curve.json"), but=())
    assert [path.name for path in tmp_path.iterdir()] == ["curve.json"]
    record = json.loads((tmp_path / "curve.json").read_text(), parse_constant=lambda word: pytest.fail(word))
    assert (record["kind"], record["best_size"]) == ("pairflip size curve", curve.best_size)
    assert record["cv_error"] == curve.cv_error.tolist()
    text = curve.summary()
    assert not {"nan", "inf"} & set(text.lower().split())
    lines = next(part for part in text.split("\n\n") if part.lstrip().startswith("size")).splitlines()
    assert [int(line[:3]) for line in lines if line[:3].strip().isdigit()] == curve.sizes.tolist()


def damaged(**changes):
    """Write a file in which some values were replaced; None removes one, a function makes a value of the old one."""

    def write(path):
        make_curve(rows=8, columns=5, sizes=[1, 2], steps=3).save(path)
        record = json.loads(path.read_text())
        for name, value in changes.items():
            old = record.pop(name, None)
            if value is not None:
                record[name] = value(old) if callable(value) else value
        path.write_text(json.dumps(record))

    return write


FITS = {"sizes": [1], "coefs": [[[1, 2]] * 8], "always_coefs": [[[]] * 8], "intercepts": [[0] * 8]}
RANGE = {"means": [0], "scales": [1], "factor": [[1]], "limit": 1}
BAD_FILES = {
    "missing": (lambda path: None, "cannot be read (No such file or directory)."),
    "a folder": (lambda path: path.mkdir(), "cannot be read (Is a directory)."),
    "empty": (lambda path: path.write_text(""), "is not JSON; expected a file written by SizeCurve.save."),
    "binary": (lambda path: path.write_bytes(b"\x80\x81"), "is not JSON"),
    "nested": (lambda path: path.write_text("[" * 100_000), "is not JSON"),
    "NaN": (damaged(cv_error=[float("nan")] * 3), "is not JSON"),
    "a list": (lambda path: path.write_text("[]"), "is not a pairflip size curve"),
    "something else": (lambda path: path.write_text('{"kind":"x"}'), "is not a pairflip size curve"),
    "older": (damaged(schema=1), "has schema 1, but this version of pairflip reads schema 4; select again."),
    "without size 0": (damaged(sizes=[1, 2, 3]), "(sizes: expected 0 among them)."),
    "a field missing": (damaged(coefs=None), "('coefs' is missing)."),
    "names": (damaged(names=3), "is not a complete size curve ("),
    "name": (damaged(names=[1, 2, 3, 4, 5]), "(names: it is of the wrong type)."),
    "ragged": (damaged(predictions=[[1.0], [1.0, 2.0]]), "is not a complete size curve ("),
    "text for numbers": (damaged(cv_error=["a", "b"]), "(cv_error: expected numbers)."),
    "halves of columns": (damaged(always=[0.5]), "(always: expected whole numbers)."),
    "length": (damaged(cv_error=[1.0, 2.0]), "(cv_error: expected length 3, not 2)."),
    "axes": (damaged(observed=lambda old: [[each] for each in old]), "(observed: expected 1 axes)."),
    "too few": (damaged(supports=[[], [1]]), "(supports: expected 3, one for each size or fold)."),
    "counts": (damaged(selection_counts=[[[99, 1]], [], []]), "is not a complete size curve ("),
    "columns": (damaged(supports=[[], [-5], [-5, 1]]), "(supports has -5; expected 0 to 4)."),
    "twice": (damaged(supports=[[], [1], [1, 1]]), "(supports: expected different columns)."),
    "size": (damaged(supports=[[], [1], [1]], coefs=[[], [1.0], [1.0]]), "expected as many columns as the size says)."),
    "negative": (damaged(cv_error=[-1.0, 1.0, 1.0]), "(cv_error: expected no negative numbers)."),
    "fraction": (damaged(agreement=[2.0, 1.0, 1.0]), "(agreement has 2; expected 0 to 1)."),
    "facts": (damaged(facts={"p_value": "low"}), "(facts p_value: expected a number from 0 to 1)."),
    "imputed": (damaged(facts={"imputed": {"missing": 3, "same": "2"}}), "(facts imputed: expected the numbers"),
    "loss": (damaged(settings={"loss": "logistic"}), "(classes: it does not fit the rest)."),
    "fold fits": (damaged(fold_fits=FITS), "(fold_fits: they do not fit the columns of the folds)."),
    "training ranges": (damaged(training_ranges=[RANGE] * 3), "(training_ranges: they do not fit the columns of the"),
    "stand-ins": (damaged(stand_ins=[]), "is not a complete size curve ("),
}


@pytest.mark.parametrize(("write", "words"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_file_is_one_sentence(write, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "c.json")
    message = sentence_of(ValueError, lambda: SizeCurve.load("c.json"))
    assert words in message


def test_file_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    curve = make_curve()
    for where, why in (("no/c.json", "No such file"), ("file/c.json", "Not a directory"), ("folder", "Is a directory")):
        message = sentence_of(ValueError, lambda where=where: curve.save(where))
        assert message.startswith(f"{where!r} cannot be written ({why}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_summary_starts_with_the_answer():
    curve = real_curve()
    text = str(curve)
    first = text.splitlines()[0]
    answer = answer_of(curve)
    assert first.startswith(f"Keep {answer.size} column")
    assert all(name in first for name in curve.columns(answer.size))
    bullets = [line for line in text.splitlines() if line.startswith("- ")]
    assert [line[2:].split(":")[0] for line in bullets] == [label for label, _ in answer.bullets]
    assert len(bullets) <= 4
    assert max(map(len, text.splitlines())) <= 80
    assert set(text.splitlines()) < set(curve.summary().splitlines())
    table = [line for line in text.splitlines() if line.strip()[:1].isdigit()]
    assert [int(line.split()[0].rstrip("*+")) for line in table] == [0, 1, 2, 3]
    assert sum("*" in line for line in table) == 1
    assert f"best_size={curve.best_size}" in repr(curve)
    assert "Note: worked from the columns." in make_curve().summary()


def test_seed_draws_the_folds_and_sizes_by_repetition():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(40, 8)), rng.normal(size=40)
    y += X[:, 0] + 0.4 * X[:, 1]
    problem = SubsetProblem(X, y)
    one, same, other = (select_size(problem, [1, 2, 3], "3x5", effort="quick", seed=seed) for seed in (0, 0, 7))
    np.testing.assert_array_equal(one.held_out_rows, same.held_out_rows)
    assert not np.array_equal(one.held_out_rows, other.held_out_rows)
    assert not np.allclose(one.cv_error, other.cv_error)
    expected = []
    for repetition in range(3):
        part = one.held_out_fold // 5 == repetition
        assert sorted(one.held_out_rows[part]) == list(range(40))
        errors = np.mean((one.observed - one.predictions)[:, part] ** 2, axis=1)
        expected.append(int(one.sizes[np.argmin(errors)]))
    assert sizes_by_repetition(one) == expected
    low, high = min(expected), max(expected)
    said = f"{plural(low, 'column')} in all 3" if low == high else f"{low} to {plural(high, 'column')} in 3"
    assert f"lowest error at {said} repetitions of the folds" in answer_of(one).text
    assert sizes_by_repetition(select_size(problem, [1, 2], 5, effort="quick")) == []


def test_where_a_random_start_takes_too_long_all_chains_start_from_the_path(monkeypatch, tmp_path):
    """As on wide tables with many sizes: kicks are few, and the result does not depend on who does what."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 40))
    problem = SubsetProblem(X, X[:, 3] - X[:, 20] + 0.3 * rng.normal(size=50))
    run = {"sizes": [1, 2, 8], "cv": 5, "prove": False, "seed": 2}
    long = select_size(problem, **run)
    starts = []
    monkeypatch.setattr(worker, "_KICKING_NS", 2 * kick_nanoseconds(problem.form, 8))
    monkeypatch.setattr(worker, "WalkPlan", lambda *plan: starts.append((plan[0], plan[-2])) or WalkPlan(*plan))
    short = select_size(problem, **run)
    assert {k for k, start in starts if start is None} == {1, 2}
    assert {k for k, start in starts if start is not None} == {1, 2, 8}
    assert short.columns(2) == long.columns(2) == ["x3", "x20"]
    assert np.all(short.energies >= long.energies * (1 - 1e-12))
    for half in (1, 2):
        run_shard(problem, **run, journal=tmp_path, shard=(half, 2))
    assert_same_curve(select_size(problem, **run, journal=tmp_path, n_jobs=2), short)
