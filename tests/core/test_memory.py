"""Wide tables: no N x N matrix, and less than a gibibyte above the data."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_a_gene_table_of_22_283_columns(shared_data):
    seen = measure(str(shared_data / "nci60_krt18" / "nci60_krt18.csv.gz"))
    assert seen["columns"] == 22_283
    assert "worked from the columns" in seen["note"]
    assert seen["above"] < MOST_MIB


SEARCH = """
import json, re, sys
import numpy as np
from pairflip import SubsetProblem
from pairflip.engines.base import Descent
from pairflip.engines.numba import NumbaEngine
from pairflip.engines.numba.searching import Searcher
from pairflip.philox import chain_keys

def mebibytes(what):  # not getrusage, whose peak is at first that of the process which started this one
    with open("/proc/self/status") as file:
        return int(re.search(what + r":\\s*(\\d+)", file.read())[1]) / 1024

def search(X, y, budget):
    problem = SubsetProblem(X, y, memory_budget=budget)
    path, _ = NumbaEngine().path(problem.form, 10)
    key = chain_keys(0, 10, None, range(1))[0]
    chain = Searcher(problem.form, 10, lambda scans: None).chain(10, key, Descent(2), path[-1])
    return problem.fit(chain.support)

rng = np.random.default_rng(0)
small = rng.normal(size=(40, 1100)).astype(sys.argv[1])
search(small, small[:, 0] + rng.normal(size=40), 0)
if sys.argv[2:]:  # what compiling takes is not counted
    sys.exit()
X = np.empty((200, 100_000), dtype=sys.argv[1])
rng.standard_normal(out=X, dtype=X.dtype)
y = X[:, :10].sum(axis=1) + 0.1 * rng.normal(size=200)
before = mebibytes("VmRSS")
fit = search(X, y, 2**28)
print(json.dumps({"above": mebibytes("VmHWM") - before, "found": fit.support.tolist()}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux how much memory is in use")
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_a_path_and_kicks_take_no_copy_of_the_table(dtype):
    command = [sys.executable, "-c", SEARCH, dtype]
    subprocess.run([*command, "compile"], capture_output=True, timeout=280, check=True)
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=True)
    seen = json.loads(done.stdout)
    assert seen["found"] == list(range(10))
    assert seen["above"] < 300
