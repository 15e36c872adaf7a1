"""Wide tables: no N x N matrix, and less than a gibibyte above the data."""

import json
import subprocess
import sys

MOST_MIB = 1024

SCRIPT = """
import json, resource, sys
import numpy as np
from pairflip import Schedule, SubsetProblem, anneal

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

rng = np.random.default_rng(0)
small = SubsetProblem(rng.normal(size=(20, 9)), rng.normal(size=20), memory_budget=0)
anneal(small, 2, chains=2)
if len(sys.argv) > 1:
    import pandas as pd
    frame = pd.read_csv(sys.argv[1])
    y = frame.pop("target_KRT18").to_numpy()
    X = frame.to_numpy()
    del frame
else:
    X = rng.normal(size=(200, 100_000))
    y = X[:, :10] @ rng.normal(size=10) + rng.normal(size=200)
before = peak()
schedule = Schedule.geometric(10.0, 1e9, steps=12, sweeps=1, unit="greedy")
trace = anneal(SubsetProblem(X, y), 10, schedule, chains=4, n_jobs=2)
print(json.dumps({"above": peak() - before, "note": trace.note, "energy": trace.best_energy, "columns": X.shape[1]}))
"""


def measure(*arguments):
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_made_up_table_of_100_000_columns():
    seen = measure()
    assert seen["columns"] == 100_000
    assert "worked from the columns" in seen["note"]
    assert seen["above"] < MOST_MIB


def test_a_gene_table_of_22_283_columns(shared_data):
    seen = measure(str(shared_data / "nci60_krt18" / "nci60_krt18.csv.gz"))
    assert seen["columns"] == 22_283
    assert "worked from the columns" in seen["note"]
    assert seen["above"] < MOST_MIB
