"""The demonstration: how many columns of a real table to keep, by repeated cross validation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pairflip.datasets import load_diabetes_products
from pairflip.problem import SubsetProblem
from pairflip.selection import select_size
from pairflip.selection.folds import DEFAULT_CV
from pairflip.selection.settings import DEFAULT_STABILITY
from pairflip.tables import Table
from pairflip.text import row_numbers

if TYPE_CHECKING:
    from pairflip.selection import SizeCurve


def demo_table() -> Table:
    """Diabetes progression with all squares and products of the measurements (442 x 64), as `read_table` would give it.

    The measurements come with scikit-learn; nothing is downloaded.
    """
    data = load_diabetes_products()
    return Table(data.X, data.y, data.names, row_numbers(len(data.y)), target="diabetes progression", source="diabetes")


def run_demo(
    table: Table, sizes: Iterable[int], seed: int = 0, n_jobs: int | None = -1, progress: Any = None
) -> SizeCurve:
    """Choose the number of columns of the table, by ten folds that are drawn five times."""
    problem = SubsetProblem(table.X, table.y, names=table.names)
    return select_size(
        problem, sizes, cv=DEFAULT_CV, seed=seed, stability=DEFAULT_STABILITY, n_jobs=n_jobs, progress=progress
    )
