"""What a second core gives: the same chains in one thread and in two."""

from benchmarks.speed import best_time, prepare
from pairflip import Schedule
from pairflip.engines import WalkPlan
from pairflip.engines.numba import NumbaEngine
from pairflip.philox import chain_keys


def time_case(n_columns, n_rows, k, chains):
    form, _ = prepare(n_columns, n_rows)
    schedule = Schedule.paper()
    plan = WalkPlan(k, schedule.absolute_betas(1.0), schedule.flips(n_columns), chain_keys(0, k, None, range(chains)))
    engine = NumbaEngine()
    one, _ = best_time(lambda: engine.walk([(form, plan)]))
    two, _ = best_time(lambda: engine.walk([(form, plan)], n_jobs=2))
    return one, two


def report():
    print("\nThreads over chains (Schedule.paper())")
    for n_columns, n_rows, k, chains in ((276, 78, 5, 256), (400, 200, 20, 32)):
        one, two = time_case(n_columns, n_rows, k, chains)
        print(
            f"N = {n_columns}, k = {k}: one thread {one:.3f} s, two {two:.3f} s, {one / two:.2f} x (aim 1.8)",
            flush=True,
        )
