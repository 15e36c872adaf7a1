"""Find the few columns of a table that predict a target, how many to keep, and how sure that is.

A Monte Carlo walk over supports (sets of k columns) flips a pair of columns at a time and is cooled
down (Obuchi & Kabashima 2016). Importing this package loads numpy only; everything else loads on
first use.
"""

TYPE_CHECKING = False  # of typing, which takes longer to load than the rest: Ctrl-C is ours only from then on

__version__ = "0.3.0"

_HOME = {
    "SubsetRegressor": "estimators",
    "SubsetRegressorCV": "estimators",
    "SubsetClassifier": "estimators",
    "SubsetClassifierCV": "estimators",
    "BayesianSubsetRegressor": "estimators",
    "Comparison": "comparison",
    "Law": "features",
    "Moments": "blocks",
    "Posterior": "search.posterior",
    "Proof": "search.prove",
    "Samples": "search.sampling",
    "Schedule": "search.schedule",
    "Selection": "selection",
    "SizeCurve": "selection",
    "Stability": "selection",
    "SubsetProblem": "problem",
    "Trace": "search.best_subset",
    "anneal": "search.best_subset",
    "best_subset": "search.best_subset",
    "compare": "comparison",
    "find_law": "features",
    "half_sample_stability": "selection",
    "posterior": "search.posterior",
    "prove": "search.prove",
    "sample": "search.sampling",
    "select_size": "selection",
    "temper": "search.sampling",
    "write_report": "report",
}
_FORMER = {  # names of version 0.2, which leave with 0.4
    "AnnealedSubset": "SubsetRegressor",
    "AnnealedSubsetCV": "SubsetRegressorCV",
    "AnnealedSubsetClassifier": "SubsetClassifier",
    "AnnealedSubsetClassifierCV": "SubsetClassifierCV",
    "BayesianSubset": "BayesianSubsetRegressor",
}
_MODULES = ("datasets", "features", "figures", "preprocessing", "testing", "theory")

__all__ = [
    "BayesianSubsetRegressor",
    "Comparison",
    "Law",
    "Moments",
    "Posterior",
    "Proof",
    "Samples",
    "Schedule",
    "Selection",
    "SizeCurve",
    "Stability",
    "SubsetClassifier",
    "SubsetClassifierCV",
    "SubsetProblem",
    "SubsetRegressor",
    "SubsetRegressorCV",
    "Trace",
    "anneal",
    "best_subset",
    "compare",
    "datasets",
    "features",
    "figures",
    "find_law",
    "half_sample_stability",
    "posterior",
    "preprocessing",
    "prove",
    "sample",
    "select_size",
    "temper",
    "testing",
    "theory",
    "write_report",
]

if TYPE_CHECKING:
    from typing import Any

    from pairflip import datasets, features, figures, preprocessing, testing, theory
    from pairflip.blocks import Moments
    from pairflip.comparison import Comparison, compare
    from pairflip.estimators import (
        BayesianSubsetRegressor,
        SubsetClassifier,
        SubsetClassifierCV,
        SubsetRegressor,
        SubsetRegressorCV,
    )
    from pairflip.features import Law, find_law
    from pairflip.problem import SubsetProblem
    from pairflip.report import write_report
    from pairflip.search.best_subset import Trace, anneal, best_subset
    from pairflip.search.posterior import Posterior, posterior
    from pairflip.search.prove import Proof, prove
    from pairflip.search.sampling import Samples, sample, temper
    from pairflip.search.schedule import Schedule
    from pairflip.selection import Selection, SizeCurve, Stability, half_sample_stability, select_size


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in _FORMER:
        from warnings import warn

        warn(f"pairflip.{name} is called pairflip.{_FORMER[name]} now.", FutureWarning, stacklevel=2)
        return getattr(import_module("pairflip.estimators"), _FORMER[name])
    if name in _HOME:
        value = getattr(import_module(f"pairflip.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"pairflip.{name}")
    else:
        raise AttributeError(f"module 'pairflip' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
