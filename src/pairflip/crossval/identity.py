"""What determines a result: the data and the settings, named so that two runs can be compared."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from pairflip.crossval.tasks import Work
from pairflip.problem import SubsetProblem


def data_hash(problem: SubsetProblem) -> str:
    """SHA-256 of names, X, y and weights."""
    digest = hashlib.sha256()
    for name in problem.names:
        digest.update(name.encode("utf-8", "surrogatepass") + b"\0")
    for array in (np.array(problem.X.shape), problem.X, problem.y, problem.sample_weight):
        kind = "<i8" if array.dtype.kind == "i" else "<f8"
        digest.update(np.ascontiguousarray(array, dtype=kind).data)
    return digest.hexdigest()


_EXTENT = ("sizes", "chains", "final_chains", "polish")
"""How much is walked and what is done afterwards: a chain depends on its own (seed, size, fold, chain) only."""


def identity(work: Work) -> dict[str, Any]:
    """What a journal's manifest says: everything that a chain depends on beside its address.

    Sizes and numbers of chains are left out, so a journal can be extended by more of them, or used for fewer.
    """
    return {
        "data": data_hash(work.problem),
        "rows": work.problem.n_rows,
        "columns": work.problem.n_columns,
        **{name: value for name, value in work.settings.items() if name not in _EXTENT},
        "folds": work.folds.hash,
    }
