"""Orthogonal matching pursuit (scikit-learn's): the column most correlated with the residual is added each time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pairflip.comparison.registry import Peer, Supports
from pairflip.comparison.training import Training
from pairflip.least_squares import Floats


def omp(columns: Floats, target: Floats, sizes: Sequence[int]) -> dict[int, NDArray[np.int64]]:
    """Supports by size, all from one path; sizes after columns that depend on those chosen before are missing."""
    from sklearn.linear_model import orthogonal_mp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # dependent columns end the path
        path = orthogonal_mp(columns, target, n_nonzero_coefs=max(sizes), return_path=True)
    path = path.reshape(columns.shape[1], -1)
    steps = [np.flatnonzero(path[:, k - 1]) for k in sizes if k <= path.shape[1]]
    return {support.size: support for support in steps}


def _find(training: Training, sizes: Sequence[int]) -> Supports:
    return omp(training.columns, training.target, sizes)


OMP = Peer("omp", "OMP", "Orthogonal matching pursuit: adds the column most correlated with the residual.", find=_find)
