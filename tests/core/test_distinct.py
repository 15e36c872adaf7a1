"""Equal supports, against `numpy.unique`."""

import numpy as np
import pytest

from pairflip.supports import distinct_supports


@pytest.mark.parametrize("n", [0, 1, 2, 500])
@pytest.mark.parametrize("k", [0, 1, 3, 8, 40])
@pytest.mark.parametrize("columns", [2, 276, 1_000_000, 2**40])
def test_they_are_those_of_numpy(n, k, columns):
    rng = np.random.default_rng(n + k)
    pool = rng.integers(-1, columns, size=(60, k))
    pool[1::2, : k // 2] = pool[::2, : k // 2]  # equal at first
    supports = pool[rng.integers(0, 60, n)]
    found = distinct_supports(supports)
    if n and k:  # numpy.unique does not know rows without numbers
        expected = np.unique(supports, axis=0, return_index=True, return_inverse=True, return_counts=True)
        for ours, theirs in zip(found, expected, strict=True):
            assert np.array_equal(ours, theirs.reshape(ours.shape))
    assert np.array_equal(found.supports[found.which], supports)
    assert found.counts.sum() == n
    assert len(found.supports) == (min(n, 1) if not k else len({row.tobytes() for row in supports}))


def test_supports_that_differ_in_one_of_many_columns_are_told_apart():
    supports = np.tile(np.arange(8), (4, 1))
    supports[1, 7] = 275
    supports[2, 6] = 275
    assert distinct_supports(supports).which.tolist() == [0, 1, 2, 0]
