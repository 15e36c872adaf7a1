"""Kill a selection again and again with SIGKILL and resume it: python _kill_points.py FOLDER KILLS SEED.

A process that has loaded and compiled everything forks one child for each kill point, so a point costs
milliseconds. Prints one JSON line: kills, finished runs, and lines kept.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from _curves import assert_same_curve
from pairflip import Schedule, SubsetProblem, select_size
from pairflip.selection import executors

CHAINS = (15 + 1) * 3 * 3


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 30))
    return SubsetProblem(X, X[:, 0] + X[:, 3] * 0.5 + rng.normal(size=15))


def select(journal, n_jobs=1):
    schedule = Schedule.geometric(1.0, 1e4, steps=20, sweeps=10, unit="greedy")
    return select_size(problem(), [1, 2, 4], "loo", schedule=schedule, chains=3, seed=7, n_jobs=n_jobs, journal=journal)


def whole_lines(folder):
    """Every line that ends in a newline, by file."""
    return {p.name: p.read_bytes().split(b"\n")[:-1] for p in Path(folder).glob("tasks-*.jsonl")}


def addresses(folder):
    records = [json.loads(line) for lines in whole_lines(folder).values() for line in lines]
    return [(r["size"], r["fold"], r["chain"]) for r in records]


def kill_after(seconds, journal, n_jobs):
    """Whether a child that works on the journal was killed (False: it was done before)."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            select(journal, n_jobs)
            code = 0
        finally:
            os._exit(code)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)  # of a child that has ended, nothing is left to kill
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the child failed"
    return False


def main(folder, kills, seed):
    executors._BATCH_NS = 1.0  # every chain is a batch: as many writes as possible
    rng = random.Random(seed)
    expected = select(None)
    began = time.perf_counter()
    assert_same_curve(expected, select(Path(folder) / "whole"))
    duration = time.perf_counter() - began
    killed = finished = kept = torn = run = 0
    journal = Path(folder) / "0"
    while killed < kills:
        before = whole_lines(journal)
        if kill_after(rng.uniform(0.0, 0.7 * duration), journal, 1 + killed % 2):
            killed += 1
            after = whole_lines(journal)
            assert all(after[name][: len(lines)] == lines for name, lines in before.items()), "a line was lost"
            kept = max(kept, sum(map(len, after.values())))
            torn += any(not p.read_bytes().endswith(b"\n") for p in journal.glob("tasks-*.jsonl") if p.stat().st_size)
        done = addresses(journal)
        assert len(done) == len(set(done)), "a finished chain was walked again"
        if len(done) == CHAINS or killed == kills:
            # What a torn line was worth is walked again; its note is the only difference.
            assert_same_curve(expected, select(journal), but=("seconds", "notes"))
            done = addresses(journal)
            assert len(done) == len(set(done)) == CHAINS
            finished, run = finished + 1, run + 1
            journal = Path(folder) / str(run)
    print(json.dumps({"killed": killed, "finished": finished, "kept": kept, "torn": torn, "seconds": duration}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
