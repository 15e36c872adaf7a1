"""Data sets are what they say, and the same every time."""

import csv

import numpy as np
import pytest

from pairflip import SubsetProblem
from pairflip.datasets import load_diabetes_products, make_correlated, make_planted, make_spectra
from pairflip.testing import best_support

MAKERS = [make_planted, make_correlated, make_spectra]


@pytest.mark.parametrize("make", MAKERS)
def test_equal_seeds_equal_data(make):
    one, same, other = make(N=40, seed=1), make(N=40, seed=1), make(N=40, seed=2)
    assert (one.X == same.X).all()
    assert (one.y == same.y).all()
    assert (one.X != other.X).any()
    assert one.X.dtype == one.y.dtype == np.float64


def test_planted_has_the_papers_parameters():
    data = make_planted(N=2000, seed=0)
    M, N = data.X.shape
    assert (M, N) == (1000, 2000)
    assert data.X.var() * N == pytest.approx(1.0, rel=0.01)
    assert data.support.size == pytest.approx(0.1 * N, rel=0.2)
    assert (data.support == np.flatnonzero(data.x0)).all()
    assert data.x0[data.support].var() == pytest.approx(10.0, rel=0.3)
    assert data.noise.var() == pytest.approx(0.1, rel=0.15)
    assert data.y == pytest.approx(data.X @ data.x0 + data.noise)


@pytest.mark.parametrize("correlation", [0.0, 0.7, 0.9999])
def test_neighbouring_columns_are_correlated_as_asked(correlation):
    data = make_correlated(M=4000, N=30, k=4, correlation=correlation, snr=5.0, seed=0)
    R = np.corrcoef(data.X.T)
    assert np.diag(R, 1) == pytest.approx(np.full(29, correlation), abs=0.06 * (1 - correlation**2) + 1e-5)
    assert np.diag(R, 3) == pytest.approx(np.full(27, correlation**3), abs=0.06)
    assert data.X.std(axis=0) == pytest.approx(np.ones(30), rel=0.06)
    assert data.support.tolist() == [3, 11, 18, 26]
    assert (data.X @ data.x0).var() / data.noise.var() == pytest.approx(5.0, rel=0.15)
    assert data.y == pytest.approx(data.X @ data.x0 + data.noise)


def test_spectra_are_smooth_and_predict_the_concentration():
    data = make_spectra(seed=0)
    assert data.X.shape == (60, 400)
    assert len(data.names) == 400
    assert data.names[0] == "1100 nm"
    assert len(set(data.names)) == 400
    assert np.diag(np.corrcoef(data.X.T), 1).min() > 0.999
    assert data.y == pytest.approx(data.concentrations[:, 0], abs=0.05)
    problem = SubsetProblem(data.X, data.y, names=data.names)
    few = problem.energy(np.linspace(5, 395, 10).astype(int))
    assert few < 0.02 * problem.form.yy / 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: make_planted(N=2),
            "N=2 and alpha=0.5 make 1 rows; expected at least one column and two rows",
        ),
        (lambda: make_planted(rho0=1.5), "rho0 is 1.5; expected a probability"),
        (lambda: make_correlated(k=0), "k=0; expected"),
        (lambda: make_correlated(correlation=1.0), "correlation is 1.0; expected a number between -1 and 1"),
        (lambda: make_spectra(components=0), "components is 0; expected at least one component"),
        (lambda: make_spectra(M=1), "M=1 and N=400; expected at least two samples"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes_products()


@pytest.mark.parametrize(
    ("variables", "rss"),
    [
        ("bmi", 1719581.8),
        ("bmi ltg", 1416694.1),
        ("bmi bp ltg", 1362707.7),
        ("bmi bp ltg age*sex", 1321682.2),
    ],
)
def test_diabetes_optima_have_the_known_residuals(diabetes, variables, rss):
    """Exhaustive search on the table of R's lars package."""
    problem = SubsetProblem(diabetes.X, diabetes.y, names=diabetes.names)
    support = [diabetes.names.index(name) for name in variables.split()]
    assert 2 * problem.energy(support) == pytest.approx(rss, rel=2e-6)
    if len(support) <= 2:
        assert best_support(problem, len(support))[0].tolist() == support


def test_diabetes_is_the_table_of_the_lars_package(diabetes, shared_data):
    with (shared_data / "diabetes" / "diabetes_64.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    table = np.array(rows, dtype=float)
    named = [name.replace(":", "*").replace("map", "bp") for name in header[1:]]
    assert named == diabetes.names
    assert (table[:, 0] == diabetes.y).all()
    assert table[:, 1:] == pytest.approx(diabetes.X, abs=1e-4)  # scikit-learn's bp and ltg are rounded
    sharp = [j for j, name in enumerate(named) if not {"bp", "ltg"} & set(name.replace("^2", "").split("*"))]
    assert len(sharp) == 43
    assert table[:, 1:][:, sharp] == pytest.approx(diabetes.X[:, sharp], abs=1e-9)
