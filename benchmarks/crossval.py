"""Leave-one-out over sizes 1 to 5 with the paper's schedule: how far from the bare flips, and what a journal costs."""

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.common import real_table
from pairflip import Schedule, SubsetProblem, datasets, select_size
from pairflip.engines import WalkPlan, get_engine
from pairflip.philox import chain_keys

SIZES = range(1, 6)
REPEATS = 3


def problem():
    """The supernova table if it is there, else correlated columns of the same shape."""
    table = real_table("supernova_bsnip/snia_74x276.csv")
    if table is not None:
        return SubsetProblem(*table), "supernova table, 74 x 276"
    made_up = datasets.make_spectra(M=74, N=276, seed=0)
    return SubsetProblem(made_up.X, made_up.y), "made-up spectra, 74 x 276"


def bare_seconds(problem):
    """The same number of chains and flips on all rows, in one call a size: what the kernel alone takes."""
    engine, schedule = get_engine("numba"), Schedule.paper()
    flips = schedule.flips(problem.form.n_columns)
    began = time.perf_counter()
    for k in SIZES:
        keys = chain_keys(0, k, None, np.arange(problem.n_rows + 1))
        engine.walk([(problem.form, WalkPlan(k, np.asarray(schedule.betas), flips, keys))])
    return time.perf_counter() - began, len(SIZES) * (problem.n_rows + 1) * int(flips.sum())


def select_seconds(problem, n_jobs, journal=None, progress=False):
    began = time.perf_counter()
    select_size(
        problem, SIZES, schedule="paper", chains=1, n_jobs=n_jobs, journal=journal, progress=progress, engine="numba"
    )
    return time.perf_counter() - began


def report():
    table, name = problem()
    select_seconds(table, 1)
    bare, one, two, kept = [], [], [], []
    for _ in range(REPEATS):
        seconds, flips = bare_seconds(table)
        bare.append(seconds)
        one.append(select_seconds(table, 1))
        two.append(select_seconds(table, 2))
        with tempfile.TemporaryDirectory() as folder:
            kept.append(select_seconds(table, 1, journal=Path(folder) / "journal"))
    bare_s, one_s, two_s, kept_s = (float(np.median(times)) for times in (bare, one, two, kept))
    print(f"\nChoosing the size: {name}, leave-one-out, sizes 1 to 5, the paper's schedule, {flips:.2e} flips")
    print(f"  bare flips, one core     {bare_s:6.2f} s   ({1e9 * bare_s / flips:.1f} ns a flip)")
    print(f"  select_size, one core    {one_s:6.2f} s   {one_s / bare_s:.2f} x the bare flips (limit 2)")
    print(f"  ... with a journal       {kept_s:6.2f} s   {100 * (kept_s / one_s - 1):+.1f} % (limit 5 %)")
    print(f"  select_size, two threads {two_s:6.2f} s   {one_s / two_s:.2f} x as fast as one (wanted: 1.8)")
