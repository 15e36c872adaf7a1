"""The number of columns where coefficients have signs: held-out errors against literal refits, and all that follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from pairflip import SizeCurve, SubsetProblem, best_subset, half_sample_stability, select_size
from pairflip.selection.folds import Folds, as_folds

SIGNS = np.array([1, 1, -1, 0, 1, -1, 1, 0, 1, 1])


def table(seed: int = 0, rows: int = 40) -> tuple[Any, Any]:
    """Columns that are all alike; some effects have the wrong sign."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 10)) + 1.5 * rng.normal(size=(rows, 1)) + 3.0
    return X, X @ np.array([1.0, 0.5, -1.0, -1.0, -1.0, 0.5, 0, 0, 0, 0.2]) + 0.7 * rng.normal(size=rows) + 5.0


def literal(problem: SubsetProblem, kept: Any, support: Any) -> tuple[Any, Any]:
    """Coefficients (constant, forced, chosen) and energy of a support on some rows, by bounded least squares."""
    X, y, a = problem.X[kept], problem.y[kept], problem.always
    shift = np.zeros(10), 0.0
    if problem.center == "global":
        shift = np.average(problem.X, axis=0, weights=problem.sample_weight), np.average(problem.y)
    root, k = np.sqrt(problem.sample_weight[kept])[:, None], len(support)
    ones = np.ones((len(X), int(problem.center == "fold")))
    A = np.hstack([ones, (X - shift[0])[:, a], (X - shift[0])[:, support]]) * root
    t, first = (y - shift[1]) * root[:, 0], A.shape[1] - k
    A = np.vstack([A, np.hstack([np.zeros((k, first)), np.sqrt(problem.ridge) * np.eye(k)])])
    t = np.append(t, np.zeros(k))
    sign = np.append(np.zeros(first), SIGNS[support])
    bounds = np.where(sign == 1, 0.0, -np.inf), np.where(sign == -1, 0.0, np.inf)
    found = lsq_linear(A, t, bounds=bounds, method="bvls", tol=1e-15, max_iter=1000)
    x = found.x if problem.center == "fold" else np.append(0.0, found.x)
    if problem.center == "global":
        x[0] = shift[1] - x[1:] @ shift[0][np.append(a, support)]
    return x, float(found.cost)


@pytest.mark.parametrize("cv", [5, "loo"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"always": [3], "ridge": 0.5},
        {"center": None, "sample_weight": np.random.default_rng(1).integers(1, 4, size=40).astype(float)},
        {"center": "global"},
    ],
)
def test_held_out_rows_are_predicted_by_fits_of_the_training_rows_alone(cv: Any, more: dict[str, Any]) -> None:
    X, y = table()
    signs = np.where(np.isin(np.arange(10), more.get("always", [])), 0, SIGNS)
    problem = SubsetProblem(X, y, positive=signs.tolist(), **more)
    folds = as_folds(cv, problem)
    judge = problem.loss.held_out(problem, folds)
    rng = np.random.default_rng(3)
    supports = np.array([[np.sort(rng.permutation(problem.candidates)[:4]) for _ in range(2)] for _ in folds.rows])
    residuals, energies = judge.judged(supports)
    fits = judge.fits(supports[:, 0])
    idle = 0
    for f, rows in enumerate(folds.rows):
        kept = np.setdiff1d(np.arange(40), folds.left_out[f])
        for c in range(2):
            x, energy = literal(problem, kept, supports[f, c])
            told = x[0] + problem.X[rows][:, np.append(problem.always, supports[f, c])] @ x[1:]
            np.testing.assert_allclose(residuals[c, folds.places[f]], problem.y[rows] - told, rtol=1e-6, atol=1e-7)
            assert energies[f, c] == pytest.approx(energy, rel=1e-8)
            idle += int(np.sum(x[-4:] == 0))
            if c == 0:
                own = np.concatenate([[fits.intercepts[f]], fits.always_coefs[f], fits.coefs[f]])
                np.testing.assert_allclose(own, x, rtol=1e-5, atol=1e-7)
                assert np.all(fits.coefs[f] * SIGNS[supports[f, 0]] >= 0)
    assert idle > 5  # folds in which columns carry nothing are among them


@pytest.fixture(scope="module")
def curve() -> SizeCurve:
    return select_size(SubsetProblem(*table(), positive=SIGNS.tolist()), range(1, 6), cv=5, stability=4)


def test_half_samples_fit_their_rows_with_signs() -> None:
    problem = SubsetProblem(*table(), positive=SIGNS.tolist())
    left = np.arange(0, 40, 2)
    support, half = np.array([0, 4, 5, 9]), Folds((left,), (left,), "half", True)
    judge = problem.loss.held_out(problem, half)
    coef, energy, yy = judge.fits(support[None]).coefs[0], judge.judged(support[None, None])[1][0, 0], judge.yy[0]
    x, literally = literal(problem, np.arange(1, 40, 2), np.array([0, 4, 5, 9]))
    np.testing.assert_allclose(coef, x[1:], rtol=1e-6, atol=1e-9)
    assert energy == pytest.approx(literally)
    assert yy > 2.0 * energy
    halves = half_sample_stability(problem, [2, 3], 3)
    assert all(np.all(c * SIGNS[s] >= 0) for c, s in zip(halves.coefs, halves.supports, strict=True))


