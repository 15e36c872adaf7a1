"""200 rows, 2,000 columns, sizes to 40: less than 500 MiB above the data, whatever the number of folds."""

import json
import subprocess
import sys

import pytest

MOST_MIB = 500

SCRIPT = """
import json, resource, sys
import numpy as np
from pairflip import Schedule, SubsetProblem, select_size

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

options = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2000))
y = X[:, :10] @ rng.normal(size=10) + rng.normal(size=200)
schedule = Schedule.geometric(1.0, 1e4, steps=options["steps"], sweeps=1, unit="greedy")
small = SubsetProblem(X[:30, :9], y[:30])
select_size(small, [2], 3, schedule=schedule, chains=1, n_jobs=2)
everything = np.arange(200)
cv = [(np.delete(everything, m), [m]) for m in range(options["folds"])]
before = peak()
curve = select_size(
    SubsetProblem(X, y), options["sizes"], cv, schedule=schedule, chains=options["chains"], n_jobs=options["n_jobs"],
    journal=options.get("journal"),
)
print(json.dumps({"above": peak() - before, "folds": curve.n_folds, "predictions": curve.predictions.shape}))
"""


def above(**options):
    """Peak memory of a selection in MiB, above the interpreter, the table and the target."""
    options = {"chains": 1, "n_jobs": 1, "sizes": [1, 20, 40], "steps": 2, **options}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(options)], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["folds"] == options["folds"]
    return seen["above"]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_folds():
    few, many = above(folds=3), above(folds=40)
    assert few < MOST_MIB
    assert many < few + 20


def test_two_threads():
    assert above(folds=6, n_jobs=2) < MOST_MIB


@pytest.mark.slow
def test_leave_one_out_with_a_journal(tmp_path):
    assert above(folds=200, n_jobs=2, chains=2, sizes=list(range(1, 41)), journal=str(tmp_path)) < MOST_MIB
    assert above(folds=200, n_jobs=2, chains=2, sizes=list(range(1, 41)), journal=str(tmp_path)) < MOST_MIB  # read
