r"""The paper's negative result (section III): the fixed-support LOO error, annealed, falls with K and finds nothing.

What is annealed is (the paper's LOOE2 times M)

.. math:: E_\mathrm{loo}(S) = \tfrac12 \sum_\mu \left(\frac{e_\mu}{1 - h_\mu}\right)^2 .

This is half the sum of squared errors at each row of the fit of the *same* support on all other rows; e are the
residuals on all rows, and h is the diagonal of the hat matrix of the columns of S.

A flip is evaluated in O(M k) from the dual vectors :math:`A_l` of the support (in its span, with
:math:`A_l \cdot X_m = \delta_{lm}`). Slot i alone contributes the direction :math:`a = A_i` to the span. An entering
column j contributes :math:`q = X_j - \sum_l G_{lj} A_l + a \, (a \cdot X_j) / |a|^2`, the part of it that the other
slots do not explain. So :math:`e_\mu` becomes :math:`e_\mu + a_\mu (a \cdot y) / |a|^2 - q_\mu (q \cdot y) / |q|^2`,
and :math:`h_\mu` becomes :math:`h_\mu - a_\mu^2 / |a|^2 + q_\mu^2 / |q|^2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.compiled import entry, kernel
from pairflip.datasets import PlantedTable
from pairflip.least_squares import SINGULAR, Floats
from pairflip.paper.reproduce.problems import SCHEDULE, draw_all
from pairflip.paper.reproduce.scales import RunScale
from pairflip.paper.reproduce.verdict import Claim, mean_and_bar
from pairflip.philox import chain_keys, flip_draws, start_order
from pairflip.search.schedule import Schedule

SATURATED = 1e-8
"""A row whose leverage exceeds 1 - SATURATED dictates its own fit: it has no leave-one-out error."""


def loo_energy(X: Floats, y: Floats, support: NDArray[np.int64]) -> float:
    """E_loo of some columns of X (M, N) by QR; infinite when they are singular or make some row's leverage 1."""
    columns = X[:, support] / np.linalg.norm(X[:, support], axis=0)
    Q, R = np.linalg.qr(columns)
    rest = 1.0 - np.einsum("ml,ml->m", Q, Q)
    if np.min(np.abs(np.diag(R))) ** 2 <= SINGULAR or np.min(rest) <= SATURATED:
        return float("inf")
    left_out = (y - Q @ (Q.T @ y)) / rest
    return 0.5 * float(left_out @ left_out)


def anneal_loo(
    X: Floats, y: Floats, k: int, schedule: Schedule, chains: int, seed: int
) -> tuple[NDArray[np.int64], float]:
    """Sorted support (k,) with the lowest E_loo that annealing found, and that energy by QR."""
    n = X.shape[1]
    columns = np.ascontiguousarray((X / np.linalg.norm(X, axis=0)).T)
    G, betas, flips = columns @ columns.T, np.array(schedule.betas), schedule.flips(n)
    ends = []
    for key in chain_keys(seed, k, None, np.arange(chains)):
        draws = flip_draws(key, 0, int(flips.sum()), k, n - k)
        support = np.sort(_walk(columns, G, y, k, start_order(key, n), betas, flips, *draws)[0])
        ends.append((loo_energy(X, y, support), support))
    energy, support = min(ends, key=lambda each: each[0])
    return support, energy


@entry
def _walk(
    X: Any, G: Any, y: Any, k: Any, order: Any, betas: Any, flips: Any, slots: Any, positions: Any, uniforms: Any
) -> Any:
    """The support (k,) of the lowest E_loo that a chain met on columns X (N, M) of norm 1, and that E_loo."""
    A, e, h, q = np.empty((k, y.size)), np.empty(y.size), np.empty(y.size), np.empty(y.size)
    t, best = 0, order[:k].copy()
    energy = lowest = _rebuild(X, G, y, order, A, e, h, q)
    for step in range(betas.size):
        for _ in range(flips[step]):
            i, place, u = slots[t], k + positions[t], uniforms[t]
            t += 1
            proposed = _after_flip(X, G, y, order, A, e, h, q, i, order[place])
            if not u <= np.exp(-betas[step] * max(proposed - energy, 0.0)):
                continue
            order[i], order[place] = order[place], order[i]
            _empty(y, A, e, h, q, i)
            _fill(X, G, y, order, A, e, h, q, i)
            energy = proposed
            if energy < lowest:
                lowest = energy
                for l in range(k):
                    best[l] = order[l]
        energy = _rebuild(X, G, y, order, A, e, h, q)  # ends the rounding of the flips so far
    return best, lowest


