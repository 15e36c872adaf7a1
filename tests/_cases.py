"""Small problems of every kind (targets, rules, signs, ridge, groups, losses), and their energies from the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from _groups import GroupCase, combined_case, likelihood_case, likelihood_target
from _refits import refit
from _ruled import KINDS, keeps, limits
from pairflip import SubsetProblem
from pairflip.least_squares import SINGULAR


class Literal(NamedTuple):
    """What some columns should give: the energy, coefficients if known, and whether they may be singular."""

    energy: float
    coef: Any = None
    doubtful: bool = False


class Case(NamedTuple):
    problem: SubsetProblem
    k: int
    literal: Callable[[list[int]], Literal | None]  # of columns of the table; None: not known


def literal_squares(problem: SubsetProblem, support: list[int]) -> Literal:
    """E(S) by least squares on the rows; infinite where columns are dependent."""
    fit = refit(problem, [], support)
    A = fit.design
    if np.linalg.svd(A, compute_uv=False)[-1] < 1e-8 or np.max(np.diag(np.linalg.inv(A.T @ A))) > 1.0 / SINGULAR:
        return Literal(float("inf"))
    return Literal(fit.energy, fit.coef)


def random_rows(seed: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Columns alike, equal, nearly dependent, of any scale; and weights, some of them zero."""
    m, n = int(rng.integers(18, 30)), int(rng.integers(7, 10))
    X = rng.normal(size=(m, n))
    if seed % 3 == 0:
        X = np.cumsum(X, axis=1)
    if seed % 4 == 1:
        X[:, 1] = 3.0 * X[:, 0]
    if seed % 5 == 2:
        X[:, 4] = X[:, 2] - X[:, 3] + 10.0 ** -rng.integers(1, 4) * X[:, 4]
    w = rng.integers(0, 3, size=m) + (np.arange(m) < 12.0) if seed % 4 == 2 else np.ones(m)
    return X, w


def squares(seed: int, q: int = 1, rules: str = "none", signed: bool = False) -> Case:
    """Squared error of q targets under rules and signs, with weights, forced columns and either kind of ridge."""
    rng = np.random.default_rng([seed, q, len(rules), signed])
    X, w = random_rows(seed, rng)
    n = X.shape[1]
    Y = X @ (rng.normal(size=(n, q)) * (rng.random((n, 1)) < 0.6)) + X.std() * rng.normal(size=(len(X), q))
    X, Y = X * 10.0 ** rng.integers(-3, 4, size=n), Y * 10.0 ** rng.integers(-2, 3, size=q)
    always, center = [n - 1] if seed % 6 == 0 else [], "fold" if seed % 7 else None
    ridge, relative = (0.5, 0.0) if seed % 4 == 0 else (0.0, 0.2 if seed % 4 == 3 else 0.0)
    asked = {} if rules == "none" else limits(rng, rules, n - len(always))
    signs = None
    if signed:
        signs = np.ones(n, int) if seed % 2 else rng.integers(-1, 2, size=n)
        signs[always], signs[0] = 0, 1
    problem = SubsetProblem(
        X, Y if q > 1 else Y[:, 0], always=always, sample_weight=w, ridge=ridge, center=center,  # type: ignore[arg-type]
        positive=None if signs is None else signs.tolist(), **asked,
    ).with_shrinkage(relative)  # fmt: skip

    def literal(columns: list[int]) -> Literal:
        if asked and not keeps(asked, columns):
            return Literal(float("inf"))
        return literal_squares(problem, columns)

    return Case(problem, min(1 + seed % 4, problem.most_columns), literal)


def likelihood(seed: int, loss: str, rules: str = "none") -> Case:
    """Classes, counts or survival times of single columns, with weights, forced columns, offsets and rules."""
    rng = np.random.default_rng([seed, len(loss), len(rules)])
    X, w = random_rows(seed, rng)
    X, w = np.vstack([X, rng.normal(size=(30, X.shape[1]))]), np.append(w, np.ones(30))
    eta = X @ (rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.5)) + rng.normal(size=len(X))
    always = [X.shape[1] - 1] if seed % 4 == 0 else []
    asked = {} if rules == "none" else limits(rng, rules, X.shape[1] - len(always))
    if loss == "poisson" and seed % 5 == 0:
        asked["offset"] = 0.3 * rng.normal(size=len(X))
    y = likelihood_target(loss, (eta - np.median(eta)) / eta.std(), rng)
    problem = SubsetProblem(X, y, loss=loss, sample_weight=w, always=always, **asked)

    def literal(columns: list[int]) -> Literal | None:
        return None if rules == "none" or keeps(asked, columns) else Literal(float("inf"))

    return Case(problem, min(1 + seed % 3, problem.most_columns), literal)


def grouped(seed: int, loss: str | None = None) -> Case:
    """Groups that are chosen as a whole: dependent inside and between, with targets, rules, ridge, losses."""
    case: GroupCase = combined_case(seed) if loss is None else likelihood_case(loss, seed)
    problem, form = case.problem(), case.problem().form
    free = {name: case.given.get(name) for name in ("center", "always", "sample_weight", "offset", "loss")}
    given = {name: value for name, value in free.items() if value is not None or name == "center"}
    plain = None if loss is None else SubsetProblem(case.X, case.y, **given).with_shrinkage(case.shrinkage)

    def literal(columns: list[int]) -> Literal:
        assert problem.units is not None
        if not case.allows(problem.units.names_of(columns, problem.names)):
            return Literal(float("inf"))
        if plain is not None:
            return Literal(plain.energy(columns), plain.fit(columns).coef)
        fit = case.literal_fit(columns)
        width = form.widths[form.positions(problem.units.units_of(columns))].sum()
        return Literal(fit.energy, fit.coef, fit.rank < width)

    return Case(problem, min(1 + seed % 4, form.n_columns - 1), literal)


LOSSES = ("logistic", "poisson", "multinomial", "cox")
CASES: dict[str, Callable[[int], Case]] = {"groups": grouped}
for _rules in ("none", *KINDS):
    CASES |= {f"{q} targets, rules {_rules}": partial(squares, q=q, rules=_rules) for q in (1, 3)}
    CASES[f"signs, rules {_rules}"] = partial(squares, rules=_rules, signed=True)
    CASES |= {f"{loss}, rules {_rules}": partial(likelihood, loss=loss, rules=_rules) for loss in LOSSES}
CASES |= {f"groups, {loss}": partial(grouped, loss=loss) for loss in LOSSES}
