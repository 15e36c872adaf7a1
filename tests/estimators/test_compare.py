"""`compare`: the same folds for all, literal numbers, and a row that says so for whatever goes wrong."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairflip import Comparison, SubsetProblem, compare, select_size
from pairflip.comparison import register_peer
from pairflip.comparison.registry import PEERS, chosen_peers
from pairflip.report.compared import rmse, rmse_se, save_comparison_figures
from pairflip.report.page import render
from pairflip.selection.folds import as_folds

M, N, SIZES = 40, 10, range(1, 5)


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, N)) + 1.0
    return X, X[:, 2] - X[:, 5] + 0.5 * rng.normal(size=M)


@pytest.fixture(scope="module")
def problem():
    return SubsetProblem(*table(), names=[f"gene {j}" for j in range(N)])


@pytest.fixture(scope="module")
def found(problem):
    return compare(problem, SIZES, 4, seed=3)


def without_seconds(record):
    """A record of plain values without its times."""
    if isinstance(record, dict):
        return {key: without_seconds(value) for key, value in record.items() if key != "seconds"}
    return [without_seconds(value) for value in record] if isinstance(record, list) else record


def test_all_methods_are_there_and_have_a_result_or_a_reason(found):
    assert [method.name for method in found.methods] == list(PEERS)
    missing = {m.name for m in found.methods if m not in found.finished}
    assert missing <= {"abess", "skglm"}
    assert all("pip install" in found[name].note for name in missing)
    assert found.reference == "normal"
    assert found["omp"].chosen == found["normal"].chosen == 2
    assert found["omp"].at(2).overlap == 1.0
    assert found["pls"].chosen is None


@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_our_rows_are_those_of_select_size(problem, found, effort):
    curve = select_size(problem, SIZES, 4, effort=effort, seed=3, prove=False, progress=False)
    for size in SIZES:
        row, at = found[effort].at(size), curve.at(size)
        assert (row.cv_error, row.cv_error_se) == (curve.cv_error[at], curve.cv_error_se[at])
        assert row.energy == curve.energies[at]
        assert list(row.columns) == curve.supports[at].tolist()
    assert found[effort].chosen == curve.best_size


def weighted_fit(X, y, weight, columns):
    design = np.column_stack([np.ones(len(X)), X[:, columns]])
    root = np.sqrt(weight)
    coef = np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0]
    return lambda new: np.column_stack([np.ones(len(new)), new[:, columns]]) @ coef


def test_errors_of_supports_by_literal_computation_with_weights_and_forced_columns():
    X, y = table()
    weight = np.linspace(0.5, 2.0, M)
    problem = SubsetProblem(X, y, always=[7], sample_weight=weight)

    def first(columns, target, sizes):  # candidates in their order, whatever the target
        return {size: np.arange(size) for size in sizes}

    method = compare(problem, [3], 4, methods=["quick"], peers={"first": first})["first"]
    columns, errors, weights = [0, 1, 2, 7], [], []
    for rows, left in zip(as_folds(4, problem).rows, as_folds(4, problem).left_out, strict=True):
        train = np.setdiff1d(np.arange(M), left)
        predict = weighted_fit(X[train], y[train], weight[train], columns)
        errors += ((y[rows] - predict(X[rows])) ** 2).tolist()
        weights += weight[rows].tolist()
    assert method.at(3).cv_error == pytest.approx(0.5 * np.average(errors, weights=weights), rel=1e-10)
    whole = 0.5 * np.sum(weight * (y - weighted_fit(X, y, weight, columns)(X)) ** 2)
    assert method.at(3).energy == pytest.approx(whole, rel=1e-10)


def test_an_estimator_of_the_user_is_fitted_as_by_hand(problem):
    pipeline = make_pipeline(StandardScaler(), Ridge(2.0))
    method = compare(problem, SIZES, 4, methods=["quick"], peers={"mine": pipeline})["mine"]
    errors = []
    for rows in as_folds(4, problem).rows:
        train = np.setdiff1d(np.arange(M), rows)
        model = make_pipeline(StandardScaler(), Ridge(2.0)).fit(problem.X[train], problem.y[train])
        errors += ((problem.y[rows] - model.predict(problem.X[rows])) ** 2).tolist()
    assert method.cv_error == pytest.approx(0.5 * np.mean(errors), rel=1e-12)
    assert not hasattr(pipeline[-1], "coef_")  # a clone was fitted


@pytest.mark.parametrize("methods", [None, "quick, omp", ["quick", "omp"]])
def test_methods_are_given_in_a_list_or_with_commas(problem, methods):
    found = compare(problem, [1, 2], 4, methods=methods, peers=("omp", Ridge(2.0), Ridge(1.0)))
    ours = "normal" if methods is None else "quick"
    assert [method.name for method in found.methods] == [ours, "omp", "Ridge", "Ridge 2"]
    assert len(found.finished) == 4
    assert [peer.name for peer in chosen_peers(None, "omp,lasso")] == ["normal", "omp", "lasso"]


def test_differences_compare_rows_with_themselves(problem, found):
    again = compare(problem, SIZES, 4, methods=["normal", "omp"], seed=3)
    assert again["normal"].difference == again["omp"].difference == again["omp"].difference_se == 0.0
    pls = found["pls"]
    assert pls.difference == pytest.approx(pls.cv_error - found["normal"].cv_error, rel=1e-9)
    assert pls.difference_se < np.hypot(pls.cv_error_se, found["normal"].cv_error_se)
    ours = found["normal"].cv_error
    shown = (rmse(pls.cv_error) - rmse(ours)) / rmse_se(pls.cv_error, pls.difference_se, ours)
    assert shown == pytest.approx(pls.difference / pls.difference_se), "as many standard errors in units of the RMSE"


def test_the_same_seed_gives_the_same_numbers(problem, found):
    some = ["normal", "quick", "omp", "lasso", "pls", "amp"]
    again = compare(problem, SIZES, 4, methods=some, seed=3)
    before = [method for method in found.to_json()["methods"] if method["name"] in some]
    assert without_seconds(again.to_json()["methods"]) == without_seconds(before)


def test_json_round_trip(found, tmp_path):
    found.save(tmp_path / "comparison.json")
    again = Comparison.load(tmp_path / "comparison.json")
    assert again.to_json() == found.to_json()
    assert np.isnan(again["pls"].rows[0].overlap)
    with pytest.raises(ValueError, match="not a pairflip comparison"):
        Comparison.from_json({"kind": "pairflip size curve"})
    for text in ('{"kind": "pairflip comparison", "schema": 1}', "[" * 100_000, "{"):
        (tmp_path / "damaged.json").write_text(text)
        with pytest.raises(ValueError, match=r"is not what Comparison\.save wrote"):
            Comparison.load(tmp_path / "damaged.json")


class Breaks(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("out of luck\nsecond line")

    def predict(self, X):
        return np.zeros(len(X))


class PredictsNothing(Breaks):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), np.nan)


BROKEN = {
    "breaks": (Breaks(), "failed: RuntimeError: out of luck second line (fold 1)"),
    "nan": (PredictsNothing(), "predicted something that is not a finite number (fold 1)"),
    "few": (lambda columns, target, sizes: {}, "found no 2 columns (fold 1)"),
    "wrong": (lambda columns, target, sizes: {2: [1, 1]}, "returned 1 different columns for size 2 (fold 1)"),
    "beyond": (lambda X, y, k: {2: [1, 99]}, "returned positions that are not columns for size 2 (fold 1)"),
    "list": (lambda X, y, k: [1, 2], "returned a list; expected a dictionary of positions by size (fold 1)"),
}  # fmt: skip


def test_what_fails_is_a_row_that_says_so(problem):
    peers = {name: broken for name, (broken, _) in BROKEN.items()}
    found = compare(problem, [2], 4, methods=["quick", "omp"], peers=peers)
    assert {name: found[name].note for name in BROKEN} == {name: why for name, (_, why) in BROKEN.items()}
    assert {m.name for m in found.finished} == {"quick", "omp"}
    assert "out of luck" in str(found)
    assert " As low: OMP. " in " ".join(str(found).split())
    assert f" Without a result: {'; '.join(found[name].title for name in BROKEN)}." in " ".join(str(found).split())
    frame = found.to_pandas().set_index("method")
    assert frame.loc["few", "note"] == BROKEN["few"][1]
    assert frame["chosen"].to_dict() == {**dict.fromkeys(("quick", "omp"), True), **dict.fromkeys(BROKEN, False)}


def test_columns_that_depend_on_each_other_are_no_support():
    X, y = table()
    problem = SubsetProblem(np.column_stack([X, X[:, 0]]), y)
    twice = {"twice": lambda columns, target, sizes: {1: [0], 2: [0, N]}}
    found = compare(problem, [1, 2], 4, methods=["omp"], peers=twice)
    assert found["twice"].at(2).note == "chose 2 columns that depend on each other (fold 1)"
    assert np.isfinite(found["twice"].at(1).cv_error)
    assert "1 size without a result" in str(found)
    assert found.reference == ""


def test_row_weights_that_an_estimator_does_not_take_are_a_reason():
    X, y = table()
    problem = SubsetProblem(X, y, sample_weight=np.linspace(1, 2, M))
    pipeline = make_pipeline(StandardScaler(), Ridge())
    found = compare(problem, [1], 4, methods=["omp"], peers={"pipeline": pipeline, "ridge": Ridge()})
    assert found["pipeline"].note == "takes no row weights (fold 1)"
    assert np.isfinite(found["ridge"].cv_error)


def test_a_package_that_is_not_installed_is_a_row(problem, monkeypatch):
    monkeypatch.setitem(PEERS, "omp", replace(PEERS["omp"], needs="no_such"))
    assert compare(problem, [1], 4, methods=["omp"])["omp"].note == "no_such is not installed (pip install no_such)"


def test_after_ctrl_c_what_is_finished_is_returned(problem):
    def stop(columns, target, sizes):
        if len(target) < M:
            raise KeyboardInterrupt
        return {}

    found = compare(problem, [1, 2], 4, methods=["quick", "omp"], peers={"stop": stop, "later": Ridge()})
    assert found.interrupted
    assert [m.name for m in found.finished] == ["quick", "omp"]
    assert found["stop"].note == found["later"].note == "not run: interrupted"
    assert "interrupted" in str(found)
    with pytest.raises(KeyboardInterrupt):
        compare(problem, [1, 2], 4, methods=[], peers={"stop": stop})


def test_a_registered_method_is_in_every_comparison(problem, monkeypatch):
    monkeypatch.setattr("pairflip.comparison.registry.PEERS", dict(PEERS))
    register_peer("mine", Ridge())
    assert np.isfinite(compare(problem, [1], 4, methods=["mine"])["mine"].cv_error)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["opm"]}, r"'opm' is not a method \(--methods\); expected perhaps 'omp', of "),
        ({"methods": []}, "no method is named"),
        ({"peers": 3}, "peers is a int; expected methods in a list"),
        ({"peers": {"a": 3}}, "the method 'a' is a int; expected a scikit-learn estimator"),
        ({"peers": {"a": Ridge}}, r"is the class Ridge; expected an instance of it, with \(\)"),
        ({"sizes": [11]}, "holds 11, but the table has 10 candidate columns"),
    ],
)
def test_bad_input_is_refused(problem, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        compare(problem, **{"sizes": [1], **options})
    with pytest.raises(TypeError, match=r"expected a pairflip\.SubsetProblem"):
        compare(table(), [1])


TARGET = table()[1]


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (TARGET, {"positive": True}, "groups, bands, hierarchy or signs"),
        (TARGET, {"ridge": 0.5}, "a ridge of 0.5"),
        (TARGET > 0, {"loss": "logistic"}, "loss='logistic'; expected one target and squared error"),
        (np.column_stack([TARGET, np.arange(M)]), {}, "2 targets"),
    ],
)
def test_what_other_methods_do_not_have_is_refused(target, options, message):
    with pytest.raises(ValueError, match=message):
        compare(SubsetProblem(table()[0], target, **options), [1])


def test_page_notebook_and_figures(problem, tmp_path):
    found = compare(problem, [1, 2], 4, methods=["quick", "omp"], peers={"<b>mine</b>": Ridge(), "bad": Breaks()})
    page, again = (render(found, title="a < b", command="pairflip compare") for _ in range(2))
    assert page == again
    assert "out of luck" in page
    assert page.count("<svg") == 4
    for shown in (page, found._repr_html_()):
        assert "<svg" in shown
        assert "<script" not in shown
        assert "<b>mine" not in shown
        assert "&lt;b&gt;mine" in shown
    names = {path.name for path in save_comparison_figures(found, tmp_path / "figures")}
    assert names == {"errors.svg", "errors.png", "energy_seconds.svg", "energy_seconds.png"}
    assert found.plot().get_xlabel() == "size (number of columns)"
