"""What may be combined: every pair of a loss, an option and an action is tried on a small table.

`python tests/_combinations.py` writes docs/reference/combinations.md anew.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from pairflip import Schedule, SubsetProblem, anneal, best_subset, compare, posterior, prove, sample, select_size
from pairflip.engines import WalkPlan
from pairflip.engines.cuda.batch import refusal

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "combinations.md"
N, K = 8, 2


class Huber:
    """A loss of the user's own, as in the documentation."""

    name = "huber"

    def derivatives(self, rows: Any, eta: Any) -> tuple[Any, Any, Any]:
        left = rows.y[:, None] - eta
        far = np.abs(left) > 1.0
        value = np.where(far, np.abs(left) - 0.5, 0.5 * left**2)
        w = rows.w[:, None]
        curvature = (w * np.where(far, 1.0 / np.abs(np.where(far, left, 1.0)), 1.0))[..., 0]
        return (w * value).sum(axis=(1, 2)), w * np.clip(left, -1.0, 1.0), curvature


def table(seed: int = 0) -> tuple[Any, dict[str, Any]]:
    """X (30, 8), the last column the product of the first two; and a target for each loss."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, N))
    X[:, 7] = X[:, 0] * X[:, 1]
    eta = X[:, 1] - X[:, 4] + 0.5 * X[:, 7]
    y = eta + 0.7 * rng.normal(size=30)
    return X, {
        "squares": y,
        "several targets": np.column_stack([y, X[:, 2] + rng.normal(size=30)]),
        "logistic": (y > np.median(y)).astype(int),
        "multinomial": np.digitize(y, np.quantile(y, [1 / 3, 2 / 3])),
        "poisson": rng.poisson(np.exp(0.5 * eta)),
        "cox": np.column_stack([rng.exponential(np.exp(-eta)), np.arange(30) % 3 > 0]),
        "own loss": y,
    }


LOSSES = ("squares", "several targets", "logistic", "multinomial", "poisson", "cox", "own loss")
NAMES = {"several targets": "squares", "own loss": Huber()}
OPTIONS: dict[str, dict[str, Any]] = {
    "groups": {"groups": {"a": [0, 1], "b": [2, 3, 7], "c": [4, 5]}},
    "one_per_group": {"groups": {"a": [0, 1], "b": [2, 3], "c": [4, 5]}, "one_per_group": True},
    "min_distance": {"min_distance": 2},
    "hierarchy": {"hierarchy": {7: [0, 1]}},
    "positive": {"positive": {1: 1, 2: -1}},
    "ridge": {"ridge": 0.5},
    "ridge to choose": {"shrinkage": 0.1},
    "sample_weight": {"sample_weight": np.linspace(0.5, 2.0, 30)},
    "always": {"always": [6]},
}
ACTIONS = ("fit", "select", "prove", "anneal", "sample", "posterior", "compare", "GPU")
SHORT = Schedule.geometric(1.0, 100.0, steps=3, sweeps=1, unit="greedy")


def problem_name(loss: str) -> str:
    """The name that sentences give to a loss."""
    return {"several targets": "several", "own loss": Huber.name}.get(loss, loss)


def problem_of(loss: str, *options: str, seed: int = 0) -> SubsetProblem:
    """The problem of a loss with some options."""
    X, targets = table(seed)
    given: dict[str, Any] = {}
    for option in options:
        given |= OPTIONS[option]
    shrinkage = given.pop("shrinkage", 0.0)
    return SubsetProblem(X, targets[loss], loss=NAMES.get(loss, loss), **given).with_shrinkage(shrinkage)


def do(action: str, problem: SubsetProblem, ridge: str | None = None) -> None:
    """One action, as short as it can be."""
    if action == "fit":
        assert np.isfinite(best_subset(problem, K, effort="quick", prove=False).best_energy)
    elif action == "select":
        assert np.isfinite(select_size(problem, [1, K], 3, effort="quick", ridge=ridge).cv_error).all()
    elif action == "prove":
        assert prove(problem, K).optimal
    elif action == "anneal":
        assert np.isfinite(anneal(problem, K, SHORT, chains=2, polish=False).best_energy)
    elif action == "sample":
        assert np.isfinite(sample(problem, K, 1.0, sweeps=10, chains=2).energies).all()
    elif action == "posterior":
        assert np.isfinite(posterior(problem, sizes=range(K + 1)).inclusion_probability).all()
    elif action == "compare":
        compare(problem, [1, K], 3, methods=["quick", "forward"], progress=False)
    else:
        plan = WalkPlan(K, np.ones(1), np.ones(1, np.int64), np.zeros((1, 2), np.uint32))
        reason = refusal(problem.form, plan.k, 1, 10**9)
        if reason is not None:
            raise ValueError(reason)


def refused(loss: str, options: tuple[str, ...], action: str) -> str:
    """Why something cannot be combined, in one sentence; empty where it works."""
    chosen = "auto" if action == "select" and "ridge to choose" in options else None
    used = [option for option in options if not (chosen and option == "ridge to choose")]
    try:
        do(action, problem_of(loss, *used), chosen)
    except (ValueError, TypeError) as error:
        said = str(error)
        assert said.endswith("."), said
        assert "\n" not in said, said
        return said.replace(repr(problem_name(loss)), "'...'")
    return ""


def tables() -> list[tuple[str, list[str], list[str], dict[tuple[str, str], str]]]:
    """(heading, rows, columns, why not) of each table of the page."""
    options, plain = list(OPTIONS), "squares"
    by_loss = {(loss, option): refused(loss, (option,), "select") for loss in LOSSES for option in options}
    pairs = {}
    for one, other in combinations(options, 2):
        groups = {one, other} == {"groups", "one_per_group"}  # two ways of reading the same groups
        pairs[one, other] = pairs[other, one] = "-" if groups else refused(plain, (one, other), "select")
    pairs |= {(one, one): "-" for one in options}
    actions = {(loss, action): refused(loss, (), action) for loss in LOSSES for action in ACTIONS}
    with_options = {(option, action): refused(plain, (option,), action) for option in options for action in ACTIONS}
    return [
        ("Losses and what can be asked of them", list(LOSSES), list(ACTIONS), actions),
        ("Losses and options (`select`)", list(LOSSES), options, by_loss),
        ("Options together (squared error, `select`)", options, options, pairs),
        ("Options and what can be asked (squared error)", options, list(ACTIONS), with_options),
    ]


def page() -> str:
    """The page of the documentation."""
    notes: dict[str, int] = {}
    text = [
        "# What may be combined\n",
        "Tried, not promised: each cell was run on a small table (`tests/_combinations.py`). `+` works; a number is "
        "the sentence below with which it is refused. Options that go together in pairs go together in any number: "
        "random combinations of them are tested against all supports.\n",
        "`fit`, `select`, `prove`, `sample`, `posterior`, `compare` are the functions and commands of that name (`fit` "
        "is the default search of one size); `anneal` is simulated annealing, `GPU` the same on a device. *Several "
        "targets*: squared error of all of them; *own loss*: an object of yours; *ridge to choose*: a ridge in units "
        'of the scaled columns, as `select` chooses it (`ridge="auto"`).\n',
    ]
    for heading, rows, columns, why in tables():
        text += [f"## {heading}\n", "| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
        for row in rows:
            cells = []
            for column in columns:
                said = why[row, column]
                if said in ("", "-"):
                    cells.append("" if said else "+")
                else:
                    cells.append(str(notes.setdefault(said, len(notes) + 1)))
            text.append(f"| {row} | " + " | ".join(cells) + " |")
        text.append("")
    text += ["## Why not\n", *(f"{number}. {said}" for said, number in notes.items())]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
