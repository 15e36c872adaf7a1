"""How often half-samples find the band or cluster of a true column, and how many clusters without effect pass.

`python -m benchmarks clusters` (some minutes on two cores; PAIRFLIP_DRAWS=5 for a look): X of real tables, spectra as
they are and their first derivatives, and genes; y is the sum of three of their columns, with random signs and noise, or
noise alone. A cluster is false if it has no true column. Where columns are correlated beyond their cluster, one without
effect may stand for one with an effect, so that the bounds promise nothing (*).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.signal import savgol_filter

from benchmarks.common import DATA, cells, draws, in_processes, mean_error
from pairflip import SubsetProblem, half_sample_stability
from pairflip.selection.stability import ALIKE, THRESHOLD, Finding

SIZE, PAIRS, R2 = 3, 50, 0.9


@dataclass(frozen=True)
class Design:
    """A real table, its first derivative along the columns or not, and how many of its columns matter."""

    path: str
    true: int
    derivative: bool = False
    fewer: int = 1  # times fewer draws than elsewhere, where a search takes long

    @property
    def name(self) -> str:
        """What the lines of the report call it."""
        table = self.path.split("/")[0] + (", derivative" if self.derivative else "")
        return f"{table}, {self.true} true *" if self.true else f"{table}, noise"

    def draw(self, seed: int) -> tuple[SubsetProblem, np.ndarray]:
        """A problem, and the columns that matter."""
        names, X = _table(self.path, self.derivative)
        rng = np.random.default_rng([35, seed, self.true])
        places = np.sort(rng.choice(X.shape[1], self.true, replace=False))
        signal = (X[:, places] / X[:, places].std(axis=0)) @ rng.choice([-1.0, 1.0], self.true)
        noise = np.sqrt(signal.var() * (1 - R2) / R2) if self.true else 1.0
        return SubsetProblem(X, signal + noise * rng.normal(size=len(X)), names=names), places


@lru_cache(maxsize=1)
def _table(path: str, derivative: bool) -> tuple[list[str], np.ndarray]:
    """Names and columns without the targets."""
    frame = pd.read_csv(DATA / path)
    frame = frame[[name for name in frame.columns if not name.startswith("target_")]]
    X = frame.to_numpy(dtype=np.float64)
    return list(frame.columns), savgol_filter(X, 11, 2, deriv=1, axis=1) if derivative else X


TABLES = [
    ("tecator/tecator.csv", False, 1),
    ("tecator/tecator.csv", True, 1),
    ("gasoline/gasoline.csv", False, 1),
    ("gasoline/gasoline.csv", True, 1),
    ("eyedata/eyedata.csv", False, 1),
    ("riboflavin/riboflavin.csv", False, 4),
    ("nci60_krt18/nci60_krt18.csv.gz", False, 20),
]
DESIGNS = [Design(path, true, derived, fewer) for path, derived, fewer in TABLES for true in (3, 0)]


def one(design: Design, seed: int) -> dict[str, list[float]]:
    """What half-samples of one table say about true columns, their clusters, and clusters that pass."""
    problem, true = design.draw(seed)
    halves = half_sample_stability(problem, SIZE, PAIRS, seed=seed, n_jobs=1)
    clusters, passing = halves.stable_clusters(0.0), halves.stable_clusters(THRESHOLD)
    false = [each for each in passing if not np.isin(each.members, true).any()]
    Z = (problem.X - problem.X.mean(axis=0)) / problem.X.std(axis=0)
    strange = [each for each in false if not (np.abs(Z[:, each.members].T @ Z[:, true]) >= ALIKE * len(Z)).any()]
    bound = halves.cluster_bound()
    return {
        "column": [halves.frequency(j) for j in true.tolist()],
        "cluster": [halves.cluster_frequency(_cluster_of(j, clusters)) for j in true.tolist()],
        "within": [
            float(each.columns.min() <= j <= each.columns.max())
            for each in passing
            for j in np.intersect1d(true, each.members).tolist()
        ],
        "passing": [len(passing)],
        "columns passing": [halves.passing().size],
        "false": [len(false)],
        "strange": [len(strange)],
        "bounds": [bound.r_concave, bound.worst_case],
    }


def _cluster_of(column: int, clusters: list[Finding]) -> np.ndarray:
    """Members of the cluster that a column is in, none where half-samples selected no such cluster."""
    return next((each.members for each in clusters if column in each.members), np.zeros(0, np.int64))


def report() -> None:
    """Print one line for each design."""
    seeds, began = draws(40), time.perf_counter()
    tasks = [(design, seed) for design in DESIGNS for seed in seeds[: max(2, len(seeds) // design.fewer)]]
    found = in_processes(one, tasks)
    print(
        f"clusters: {SIZE} columns in {2 * PAIRS} half-samples, R2 {R2}; means +- standard errors; "
        f"{time.perf_counter() - began:.0f} s"
    )
    heads = ["draws", "true column", "its cluster", "column 80 %", "cluster 80 %", "told range", "passing", "false"]
    print(f"{'':30}" + cells([*heads, "not alike", "r-concave", "worst case"], 15))
    for design in DESIGNS:
        records = [found[task] for task in tasks if task[0] == design]
        of = {name: np.concatenate([record[name] for record in records]) for name in records[0]}
        texts = [str(len(records))]
        if design.true:
            texts += [mean_error(of["column"]), mean_error(of["cluster"])]
            texts += [f"{np.mean(of[name] >= THRESHOLD - 1e-9):.2f}" for name in ("column", "cluster")]
            texts.append(f"{of['within'].mean():.2f}" if of["within"].size else "-")
        else:
            texts += ["-"] * 5
        texts += [mean_error(of[name]) for name in ("passing", "false", "strange")]
        texts += [f"{value:.3f}" for value in np.mean([record["bounds"] for record in records], axis=0)]
        print(f"{design.name:30}" + cells(texts, 15))
