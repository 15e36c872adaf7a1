"""A loss of the user's own: an object with a name and derivatives."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from _errors import sentence_of
from _markdown import fenced_blocks
from pairflip import SizeCurve, SubsetProblem, best_subset, select_size
from pairflip.losses import _OWN


class LogCosh:
    """ln cosh of the residual, for each of which the sum has an ordinary minimum."""

    name = "log cosh"

    def derivatives(self, rows, eta):
        left = rows.y - eta[..., 0]
        value = np.log(np.cosh(left)) @ rows.w
        return value, (rows.w * np.tanh(left))[..., None], rows.w / np.cosh(left) ** 2


def table(seed=0):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(40, 7)), rng.uniform(0.5, 2.0, size=40)
    return X, 1.5 * X[:, 1] - X[:, 4] + rng.standard_t(2, size=40), w


def test_fits_are_the_minimum_and_the_search_finds_the_best():
    for seed in range(4):
        X, y, w = table(seed)
        problem = SubsetProblem(X, y, loss=LogCosh(), sample_weight=w, always=[6], ridge=1e-9)
        A = np.column_stack([np.ones(40), X[:, [6, 1, 4]]])
        best = minimize(lambda b, A=A, y=y, w=w: np.sum(w * np.log(np.cosh(y - A @ b))), np.zeros(4), tol=1e-12)
        fit = problem.fit([1, 4])
        assert fit.energy == pytest.approx(best.fun, rel=1e-7)
        np.testing.assert_allclose([fit.intercept, *fit.always_coef, *fit.coef], best.x, atol=1e-5)
        energies = {S: problem.energy(S) for S in combinations(range(6), 2)}
        assert best_subset(problem, 2).best_energy == pytest.approx(min(energies.values()), rel=1e-9)


def test_a_curve_is_chosen_saved_and_refused_without_the_loss(tmp_path):
    X, y, w = table()
    problem = SubsetProblem(X, y, loss=LogCosh(), sample_weight=w)
    curve = select_size(problem, [1, 2], cv=4, effort="quick")
    assert curve.columns(2) == ["x1", "x4"]
    left = curve.observed - curve.predictions[curve.at(2)]
    assert curve.cv_error[curve.at(2)] == pytest.approx(np.average(np.log(np.cosh(left)), weights=curve.weights))
    coef = curve.coefficients(2)["coefficient"].to_numpy()
    np.testing.assert_allclose(curve.predict(X[:2], 2), coef[0] + X[:2, [1, 4]] @ coef[1:])
    assert "deviance ± SE" in str(curve)
    curve.save(tmp_path / "curve.json")
    assert SizeCurve.load(tmp_path / "curve.json").columns(2) == ["x1", "x4"]
    own = _OWN.pop("log cosh")
    with pytest.raises(ValueError, match=r"'log cosh' is not known here: .* make a SubsetProblem with it first"):
        SizeCurve.load(tmp_path / "curve.json")
    _OWN["log cosh"] = own


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        (LogCosh(), "offset is given with loss='log cosh'"),
        ("tukey", "loss is 'tukey'; expected 'squares', 'logistic', .* or an object"),
        (object(), "or an object with name and derivatives"),
        (type("Taken", (LogCosh,), {"name": "logistic"})(), "has the name 'logistic', which is taken"),
    ],
)
def test_what_is_no_loss_is_refused(loss, says):
    X, y, w = table()
    with pytest.raises(ValueError, match=says):
        SubsetProblem(X, y, loss=loss, offset=w)


@pytest.fixture(scope="module")
def documented():
    """The names of docs/how-to/own-loss.md: its class, its table, and its target."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "own-loss.md"
    names: dict = {}
    exec(fenced_blocks(page.read_text())[0].text.partition("problem =")[0], names)
    return names["Huber"], names["X"], names["y"]


@pytest.mark.parametrize("scale", [0.01, 10.0])
def test_the_documented_class_has_its_minimum_wherever_the_target_lies(documented, scale):
    Huber, X, y = documented
    A, ridge = np.column_stack([np.ones(len(y)), X[:, [3, 7]]]), 1e-5 * len(y) * X[:, [3, 7]].var(axis=0)

    def total(b):
        left = np.abs(scale * y - A @ b)
        return np.sum(np.where(left <= 1, left**2 / 2, left - 0.5)) + ridge @ b[1:] ** 2 / 2

    best = minimize(total, [np.median(scale * y), 0, 0], method="Nelder-Mead", tol=1e-12, options={"maxfev": 10_000})
    chosen = []
    for shift in (0.0, 20.0, -1e6):
        problem = SubsetProblem(X, scale * y + shift, loss=Huber())
        fit = problem.fit([3, 7])
        assert fit.energy == pytest.approx(best.fun, rel=1e-7)
        np.testing.assert_allclose([fit.intercept - shift, *fit.coef], best.x, atol=1e-4 * scale)
        chosen.append(best_subset(problem, 2, effort="quick").best_support.tolist())
    assert all(each == chosen[0] for each in chosen)
    curves = [
        select_size(SubsetProblem(X, scale * y + s, loss=Huber()), [2], cv=2, effort="quick") for s in (0.0, 20.0)
    ]
    np.testing.assert_allclose(curves[1].cv_error, curves[0].cv_error, rtol=1e-6)


def test_a_fit_that_is_no_minimum_is_refused(documented):
    Huber, X, y = documented
    problem = SubsetProblem(X, 1e4 * y + 20.0, loss=Huber())
    says = "Newton's method found no minimum of the loss 'huber'; expected a smooth convex loss whose scale"
    assert says in sentence_of(ValueError, lambda: problem.fit([3, 7]))
    assert says in sentence_of(ValueError, lambda: select_size(problem, [2], cv=2, effort="quick"))
