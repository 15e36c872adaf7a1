"""`python -m benchmarks`: everything; name parts to run only those, for instance `python -m benchmarks speed`."""

import platform
import sys
from functools import partial

import numba
import numpy as np

from benchmarks import (
    anytime,
    chosen,
    classes,
    complete,
    crossval,
    effective,
    gpu,
    gpu_classes,
    honesty,
    leave_one_out,
    optimality,
    peers,
    prove,
    ridge_bound,
    several,
    shrinkage,
    speed,
    stability,
    tall,
    temperature,
    thermometers,
    threads,
    wide,
)

PARTS = {
    "speed": speed.report,
    "threads": threads.report,
    "crossval": crossval.report,
    "gpu": gpu.report,
    "gpu-classes": gpu_classes.report,
    "optimality": optimality.report,
    "honesty": honesty.report,
    "chosen": chosen.report,
    "classes": classes.report,
    "classes-honesty": classes.report_honesty,
    "classes-clusters": classes.report_clusters,
    "complete": complete.report,
    "intervals": honesty.report_intervals,
    "stability": stability.report,
    "tight": stability.report_tight,
    "wide": wide.report,
    "million": wide.report_million,
    "thermometers": thermometers.report,
    "anytime": anytime.report,
    "loo": leave_one_out.report,
    "tall": tall.report,
    "peers": peers.report,
    "prove": prove.report,
    "shrinkage": shrinkage.report,
    "shrinkage-simulated": shrinkage.report_simulated,
    "ridge-bound": ridge_bound.report,
    "several": several.report,
    "temperature": temperature.report,
    "hits": temperature.report_hits,
    "averaging": temperature.report_averaging,
    "ess": effective.report,
}
NAMED = (
    "honesty",
    "chosen",
    "classes",
    "classes-honesty",
    "classes-clusters",
    "complete",
    "intervals",
    "stability",
    "tight",
    "gpu-classes",
    "million",
    "thermometers",
    "anytime",
    "loo",
    "peers",
    "prove",
    "shrinkage",
    "shrinkage-simulated",
    "ridge-bound",
    "several",
    "hits",
    "averaging",
    "ess",
    "temperature",
)  # only when named: long, large, or silent about speed

given = sys.argv[1:]
if given in (["anytime", "quick"], ["anytime", "again"]):
    PARTS["anytime"] = partial(anytime.report, given.pop())
wanted = given or [name for name in PARTS if name not in NAMED]
unknown = [name for name in wanted if name not in PARTS]
if unknown:
    sys.exit(f"unknown benchmark {unknown[0]!r}; expected one of {', '.join(PARTS)}.")
print(f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}, {platform.machine()}")
for name in wanted:
    PARTS[name]()
