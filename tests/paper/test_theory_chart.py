"""The chart of all solutions: no sign change on the grid is missed, and a line goes from one cell to the next."""

import itertools

import numpy as np
import pytest

from pairflip.paper.theory.chart import _zero_lines


def sign_changes(F):
    """Edges (axis, i, j) of the grid whose two ends have different signs."""
    positive = F > 0
    along = np.argwhere(positive[1:] != positive[:-1]), np.argwhere(positive[:, 1:] != positive[:, :-1])
    return {(axis, i, j) for axis, found in enumerate(along) for i, j in found.tolist()}


def cells(edge):
    """Lower corners of the two cells beside an edge."""
    axis, i, j = edge
    return {(i, j), (i, j - 1) if axis == 0 else (i - 1, j)}


@pytest.mark.parametrize("seed", range(20))
def test_lines_cross_every_edge_where_the_sign_changes(seed):
    F = np.random.default_rng(seed).normal(size=(12, 9))
    lines = [[tuple(edge) for edge in line.tolist()] for line in _zero_lines(F)]
    assert {edge for line in lines for edge in line} == sign_changes(F)
    for line in lines:
        assert all(cells(one) & cells(two) for one, two in itertools.pairwise(line))


def test_a_line_begins_and_ends_at_the_border_or_is_closed():
    i, j = np.meshgrid(np.arange(12.0), np.arange(9.0), indexing="ij")
    (circle,) = _zero_lines((i - 5.3) ** 2 + (j - 4.2) ** 2 - 9.0)
    assert circle[0].tolist() == circle[-1].tolist()
    (line,) = _zero_lines(i - 0.7 * j - 2.1)
    assert {0, 8} == {int(line[0, 2]), int(line[-1, 2])}


def test_extreme_values_stay_on_the_grid():
    F = np.full((4, 3), 1e300)
    F[:2] = -1e-300  # the crossing rounds to a corner
    (line,) = _zero_lines(F)
    assert (line[:, 1] + (line[:, 0] == 0) < 4).all()
    assert (line[:, 2] + (line[:, 0] == 1) < 3).all()
    assert _zero_lines(np.ones((4, 3))) == []
