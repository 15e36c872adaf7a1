"""`python -m benchmarks`: the short ones; name some to run only those, for instance `python -m benchmarks speed`."""

import platform
import sys
from functools import partial
from importlib import import_module

import numba
import numpy as np

SHORT = ("speed", "crossval", "gpu", "optimality", "wide", "tall")
LONG = {  # only when named: long, large, or silent about speed
    "anytime": "anytime",
    "averaging": "temperature.report_averaging",
    "chosen": "chosen",
    "classes": "classes",
    "classes-clusters": "classes.report_clusters",
    "classes-honesty": "classes.report_honesty",
    "clusters": "clusters",
    "commands": "commands",
    "complete": "complete",
    "designs": "designs",
    "designs-table": "designs.show",
    "ess": "effective",
    "honesty": "honesty",
    "honesty-clusters": "honesty.report_clusters",
    "imputation": "imputation",
    "intervals": "honesty.report_intervals",
    "laws": "laws",
    "loo": "leave_one_out",
    "million": "wide.report_million",
    "peers": "peers",
    "prediction": "prediction",
    "prediction-classes": "prediction.report_classes",
    "prediction-tables": "prediction.report_tables",
    "prediction-words": "prediction.report_words",
    "preprocessing": "preprocessing",
    "prove": "prove",
    "rules": "rules",
    "sparse": "sparse",
    "stability": "stability",
    "seeds": "seeds",
    "noise": "seeds.noise",
    "sindy": "sindy",
    "standard-errors": "rules.report_standard_errors",
    "temperature": "temperature",
    "scale": "scale",
    "scale-figure": "scale.figure",
    "tasks": "tasks",
    "tasks-table": "tasks.show",
    "thermometers": "thermometers",
    "streams": "streams",
    "streams-intervals": "streams.report_intervals",
    "tight": "stability.report_tight",
}
PARTS = {name: name for name in SHORT} | LONG


def report_of(name, *arguments):
    """The function that runs a benchmark and prints its numbers."""
    module, _, function = PARTS[name].partition(".")
    return partial(getattr(import_module(f"benchmarks.{module}"), function or "report"), *arguments)


if __name__ == "__main__":
    given = sys.argv[1:]
    how = [given.pop()] if given in (["anytime", "quick"], ["anytime", "again"]) else []
    unknown = [name for name in given if name not in PARTS]
    if unknown:
        sys.exit(f"unknown benchmark {unknown[0]!r}; expected one of {', '.join(sorted(PARTS))}.")
    print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}, {platform.machine()}"
    )
    for name in given or SHORT:
        report_of(name, *how)()
