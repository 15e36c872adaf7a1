"""Proofs: nanoseconds a support by enumeration, on one core and on a device, and times of branch and bound.

`python -m benchmarks prove`; without a device, the CPU alone.
"""

import time
from math import comb

from benchmarks.common import real_table
from pairflip import SubsetProblem, best_subset, datasets, prove
from pairflip.engines.cuda import device_name, why_unavailable
from pairflip.engines.numba.enumeration import enumerate_from
from pairflip.search.exhaustive import NO_PREFIX, Question, Workspaces, all_seconds, enumerate_supports

CPU_CASES = ((100, 5), (276, 4))  # N, k
DEVICE_CASES = ((100, 5), (100, 6), (100, 7), (276, 4), (276, 5), (401, 4), (700, 4), (4088, 3))
REACHED = (100, 276, 401, 700, 4088)
ROWS = 200
CPU_SECONDS, DEVICE_SECONDS = 20.0, 2.0
MINUTE, BRANCH_SECONDS = 60.0, 10.0


def asked(n_columns, k):
    """One planted problem whose first support is that of a quick search."""
    data = datasets.make_planted(N=n_columns, alpha=ROWS / n_columns, seed=0)
    problem = SubsetProblem(data.X, data.y)
    _ = problem.form.matrix
    first = best_subset(problem, k, effort="quick", seed=0, prove=False).best_energy
    return Question(problem.form, k, limit=2.0 * first)


def one_core(n_columns, k):
    """Supports per second on one core: of all, or where that takes long of those with the last column.

    The latter come in longer rows than the others, so that the core is shown faster than it is, if anything.
    """
    enumerate_supports(asked(12, k))
    question = asked(n_columns, k)
    room = Workspaces(question)
    first = 0 if all_seconds(question.form, k) < CPU_SECONDS else n_columns - 1
    began = time.perf_counter()
    with room.piece() as here:
        form = question.form.matrix, *here, question.form.yy, room.rounding
        enumerate_from(*form, first, n_columns, room.stop, NO_PREFIX)
    return (comb(n_columns, k) - comb(first, k)) / (time.perf_counter() - began)


def on_device(n_columns, k, most=DEVICE_SECONDS):
    """(share of all supports, seconds, supports that passed): all of them, or what so many seconds allow."""
    from pairflip.engines.cuda.enumeration import Enumeration

    question = asked(n_columns, k)
    room = Workspaces(question)
    Enumeration(question.form, k, room.rounding, slice_ns=1000).step(room.tighten())  # compiled, and awake
    began, passed = time.perf_counter(), 0
    device = Enumeration(question.form, k, room.rounding)
    while device.share < 1.0 and time.perf_counter() - began < most:
        passed += len(device.step(room.tighten()).supports)
    return device.share, time.perf_counter() - began, passed


def report():
    print("proof by enumeration, planted model, 200 rows, one core")
    for n_columns, k in CPU_CASES:
        print(f"  N = {n_columns}, k = {k}: {1e9 / one_core(n_columns, k):.2f} ns a support", flush=True)
    reason = why_unavailable()
    if reason is not None:
        print(f"enumeration on a device: not measured, {reason}")
    else:
        _report_device()
    _report_branches()


def _report_device():
    print(f"the same on {device_name()}; more than {DEVICE_SECONDS:g} s extrapolated from what was done then")
    print("     N   k   supports  device s  supports/s   one core   ratio  passed")
    for n_columns, k in DEVICE_CASES:
        share, seconds, passed = on_device(n_columns, k)
        total = comb(n_columns, k)
        rate, core = share * total / seconds, one_core(n_columns, k)
        print(f"{n_columns:6d}{k:4d}{total:11.2e}{seconds / share:10.3f}{rate:12.2e}{core:11.2e}", end="")
        print(f"{rate / core:8.0f}{passed:8d}", flush=True)
    print("largest k that takes less than a minute on the device, and what the next one takes")
    for n_columns in REACHED:
        k, before = 3, 0.0
        while True:
            share, seconds, _ = on_device(n_columns, k)
            if seconds > MINUTE * share:
                break
            k, before = k + 1, seconds / share
        print(f"  N = {n_columns}: k = {k - 1} ({before:.2g} s); k = {k}: {seconds / share:.3g} s", flush=True)


def _report_branches():
    print("branch and bound, one core: seconds")
    table = real_table("diabetes/diabetes_64.csv")
    if table is not None:
        _print_sizes("diabetes, 64 columns", SubsetProblem(*table), range(1, 13))
    for n_columns in (40, 60):
        data = datasets.make_planted(N=n_columns, alpha=1000 / n_columns, seed=0)
        _print_sizes(f"planted, {n_columns} columns, 1000 rows", SubsetProblem(data.X, data.y), range(1, n_columns + 1))


def _print_sizes(name, problem, sizes):
    prove(problem, 5, budget=BRANCH_SECONDS)  # compiled
    proofs = [prove(problem, k, budget=BRANCH_SECONDS) for k in sizes]
    slowest = max(proofs, key=lambda proof: proof.seconds)
    print(
        f"  {name}, k = {sizes[0]} to {sizes[-1]}: {sum(proof.seconds for proof in proofs):.2f} in all, "
        f"at most {slowest.seconds:.3f} (k = {slowest.k}); {sum(proof.optimal for proof in proofs)} proved",
        flush=True,
    )
