"""Small searches of every kind, which compile what tests need: each process of a run takes the next that is left.

Kernels that have much in common are compiled one after the other by the same process, which compiles their parts once.
"""

import contextlib
import io

import numpy as np

from pairflip import SubsetProblem, anneal, best_subset, posterior, prove, select_size, temper
from pairflip.engines import get_engine

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 9))
Y = X[:, 0] + RNG.normal(size=30)
ALIKE = X[:, :1] + 1e-4 * X
LONG = RNG.normal(size=(100, 60))


def _survey(form):
    get_engine("numba").flip_energies(form, np.arange(form.n_columns), 2)


def _of_several_and_ruled():
    targets = np.column_stack([Y, X[:, 1] + Y])
    problem = SubsetProblem(X, targets)
    best_subset(problem, 2)
    anneal(problem, 2, chains=2)
    _survey(problem.form)
    prove(problem, 2)
    prove(SubsetProblem(LONG, LONG[:, :2]), 12, budget=0.1)
    best_subset(SubsetProblem(X, Y, min_distance=2), 2)


def _with_signs():
    problem = SubsetProblem(X, Y, positive=True)
    best_subset(problem, 2)
    anneal(problem, 2, chains=2)
    _survey(problem.form)


def _in_groups():
    problem = SubsetProblem(X, Y, groups={"a": [0, 1], "b": [2, 3, 4]})
    best_subset(problem, 2)
    select_size(problem, [1, 2], 3)


def _plain():
    best_subset(SubsetProblem(X, Y), 2)
    select_size(SubsetProblem(X, Y), [1, 2], 3)
    prove(SubsetProblem(X, Y), 2)
    prove(SubsetProblem(LONG, LONG[:, 0]), 12, budget=0.1)
    best_subset(SubsetProblem(ALIKE, Y), 2)


def _annealed():
    anneal(SubsetProblem(X, Y), 2, chains=2)
    temper(SubsetProblem(X, Y), 2, [0.0, 1.0], sweeps=20)
    _survey(SubsetProblem(X, Y).form)


def _probable():
    posterior(SubsetProblem(X, Y))
    posterior(SubsetProblem(X, Y), method="sample", sweeps=20)


# Long ones first, so that all processes end at about the same time; `_plain` shares kernels with two later ones.
KINDS = [
    _of_several_and_ruled,
    _plain,
    _annealed,
    _with_signs,
    _in_groups,
    lambda: best_subset(SubsetProblem(X, (Y > 0).astype(int), loss="logistic"), 2),
    _probable,
]


def compile_unclaimed(claims):
    """Run those that no other process has begun, silently; a folder within `claims` says that one has."""
    for number, kind in enumerate(KINDS):
        try:
            (claims / str(number)).mkdir()
        except FileExistsError:
            continue
        with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(Exception):  # tests say what is wrong
            kind()
