"""The compiled judge of nearly dependent columns decides like the one in NumPy."""

import numpy as np
import pytest

from pairflip import SubsetProblem
from pairflip.engines.numba.judging import Judge


def nearly_dependent(rng):
    """Copies with a little noise, sums of others, and whole numbers: every way to be nearly singular."""
    A = rng.integers(-2, 3, (40, 8)).astype(float)
    noise = rng.normal(size=(40, 8))
    close = [A + scale * noise for scale in (1e-6, 1e-4, 1e-2)]
    return np.hstack([A, A[:, :4] + A[:, 4:], *close]), rng.normal(size=40)


@pytest.mark.parametrize("seed", range(6))
def test_the_compiled_judge_decides_like_the_other_one(seed):
    """From random supports, with and without a list, until well conditioned or at a minimum."""
    rng = np.random.default_rng(seed)
    gram = SubsetProblem(*nearly_dependent(rng)).gram
    compiled, other = Judge(gram), Judge(gram)
    assert compiled.compiled
    other.compiled = False
    seen = 0
    while seen < 12:
        k = int(rng.integers(2, 7))
        support = np.sort(rng.choice(gram.n_columns, k, replace=False))
        if not np.isfinite(gram.energy(support)):
            continue
        seen += 1
        outside = np.setdiff1d(np.arange(gram.n_columns), support)
        few = np.column_stack([rng.integers(0, k, 5), np.sort(rng.choice(outside, 5))])
        # (An inflation above 1e8 is beyond what either can tell to TIE y'y.)
        for asked, listed, calm in ((False, None, 1e3), (True, None, 1e9), (True, few, 1e4), (False, None, 0.0)):
            ours, low = compiled.descend(support, calm, asked=asked, listed=listed)
            theirs, literal = other.descend(support, calm, asked=asked, listed=listed)
            np.testing.assert_array_equal(np.sort(ours), np.sort(theirs))
            assert (low is None) == (literal is None)
            if low is not None:
                np.testing.assert_allclose(low, literal, rtol=1e-9, atol=1e-13 * gram.yy)
