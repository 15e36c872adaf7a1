"""The paper's negative result (section III): the fixed-support LOO error, annealed, falls with K and finds nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairflip.datasets import PlantedTable
from pairflip.least_squares import Floats
from pairflip.paper.reproduce.fixed_support import anneal_loo, loo_energy
from pairflip.paper.reproduce.problems import SCHEDULE, draw_all
from pairflip.paper.reproduce.scales import RunScale
from pairflip.paper.reproduce.verdict import Claim, mean_and_bar


@dataclass(frozen=True, eq=False)
class FixedSupport:
    """Annealings of E_loo on n problems with alpha rows per column, at S sizes."""

    alpha: float
    N: int
    sizes: tuple[int, ...]
    true_sizes: Floats  # (n,): number of true columns
    loo_error: Floats  # (n, S): the lowest E_loo / M at each size
    at_truth: Floats  # (n,): E_loo / M of the true support itself
    true_share: Floats  # (n,): true columns among those selected at the size nearest to their number


def collect(scale: RunScale, seed: int, n_jobs: int | None) -> list[FixedSupport]:
    """Anneal the fixed-support error E_loo for every problem, size and number of rows."""
    from joblib import Parallel, delayed

    N, count, chains = scale.loo_objective

    def one(drawn: PlantedTable, k: int, chain_seed: int) -> tuple[float, float]:
        support, energy = anneal_loo(drawn.X, drawn.y, k, SCHEDULE, chains, chain_seed)
        return energy / drawn.y.size, np.intersect1d(support, drawn.support).size / max(drawn.support.size, 1)

    results = []
    for alpha in scale.loo_alphas:
        problems = draw_all(N, count, seed, alpha)
        sizes = tuple(k for k in scale.loo_sizes if k < min(N, alpha * N - 1))
        jobs = (delayed(one)(sample.drawn, k, sample.seed) for sample in problems for k in sizes)
        annealed = Parallel(n_jobs=n_jobs, prefer="threads")(jobs)
        error, share = np.array(annealed).reshape(count, len(sizes), 2).transpose(2, 0, 1)
        tables = [sample.drawn for sample in problems]
        truth = [loo_energy(t.X, t.y, t.support) / t.y.size if t.support.size else np.nan for t in tables]
        true = np.array([t.support.size for t in tables], dtype=float)
        nearest = np.argmin(np.abs(np.asarray(sizes)[None, :] - true[:, None]), axis=1)
        share = share[np.arange(count), nearest]
        results.append(FixedSupport(alpha, N, sizes, true, error, np.array(truth), share))
    return results


def table(results: Sequence[FixedSupport]) -> list[dict[str, Any]]:
    """Rows of section3.csv."""
    rows = []
    for each in results:
        mean, bar = mean_and_bar(each.loo_error)
        truth, truth_bar = mean_and_bar(each.at_truth)
        for at, k in enumerate(each.sizes):
            rows.append(
                {
                    "N": each.N,
                    "rows_per_column": each.alpha,
                    "k": k,
                    "problems": each.loo_error.shape[0],
                    "fixed_support_loo_error": mean[at],
                    "error_bar": bar[at],
                    "at_true_support": float(truth),
                    "at_true_support_bar": float(truth_bar),
                    "true_columns": float(each.true_sizes.mean()),
                }
            )
    return rows


def no_clue(results: Sequence[FixedSupport]) -> Claim:
    """The paper: minimizing the fixed-support error neither finds the true columns nor their number."""
    rows, holds = [], True
    for each in results:
        lowest = np.asarray(each.sizes)[np.argmin(each.loo_error, axis=1)]
        excess, bar = mean_and_bar(lowest - each.true_sizes)
        ratio, ratio_bar = mean_and_bar(each.loo_error[:, -1] / each.at_truth)
        whole = float(np.mean(each.true_share == 1.0))
        holds = holds and float(excess) > 0 and float(ratio) < 1.0 and whole < 0.5
        rows.append(
            {
                "rows_per_column": each.alpha,
                "mean_true_columns": float(each.true_sizes.mean()),
                "mean_size_of_lowest": float(lowest.mean()),
                "columns_beyond_the_truth": float(excess),
                "columns_beyond_the_truth_bar": float(bar),
                "largest_size_over_truth": float(ratio),
                "largest_size_over_truth_bar": float(ratio_bar),
                "falls_over_all_sizes": bool(np.all(np.diff(each.loo_error.mean(axis=0)) <= 0)),
                "true_columns_found": float(np.mean(each.true_share)),
                "problems_with_all_true_columns_found": whole,
            }
        )
    text = "; ".join(
        f"M/N = {row['rows_per_column']:g}: lowest at {row['mean_size_of_lowest']:.1f} columns, "
        f"{row['mean_true_columns']:.1f} are true, of which {row['true_columns_found']:.0%} are found"
        for row in rows
    )
    return Claim(
        "fixed_support_no_clue",
        "Annealed, the fixed-support LOO error falls with K, whatever the truth, and does not find the true columns.",
        bool(holds and rows),
        "For every M/N: the size with the lowest error is on average beyond the number of true columns, the error at "
        "the largest size is below that of the true support itself, and at the size nearest to the truth fewer than "
        " half of the problems have all true columns.",
        text,
        {"results": rows},
    )
