"""The number of columns for several targets: held-out errors against literal refits, estimators, command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from _page_figures import without_drawings
from pairflip import SizeCurve, SubsetProblem, SubsetRegressor, SubsetRegressorCV, best_subset, select_size
from pairflip.cli import app


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


def write(folder: Path) -> Path:
    X, Y = table()
    names = ["fat", "water", "protein", *(f"c{j}" for j in range(12))]
    lines = [",".join(names), *(",".join(map(repr, row)) for row in np.hstack([Y, X]).tolist())]
    (folder / "data.csv").write_text("\n".join(lines))
    return folder / "data.csv"


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_drawings(monkeypatch)
    data, out, run = write(tmp_path), tmp_path / "out", CliRunner()
    several = ["--target", "fat,water,protein", "--quiet"]
    done = run.invoke(app, ["select", str(data), *several, "--sizes", "1-4", "--cv", "4", "--full", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "Selected in halves" in (out / "report.html").read_text()
    assert (out / "half_samples.csv").read_text().startswith('"size","column","chosen","frequency"')
    assert "R2 on held-out rows: “fat”" in " ".join(done.output.split())
    record = json.loads((out / "result.json").read_text())
    assert [each["target"] for each in record["verdict"]["targets"]] == ["fat", "water", "protein"]
    assert (out / "targets.csv").read_text().startswith('"size","target","r2"')
    assert "R2 of each target: fat 0." in (out / "report.html").read_text()
    assert float((out / "predictions.csv").read_text().splitlines()[1].split(",")[4]) in table()[1][:, 0]
    again = run.invoke(app, ["report", str(out), "--out", str(tmp_path / "again.html")])
    assert again.exit_code == 0, again.output
    fitted = run.invoke(app, ["fit", str(data), *several, "-k", "3", "--json"])
    assert fitted.exit_code == 0, fitted.output
    assert json.loads(fitted.stdout)["columns"] == ["c1", "c4", "c7"]
    shown = run.invoke(app, ["fit", str(data), *several, "-k", "3", "--out", str(tmp_path / "coef.csv")])
    assert "(fat 0." in shown.output
    proved = run.invoke(app, ["prove", str(data), *several, "-k", "3", "--json"])
    assert proved.exit_code == 0, proved.output
    assert json.loads(proved.stdout)["proved"] is True
    told = run.invoke(app, ["prove", str(data), *several, "-k", "3", "--n-best", "2"])
    assert "c1, c4, c7" in told.output
    for bad, says in (
        (["predict", str(out), str(data)], "3 targets"),
        (["fit", str(data), "--target", "fat,fat", "-k", "2"], "different names"),
        (["fit", str(data), "--target", "fat,oil", "-k", "2"], "oil"),
        (["fit", str(data), "--target", "fat,c1", "--loss", "poisson", "-k", "2"], "expected one column"),
    ):
        refused = run.invoke(app, bad)
        assert refused.exit_code == 2, (bad, refused.output)
        assert says in " ".join(refused.output.split()), (bad, refused.output)


def test_the_three_targets_of_a_table_of_spectra(shared_data: Path) -> None:
    file = shared_data / "tecator" / "tecator.csv"
    if not file.exists():
        pytest.skip("tecator is not there")
    values = np.loadtxt(file, delimiter=",", skiprows=1)
    problem = SubsetProblem(values[:, 3:], values[:, :3], target_names=["fat", "water", "protein"])
    trace = best_subset(problem, 4)
    outside = np.setdiff1d(np.arange(100), trace.best_support)
    flips = [np.append(np.delete(trace.best_support, i), j) for i in range(4) for j in outside]
    assert trace.best_energy <= min(problem.energy(flip) for flip in flips) * (1 + 1e-9)
    assert np.all(problem.form.explained(problem.slots(trace.best_support)) > 0.85)
