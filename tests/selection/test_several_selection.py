"""The number of columns for several targets: estimators, command line, and checks against literal recomputation."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from _cli import invoke, without_figures, write_csv
from pairflip import SizeCurve, SubsetProblem, SubsetRegressor, SubsetRegressorCV, select_size
from pairflip.selection.after_selection import shuffled
from pairflip.selection.folds import as_folds


def table(seed: int = 0, rows: int = 40, columns: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    Y = X[:, [1, 4, 7]] @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(rows, 3))
    return X, Y * [1.0, 10.0, 1000.0] + [0.0, 5.0, -3.0]


@pytest.fixture(scope="module")
def curve() -> SizeCurve:
    return select_size(SubsetProblem(*table()), range(1, 6), cv=5)


def test_the_columns_that_made_the_targets_are_found(curve: SizeCurve) -> None:
    assert curve.best_size == 3
    assert curve.columns(3) == ["x1", "x4", "x7"]
    X, _ = table()
    fit = SubsetProblem(*table()).fit([1, 4, 7])
    np.testing.assert_allclose(curve.predict(X[:4], 3), X[:4][:, [1, 4, 7]] @ fit.coef + fit.intercept)
    frame = curve.coefficients(3)
    assert list(frame.columns) == ["column", "kind", "y0", "y1", "y2"]
    np.testing.assert_allclose(frame.iloc[1:, 2:].to_numpy(dtype=float), fit.coef)
    text = " ".join(curve.summary().split())
    assert "R2 on held-out rows: " in text
    assert "“y2” 0." in text


def test_unscaled_and_many_targets() -> None:
    X, Y = table()
    unscaled = select_size(SubsetProblem(X, Y, scale_targets=False), [3], 4, effort="quick")
    assert "RMSE (in SD)" not in str(unscaled)
    many = select_size(SubsetProblem(X, np.hstack([Y, Y + X[:, :3], -Y])), [3], 4, effort="quick")
    assert "R2 on held-out rows: lowest and highest of 9 targets, “" in " ".join(str(many).split())


def test_estimators_have_a_row_of_coefficients_for_each_target() -> None:
    pd = pytest.importorskip("pandas")
    X, Y = table()
    model = SubsetRegressor(3, random_state=0).fit(X, Y)
    assert model.coef_.shape == (3, 12)
    assert model.intercept_.shape == (3,)
    assert model.support_.tolist() == [1, 4, 7]
    np.testing.assert_allclose(model.predict(X), X @ model.coef_.T + model.intercept_)
    assert model.score(X, Y) > 0.7
    chosen = SubsetRegressorCV([2, 3], cv=4, random_state=0).fit(X, pd.DataFrame(Y, columns=["a", "b", "c"]))
    assert chosen.predict(X).shape == Y.shape
    assert chosen.n_nonzero_coefs_ == 3
    assert chosen.curve_.targets.names == ["a", "b", "c"]
    bounds = chosen.predict_interval(X, 0.8)
    assert bounds.shape == (40, 2, 3)
    assert np.all(bounds[:, 0] < bounds[:, 1])


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_figures(monkeypatch)
    X, Y = table()
    names = ["fat", "water", "protein", *(f"c{j}" for j in range(12))]
    data, out = write_csv(tmp_path / "data.csv", names, np.hstack([Y, X]).tolist()), tmp_path / "out"
    several = ["--target", "fat,water,protein", "--quiet"]
    done = invoke("select", data, *several, "--sizes", "1-4", "--cv", "4", "--full", "--out", out)
    assert done.exit_code == 0, done.output
    assert "Selected in halves" in (out / "report.html").read_text()
    assert (out / "half_samples.csv").read_text().startswith('"size","column","chosen","frequency"')
    assert "R2 on held-out rows: “fat”" in " ".join(done.output.split())
    record = json.loads((out / "result.json").read_text())
    assert [each["target"] for each in record["verdict"]["targets"]] == ["fat", "water", "protein"]
    assert record["verdict"]["rmse_unit"] == "standard deviation of each target"
    brief = " ".join(str(SizeCurve.load(out / "result.json")).split())
    assert "Prediction: RMSE (in SD) 0." in brief
    assert "SD is each target's standard deviation. R2 on held-out rows: “fat” 0." in brief
    assert "RMSE (in SD) ± SE" in (out / "report.html").read_text()
    assert (out / "targets.csv").read_text().startswith('"size","target","r2"')
    assert "R2 of each target: fat 0." in (out / "report.html").read_text()
    assert float((out / "predictions.csv").read_text().splitlines()[1].split(",")[4]) in table()[1][:, 0]
    again = invoke("report", out, "--out", tmp_path / "again.html")
    assert again.exit_code == 0, again.output
    fitted = invoke("fit", data, *several, "-k", "3", "--json")
    assert fitted.exit_code == 0, fitted.output
    assert json.loads(fitted.stdout)["columns"] == ["c1", "c4", "c7"]
    shown = invoke("fit", data, *several, "-k", "3", "--out", tmp_path / "coef.csv")
    assert "(fat 0." in shown.output
    proved = invoke("prove", data, *several, "-k", "3", "--json")
    assert proved.exit_code == 0, proved.output
    assert json.loads(proved.stdout)["proved"] is True
    told = invoke("prove", data, *several, "-k", "3", "--n-best", "2")
    assert "c1, c4, c7" in told.output
    for bad, says in (
        (["predict", out, data], "3 targets"),
        (["fit", data, "--target", "fat,fat", "-k", "2"], "different names"),
        (["fit", data, "--target", "fat,oil", "-k", "2"], "oil"),
        (["fit", data, "--target", "fat,c1", "--loss", "poisson", "-k", "2"], "expected one column"),
    ):
        refused = invoke(*bad)
        assert refused.exit_code == 2, (bad, refused.output)
        assert says in " ".join(refused.output.split()), (bad, refused.output)


@pytest.fixture(scope="module")
def checked() -> SizeCurve:
    return select_size(SubsetProblem(*table(columns=8)), [1, 2, 3], cv=4, stability=3, null=2, outer=3)


def literal_best(X: Any, Y: Any, rows: Any, k: int) -> tuple[list[int], Any]:
    """The k columns with the lowest sum of squared errors of the scaled targets on some rows; their coefficients."""

    def fit(support: tuple[int, ...]) -> tuple[float, Any]:
        design = np.column_stack([np.ones(len(rows)), X[np.ix_(rows, support)]])
        coef = np.linalg.lstsq(design, Y[rows], rcond=None)[0]
        return float(np.sum(((Y[rows] - design @ coef) / Y[rows].std(axis=0)) ** 2)), coef

    best = min(combinations(range(X.shape[1]), k), key=lambda support: fit(support)[0])
    return list(best), fit(best)[1]


def test_rows_of_the_targets_are_shuffled_together(checked: SizeCurve) -> None:
    X, Y = table(columns=8)
    problem = SubsetProblem(X, Y, target_names=["a", "b", "c"], scale_targets=False)
    other = shuffled(problem, 0, 1)
    order = [int(np.argmin(np.abs(Y[:, 0] - y))) for y in other.y[:, 0]]
    assert sorted(order) == list(range(40))
    assert order != list(range(40))
    np.testing.assert_allclose(other.y, Y[order], rtol=1e-9)
    assert other.target_names == ["a", "b", "c"]
    np.testing.assert_array_equal(other.form.target_scale, 1.0)  # type: ignore[attr-defined]
    forced = shuffled(SubsetProblem(X, Y, always=[3]), 0, 1)
    design = np.column_stack([np.ones(40), X[:, 3]])
    fitted = design @ np.linalg.lstsq(design, Y, rcond=None)[0]
    order = [int(np.argmin(np.abs((Y - fitted)[:, 0] - y))) for y in (forced.y - fitted)[:, 0]]
    assert sorted(order) == list(range(40))
    np.testing.assert_allclose(forced.y - fitted, (Y - fitted)[order], atol=1e-9)
    null = checked.null
    assert null is not None
    noise = shuffled(SubsetProblem(X, Y), 0, 0)
    folds, size, left, seen = as_folds(4, noise, None), null.size, [], []
    for rows in folds.rows:
        kept = np.setdiff1d(np.arange(40), rows)
        best, coef = literal_best(X, noise.y, kept, size)
        told = np.column_stack([np.ones(rows.size), X[np.ix_(rows, best)]]) @ coef
        spread = noise.y[kept].std(axis=0)
        left.append((noise.y[rows] - told) / spread)
        seen.append((noise.y[rows] - noise.y[kept].mean(axis=0)) / spread)
    observed = np.concatenate(seen)
    r2 = 1.0 - np.sum(np.concatenate(left) ** 2) / np.sum((observed - observed.mean()) ** 2)
    assert null.r2[0] == pytest.approx(r2)
