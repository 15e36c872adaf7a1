"""`python -m benchmarks`: everything; name parts to run only those, for instance `python -m benchmarks speed`."""

import platform
import sys

import numba
import numpy as np

from benchmarks import crossval, gpu, honesty, optimality, speed, thermometers, threads, wide

PARTS = {
    "speed": speed.report,
    "threads": threads.report,
    "crossval": crossval.report,
    "gpu": gpu.report,
    "optimality": optimality.report,
    "honesty": honesty.report,
    "wide": wide.report,
    "million": wide.report_million,
    "thermometers": thermometers.report,
}
NAMED = ("honesty", "million", "thermometers")  # run only when named: long, large, or silent about speed

wanted = sys.argv[1:] or [name for name in PARTS if name not in NAMED]
unknown = [name for name in wanted if name not in PARTS]
if unknown:
    sys.exit(f"unknown benchmark {unknown[0]!r}; expected one of {', '.join(PARTS)}.")
print(f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}, {platform.machine()}")
for name in wanted:
    PARTS[name]()
