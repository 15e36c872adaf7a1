"""How many columns without effect pass a threshold of selection frequency, beside the bounds on their expected number.

`python -m benchmarks stability` (some minutes on two cores; PAIRFLIP_DRAWS=20 for a look). Tables are drawn again and
again; in those of noise every column is without effect, in planted ones all but the true columns are. In designs marked
* noise columns are not equally likely to be selected, so that the bounds promise nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from benchmarks.common import cells, draws, in_processes, mean_error
from pairflip import SubsetProblem, half_sample_stability, select_size
from pairflip.selection.stability import false_bound

SIZES = (1, 3, 6)
BOUNDS = "(r-concave bound, worst-case bound)"
THRESHOLDS = (0.6, 0.7, 0.8, 0.9)
PAIRS = 50
CHOSEN = 0
"""In place of a size: the one that a selection shows."""


@dataclass(frozen=True)
class Design:
    """M rows of N columns: correlation^|i - j| between neighbours, or the same between all; `true` columns matter.

    `r2` is the share of the target that these explain; `heavy`: values have heavy tails; `proxies`: beside each true
    column, which is measured badly, stands one without effect of its own that shows its value exactly.
    """

    name: str
    rows: int
    columns: int
    neighbours: float = 0.0
    common: float = 0.0
    true: int = 0
    r2: float = 0.0
    heavy: bool = False
    proxies: bool = False

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """A table and its target; the true columns come first, far from each other among neighbours."""
        rng = np.random.default_rng([27, seed, sum(self.name.encode())])
        X = rng.standard_t(3, (self.rows, self.columns)) if self.heavy else rng.normal(size=(self.rows, self.columns))
        for j in range(1, self.columns):
            X[:, j] = self.neighbours * X[:, j - 1] + np.sqrt(1 - self.neighbours**2) * X[:, j]
        X = np.sqrt(self.common) * rng.normal(size=(self.rows, 1)) + np.sqrt(1 - self.common) * X
        if not self.true:
            return X, rng.normal(size=self.rows)
        signal = X[:, self.places].sum(axis=1)
        noise = np.sqrt(np.var(signal) * (1 - self.r2) / self.r2)
        y = signal + noise * rng.normal(size=self.rows)
        if self.proxies:
            X[:, self.places + 1] = X[:, self.places]
            X[:, self.places] += rng.normal(size=(self.rows, self.true))
        return X, y

    @property
    def places(self) -> np.ndarray:
        """The columns that matter."""
        return np.arange(self.true) * (self.columns // max(1, self.true))


DESIGNS = (
    Design("noise, independent, 60 x 12", 60, 12),
    Design("noise, neighbours 0.8, 60 x 12", 60, 12, neighbours=0.8),
    Design("noise, all alike 0.5, 60 x 12", 60, 12, common=0.5),
    Design("noise, heavy tails, 40 x 12", 40, 12, heavy=True),
    Design("noise, independent, 60 x 50", 60, 50),
    Design("noise, neighbours 0.8, 60 x 50", 60, 50, neighbours=0.8),
    Design("noise, independent, 60 x 200", 60, 200),
    Design("3 true of 15, R2 0.6, 60 rows", 60, 15, true=3, r2=0.6),
    Design("3 true of 200, R2 0.8, 60 rows", 60, 200, true=3, r2=0.8),
    Design("3 true of 50, seen through others *", 60, 50, true=3, r2=0.6, proxies=True),
)
WITH_CHOICE = ("noise, independent, 60 x 12", "noise, independent, 60 x 50")
"""Designs in which the size is chosen, too."""


def one(design: Design, seed: int) -> dict[int, tuple[int, np.ndarray, np.ndarray]]:
    """By size: its number, and how many columns without effect and how many true ones reached each threshold."""
    X, y = design.draw(seed)
    problem = SubsetProblem(X, y)
    halves = half_sample_stability(problem, SIZES, PAIRS, seed=seed)
    found = {size: (size, *_passed(design, halves, size)) for size in SIZES}
    if design.name in WITH_CHOICE:
        curve = select_size(problem, range(1, 9), cv="10", seed=seed, stability=PAIRS, progress=False)
        size = curve.answer.shown
        found[CHOSEN] = (size, *_passed(design, curve.stability, size))
    return found


def _passed(design: Design, halves, size: int) -> tuple[np.ndarray, np.ndarray]:
    passing = [halves.passing(threshold, size) for threshold in THRESHOLDS]
    true = np.array([np.isin(columns, design.places[: design.true]).sum() for columns in passing])
    return np.array([columns.size for columns in passing]) - true, true


def line(design: Design, records: list[tuple[int, np.ndarray, np.ndarray]]) -> str:
    """Mean number of false columns with its standard error, and the mean of both bounds, at each threshold."""
    false = np.array([record[1] for record in records])
    bounds = [[false_bound(record[0], design.columns, PAIRS, t) for t in THRESHOLDS] for record in records]
    told = []
    for at in range(len(THRESHOLDS)):
        worst = np.mean([row[at].worst_case for row in bounds])
        concave = np.mean([row[at].r_concave for row in bounds])
        told.append(f"{mean_error(false[:, at], 3)} ({concave:5.3f}, {worst:5.2f})")
    true = np.mean([record[2] for record in records], axis=0)
    return cells(told, 34) + (f"   true {true[2]:.2f}" if design.true else "")


def report() -> None:
    """Print one line for each design and size."""
    seeds, began = draws(200), time.perf_counter()
    found = in_processes(one, [(design, seed) for seed in seeds for design in DESIGNS])
    print(
        f"stability: columns without effect selected in at least a fraction of {2 * PAIRS} half-samples, mean of "
        f"{len(seeds)} tables +- standard error {BOUNDS}; {time.perf_counter() - began:.0f} s"
    )
    print(f"{'':45}" + cells([f"threshold {t}" for t in THRESHOLDS], 34))
    for design in DESIGNS:
        for size in (*SIZES, CHOSEN):
            if size in found[design, seeds[0]]:
                records = [found[design, seed][size] for seed in seeds]
                label = f"q = {size}" if size else "q chosen"
                print(f"{design.name:38}{label:>7}" + line(design, records))


def _single(design: Design, seed: int) -> tuple[int, np.ndarray, np.ndarray]:
    halves = half_sample_stability(SubsetProblem(*design.draw(seed)), 1, PAIRS, seed=seed)
    return 1, *_passed(design, halves, 1)


def report_tight() -> None:
    """One column of 12, where the r-concave bound leaves least room: many tables, none of them among those above."""
    seeds = [10_000 + seed for seed in draws(1000)]
    found = in_processes(_single, [(design, seed) for design in (DESIGNS[0], DESIGNS[3]) for seed in seeds])
    print(f"stability, q = 1 of 12: mean of {len(seeds)} other tables +- standard error {BOUNDS}")
    print(f"{'':45}" + cells([f"threshold {t}" for t in THRESHOLDS], 34))
    for design in (DESIGNS[0], DESIGNS[3]):
        print(f"{design.name:45}" + line(design, [found[design, seed] for seed in seeds]))