@kernel
def _rebuild(X: Any, G: Any, y: Any, order: Any, A: Any, e: Any, h: Any, q: Any) -> Any:
    """Dual vectors A (k, M), residuals e and leverages h of the support, slot by slot; returns E_loo."""
    energy = 0.0
    for m in range(y.size):
        e[m], h[m] = y[m], 0.0
        for l in range(A.shape[0]):
            A[l, m] = 0.0
    for i in range(A.shape[0]):
        _fill(X, G, y, order, A, e, h, q, i)
    for m in range(y.size):
        energy += (e[m] / (1.0 - h[m])) ** 2
    return 0.5 * energy


@kernel
def _fill(X: Any, G: Any, y: Any, order: Any, A: Any, e: Any, h: Any, q: Any, i: Any) -> None:
    """Let column order[i] into slot i, whose dual vector is zero."""
    j = order[i]
    for m in range(y.size):
        q[m] = X[j, m]
    for l in range(A.shape[0]):
        g = G[order[l], j]
        for m in range(y.size):
            q[m] -= g * A[l, m]
    norm = _turn(y, e, h, q, 1.0)
    for l in range(A.shape[0]):
        seen = 1.0 if l == i else 0.0
        for m in range(y.size):
            seen -= A[l, m] * X[j, m]
        seen /= norm
        for m in range(y.size):
            A[l, m] += q[m] * seen


@kernel
def _empty(y: Any, A: Any, e: Any, h: Any, q: Any, i: Any) -> None:
    """Let the column in slot i leave; its dual vector becomes zero."""
    for m in range(y.size):
        q[m] = A[i, m]
    _turn(y, e, h, q, -1.0)
    for l in range(A.shape[0]):
        along = 0.0
        for m in range(y.size):
            along += A[l, m] * q[m]
        for m in range(y.size):
            A[l, m] -= q[m] * along


@kernel
def _turn(y: Any, e: Any, h: Any, q: Any, sign: Any) -> Any:
    """Add (sign 1) the direction q to the span, or remove it (-1); q gets norm 1, and its norm is returned."""
    norm, y_part = 0.0, 0.0
    for m in range(y.size):
        norm += q[m] * q[m]
    norm = norm**0.5
    for m in range(y.size):
        q[m] /= norm
        y_part += q[m] * y[m]
    for m in range(y.size):
        e[m] -= sign * y_part * q[m]
        h[m] += sign * q[m] * q[m]
    return norm


@kernel
def _after_flip(X: Any, G: Any, y: Any, order: Any, A: Any, e: Any, h: Any, q: Any, i: Any, j: Any) -> Any:
    """E_loo with column j in slot i, in O(M k); infinite where it is singular or has a row of leverage 1."""
    a, p, w, a_y, s, q_y = A[i], 0.0, 0.0, 0.0, 0.0, 0.0
    for m in range(y.size):
        q[m] = X[j, m]
        p += a[m] * a[m]
        w += a[m] * X[j, m]
        a_y += a[m] * y[m]
    for l in range(A.shape[0]):
        g = G[order[l], j] - (w / p if l == i else 0.0)
        for m in range(y.size):
            q[m] -= g * A[l, m]
    for m in range(y.size):
        s += q[m] * q[m]
        q_y += q[m] * y[m]
    if s <= SINGULAR:
        return np.inf
    out, into, a_scale, q_scale, energy, saturated = a_y / p, q_y / s, 1.0 / p, 1.0 / s, 0.0, 0
    for m in range(y.size):
        rest = 1.0 - h[m] + a[m] * a[m] * a_scale - q[m] * q[m] * q_scale
        saturated += rest <= SATURATED
        left_out = (e[m] + a[m] * out - q[m] * into) / rest
        energy += left_out * left_out
    return np.inf if saturated else 0.5 * energy


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