def test_what_only_wrong_signs_explain_is_noise() -> None:
    X = np.random.default_rng(0).normal(size=(40, 6))
    wrong = -X[:, 0] - X[:, 1] + 0.2 * np.random.default_rng(1).normal(size=40)
    assert select_size(SubsetProblem(X, wrong), [1, 2], cv=4, effort="quick").facts["p_value"] < 0.02
    assert select_size(SubsetProblem(X, wrong, positive=True), [1, 2], cv=4, effort="quick").facts["p_value"] > 0.1


def test_standard_errors_are_those_of_the_columns_that_carry() -> None:
    problem = SubsetProblem(*table(), positive=SIGNS.tolist())
    curve = select_size(problem, [9], cv=3, effort="quick")
    frame = curve.coefficients(9).iloc[1:]
    idle = frame["coefficient"] == 0
    assert 0 < idle.sum() < 9
    assert frame["standard_error"].isna().equals(idle)
    carrying = [curve.names.index(name) for name in frame["column"][~idle]]
    ordinary = select_size(SubsetProblem(problem.X[:, carrying], problem.y), [len(carrying)], cv=3)
    np.testing.assert_allclose(
        frame["standard_error"][~idle], ordinary.coefficients(len(carrying))["standard_error"][1:], rtol=1e-9
    )


def test_the_answer_says_once_that_signs_were_kept(curve: SizeCurve) -> None:
    assert curve.settings["signs"] == {f"x{j}": int(sign) for j, sign in enumerate(SIGNS) if sign}
    assert str(curve).count("Coefficients were kept") == 1
    assert "Coefficients were kept to the signs that were asked for." in " ".join(str(curve).split())
    X, _ = table()
    positive = select_size(SubsetProblem(X, X[:, 0] + X[:, 4], positive=True), [1, 2], cv=3, effort="quick")
    assert positive.settings["signs"] == "all positive"
    assert "Coefficients were kept positive." in " ".join(str(positive).split())
    assert "Coefficients were kept positive." in positive._repr_html_()
    # What only coefficients of the wrong sign would explain.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    wrong = SubsetProblem(X, 3.0 * X[:, 0] - X[:, 1:] @ np.ones(5) + 0.1 * rng.normal(size=30), positive=True)
    told = " ".join(str(select_size(wrong, [3], cv=5, effort="quick")).split())
    assert "Coefficients were kept positive; “x" in told
    assert (
        "carry no weight in this fit: their coefficients are zero at the bound, so a smaller size does the same."
        in told
    )


@pytest.mark.usefixtures("undrawn")
def test_the_report_says_it_too(curve: SizeCurve, tmp_path: Path) -> None:
    from pairflip import write_report

    write_report(curve, tmp_path / "report.html")
    assert "Coefficients were kept to the signs that were asked for" in (tmp_path / "report.html").read_text()


def test_known_signs_of_a_real_table(shared_data: Path) -> None:
    file = shared_data / "prostate" / "prostate.csv"
    if not file.exists():
        pytest.skip("prostate is not there")
    names = file.read_text().splitlines()[0].split(",")[1:]
    values = np.loadtxt(file, delimiter=",", skiprows=1)
    known = {"lcavol": "+", "lweight": "+", "age": "-", "lbph": "+", "svi": "+", "lcp": "+", "gleason": "+"}
    problem = SubsetProblem(values[:, 1:], values[:, 0], names=names, positive=known)
    curve = select_size(problem, range(1, 9), cv=10)
    assert curve.columns(3) == ["lcavol", "lweight", "svi"]
    assert curve.coef(8)[names.index("lcp")] == 0  # negative without signs
    signs = np.array([{"+": 1, "-": -1}.get(known.get(name, ""), 0) for name in names])
    assert all(np.all(curve.coef(size) * signs >= 0) for size in range(1, 9))
    assert curve.energies[8] == curve.energies[7]


def test_columns_are_better_than_those_of_the_positive_lasso(shared_data: Path) -> None:
    file = shared_data / "gasoline" / "gasoline.csv"
    if not file.exists():
        pytest.skip("gasoline is not there")
    from sklearn.linear_model import Lasso

    values = np.loadtxt(file, delimiter=",", skiprows=1)
    X, y = np.diff(values[:, 1:], axis=1), values[:, 0]
    problem, unit = (
        SubsetProblem(X, y, positive=True),
        (X - X.mean(axis=0)) / np.linalg.norm(X - X.mean(axis=0), axis=0),
    )
    compared = 0
    for alpha in (0.08, 0.05, 0.02):
        support = np.flatnonzero(Lasso(alpha, positive=True, max_iter=50_000).fit(unit, y).coef_)
        if 2 <= support.size <= 6:
            found = best_subset(problem, int(support.size), effort="quick")
            assert found.best_energy <= problem.energy(support) * (1 + 1e-9)
            assert np.all(found.best_coef > 0)
            compared += found.best_energy < 0.9 * problem.energy(support)
    assert compared
