"""Ctrl-C ends a run at once: the exception arrives, the threads are gone, the command line says one sentence."""

import json
import os

import pytest

from _interrupt import LIMIT, interrupt

pytestmark = [pytest.mark.alone, pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process")]

ANNEAL = """
import json, sys, threading
import numpy as np
from pairflip import Schedule, SubsetProblem
from pairflip.search.best_subset import anneal

options = json.loads(sys.argv[1])
shape, budget = options.pop("shape"), options.pop("memory_budget")
rng = np.random.default_rng(0)
problem = SubsetProblem(rng.normal(size=shape), rng.normal(size=shape[0]), memory_budget=budget)
anneal(problem, 5, Schedule.geometric(1.0, 1e6, steps=5, unit="greedy"), chains=2, n_jobs=options["n_jobs"])
print("ready", flush=True)
hours = Schedule.geometric(options.pop("beta"), 1e6, steps=20, sweeps=20_000, unit="greedy")
try:
    anneal(problem, 5, hours, **options)
except KeyboardInterrupt:
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(0.2)  # that of the progress bar has been told to end, not waited for
    print(json.dumps([thread.name for thread in threading.enumerate()]))
else:
    print("finished")
"""

DEMO = """
import pairflip.cli
from pairflip import SubsetProblem, selection
from pairflip.datasets import load_diabetes_products

select_size, data = selection.select_size, load_diabetes_products()
select_size(SubsetProblem(data.X, data.y), [1], stability=50, progress=False)

def announced(*args, **options):
    print("ready", flush=True)
    return select_size(*args, **options)

selection.select_size = announced
pairflip.cli.app(["demo", "--sizes", "1-60", "--quiet"], prog_name="pairflip")
"""


SMALL, LARGE = (100, 60), (80, 3000)
CASES = {
    "one thread": {"shape": SMALL, "chains": 2000, "n_jobs": 1},
    "two threads": {"shape": SMALL, "chains": 2000, "n_jobs": 2},
    "one chain, two threads": {"shape": SMALL, "chains": 1, "n_jobs": 2},
    "cold": {"shape": SMALL, "chains": 2000, "n_jobs": 1, "beta": 300.0},
    "columns, one thread": {"shape": LARGE, "chains": 500, "n_jobs": 1, "memory_budget": 0},
    "columns, two threads": {"shape": LARGE, "chains": 500, "n_jobs": 2, "memory_budget": 0},
    "columns, cold": {"shape": LARGE, "chains": 500, "n_jobs": 2, "memory_budget": 0, "beta": 300.0},
    "progress bar": {"shape": SMALL, "chains": 2000, "n_jobs": 2, "progress": True},
    "reference": {"shape": SMALL, "chains": 2, "n_jobs": 1, "engine": "reference"},
}


MORE = {"two threads", "columns, one thread", "columns, cold", "one chain, two threads"}  # much like the others


@pytest.mark.parametrize(
    "options",
    [pytest.param(case, id=name, marks=[pytest.mark.slow] * (name in MORE)) for name, case in CASES.items()],
)
def test_anneal(options):
    options = {"memory_budget": 2**28, "beta": 1.0, **options}
    code, out, err, seconds = interrupt(ANNEAL, json.dumps(options))
    assert code == 0, err
    assert json.loads(out) == ["MainThread"]
    assert "Traceback" not in err
    assert seconds < LIMIT


def test_demo_exits_130_with_one_sentence():
    code, out, err, seconds = interrupt(DEMO)
    assert code == 130
    assert out == ""
    assert err == "pairflip: interrupted; nothing was kept and nothing was written.\n"
    assert seconds < LIMIT
