"""Lines along which a function on a grid changes sign."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

Edge = tuple[int, int, int]
"""(axis, i, j): the edge of the grid from the corner (i, j) to the next one along `axis`."""


def zero_lines(values: NDArray[np.float64]) -> list[list[Edge]]:
    """Where `values` (n, m) changes sign: chains of grid edges, each next to the one before it.

    A chain begins and ends at the border of the grid, unless it is closed. In a cell all of whose edges are crossed
    the sign of its mean says which crossings belong together.
    """
    positive = values > 0
    crossed = (positive[1:, :] != positive[:-1, :], positive[:, 1:] != positive[:, :-1])
    links: dict[Edge, list[Edge]] = defaultdict(list)
    many = crossed[0][:, :-1].astype(int) + crossed[0][:, 1:] + crossed[1][:-1, :] + crossed[1][1:, :]
    for i, j in np.argwhere(many > 0).tolist():
        around: list[Edge] = [(0, i, j), (1, i + 1, j), (0, i, j + 1), (1, i, j)]
        here = [edge for edge in around if crossed[edge[0]][edge[1], edge[2]]]
        if len(here) == 4:
            mean = values[i : i + 2, j : j + 2].mean() > 0
            first = here if mean != positive[i, j] else here[1:] + here[:1]
            # The corner (i, j) lies between the last edge and the first: cut it off when its sign is not the mean's.
            pairs = [(first[3], first[0]), (first[1], first[2])]
        else:
            pairs = [(here[0], here[1])]
        for one, other in pairs:
            links[one].append(other)
            links[other].append(one)
    return _chains(links)


def _chains(links: dict[Edge, list[Edge]]) -> list[list[Edge]]:
    lines: list[list[Edge]] = []
    seen: set[Edge] = set()
    for start in sorted(links, key=lambda edge: (len(links[edge]), edge)):
        if start in seen:
            continue
        line, here = [start], start
        seen.add(start)
        while True:
            onward = [edge for edge in links[here] if edge not in seen]
            if not onward:
                break
            here = onward[0]
            seen.add(here)
            line.append(here)
        if len(line) > 2 and line[0] in links[line[-1]]:
            line.append(line[0])
        lines.append(line)
    return lines
