"""Figure 1: epsilon against temperature while cooling, beside the theory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from pairflip.least_squares import Floats
from pairflip.paper.reproduce import over_size
from pairflip.paper.reproduce.finite_sample import factors
from pairflip.paper.reproduce.problems import SCHEDULE, Annealed
from pairflip.paper.reproduce.scales import SHOWN, sizes_of
from pairflip.paper.reproduce.verdict import BARS, Claim, extrapolate, mean_and_bar, shown

EXACT, CELL, LAG, ENOUGH = 0.02, 0.04, 0.2, 0.03
BANDS = (0.0, 0.05, 1 / 6, 0.5)
"""Edges in beta / beta_AT of the bands in which theory and annealing are compared."""
BETAS = np.array(SCHEDULE.betas)


@dataclass(frozen=True, eq=False)
class CoolingCurve:
    """One curve of the figure: n problems at the T temperatures of the schedule, of which W lie above T_AT."""

    N: int
    k: int
    rho: float
    epsilon: Floats  # (n, T)
    theory: Floats  # (T,)
    at_beta: float  # of the AT point
    deviation: Floats  # (n, W): epsilon over that of the theory with each problem's own coefficients, minus 1

    def in_band(self, low: float, high: float) -> Floats:
        """(n,): mean deviation where beta / beta_AT is above `low` and at most `high`."""
        steps = (low * self.at_beta < BETAS) & (high * self.at_beta >= BETAS)
        return np.asarray(self.deviation[:, steps[: self.deviation.shape[1]]].mean(axis=1))


def collect(annealed: Sequence[Annealed], n_jobs: int | None = None) -> list[CoolingCurve]:
    """The curves at the sizes of the figure for every N."""
    cells = [(each, k) for each in annealed for k in sizes_of(SHOWN, each.N)]
    return list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(_curve)(each, k) for each, k in cells))


def _curve(annealed: Annealed, k: int) -> CoolingCurve:
    """One curve; factors are solved at every fourth temperature and interpolated between them."""
    alpha, rho = annealed.M / annealed.N, k / annealed.N
    at_beta = over_size.theory_at(rho, alpha).at_beta
    warm = int(np.sum(at_beta > BETAS))
    solved = np.unique(np.append(np.arange(0, warm, 4), warm - 1))
    sparse = factors(annealed.problems, tuple(BETAS[solved].tolist()), rho, alpha).epsilon
    factor = np.stack([np.interp(np.arange(warm), solved, row) for row in sparse])
    epsilon = annealed.cooling[:, annealed.sizes.index(k)]
    theory = over_size.cooling(BETAS, rho, alpha)
    deviation = epsilon[:, :warm] / (factor * theory[:warm]) - 1.0
    return CoolingCurve(annealed.N, k, rho, epsilon, theory, at_beta, deviation)


def table(curves: Sequence[CoolingCurve]) -> list[dict[str, Any]]:
    """Rows of fig1.csv."""
    rows = []
    for curve in curves:
        mean, bar = mean_and_bar(curve.epsilon)
        for step, beta in enumerate(BETAS):
            rows.append(
                {
                    "N": curve.N,
                    "k": curve.k,
                    "rho": curve.rho,
                    "step": step + 1,
                    "beta": beta,
                    "temperature": 1.0 / beta,
                    "problems": curve.epsilon.shape[0],
                    "epsilon": mean[step],
                    "error_bar": bar[step],
                    "theory": curve.theory[step],
                    "at_temperature": 1.0 / curve.at_beta,
                    "above_at": bool(beta < curve.at_beta),
                }
            )
    return rows


def _cell(curve: CoolingCurve) -> dict[str, Any]:
    """How far one curve is from the theory, as measured and matched to each problem's own coefficients."""
    warm = curve.deviation.shape[1]
    mean, bar = mean_and_bar(curve.epsilon[:, :warm])
    in_bars = (mean - curve.theory[:warm]) / bar
    hot, hot_bar = mean_and_bar(curve.in_band(-1.0, 0.5))
    lag, lag_bar = mean_and_bar(curve.in_band(0.5, 1.0))
    return {
        "N": curve.N,
        "rho": curve.rho,
        "difference_in_error_bars": float(in_bars.mean()),
        "largest_difference_in_error_bars": float(np.abs(in_bars).max()),
        "relative_difference": float((mean / curve.theory[:warm] - 1.0).mean()),
        "matched_above_2_T_AT": float(hot),
        "matched_above_2_T_AT_bar": float(hot_bar),
        "matched_T_AT_to_2_T_AT": float(lag),
        "matched_T_AT_to_2_T_AT_bar": float(lag_bar),
    }


def agreement(curves: Sequence[CoolingCurve]) -> Claim:
    """The paper: the data accord with the theory above the AT temperature, in spite of the fast schedule."""
    above, between = "matched_above_2_T_AT", "matched_T_AT_to_2_T_AT"
    cells = [_cell(curve) for curve in curves]
    holds = all(abs(cell[above]) <= CELL + BARS * cell[f"{above}_bar"] for cell in cells)
    holds = holds and all(abs(cell[between]) <= LAG + BARS * cell[f"{between}_bar"] for cell in cells)
    bands = []
    for low, high in pairwise(BANDS):
        value, bar = _pooled(curves, low, high)
        edges = {"from_T_over_T_AT": 1.0 / high, "to_T_over_T_AT": 1.0 / low if low else None}
        bands.append(edges | {"deviation": value, "bar": bar})
        holds = holds and abs(value) <= EXACT + BARS * bar and bar <= ENOUGH
    limits = {}
    for rho in sorted({round(curve.rho, 6) for curve in curves}):
        same = [cell for cell in cells if round(cell["rho"], 6) == rho]
        limit = extrapolate(*([cell[name] for cell in same] for name in ("N", above, f"{above}_bar")))
        limits[f"{rho:g}"] = limit._asdict()
        holds = holds and abs(limit.value) <= CELL + BARS * limit.bar
    pooled, pooled_bar = _pooled(curves, BANDS[0], BANDS[-1])
    worst = max(cells, key=lambda cell: abs(cell[between]))
    return Claim(
        "agreement_above_at",
        "While cooling, epsilon accords with the replica theory above the AT temperature.",
        bool(holds),
        f"With each problem's own coefficients and noise in the theory: above 2 T_AT, |mean relative deviation| <= "
        f"{EXACT:g} + {BARS:g} bars in each of {len(BANDS) - 1} bands of temperature over all N and rho, and <= "
        f"{CELL:g} + {BARS:g} bars for every N and rho and for the straight line in 1/N at each rho (the walks are a "
        f"little behind everywhere, and a line in 1/N is good to some percent only). Between T_AT and 2 T_AT they fall "
        f"behind, five sweeps per step being few near the transition, at every N: there {LAG:g} + {BARS:g} bars. "
        f"The bars of the bands must be below {ENOUGH:g}, else there are too few problems to say.",
        f"above 2 T_AT the relative deviation is {shown(pooled, pooled_bar)}; between T_AT and 2 T_AT up to "
        f"{shown(worst[between], worst[f'{between}_bar'])} "
        f"(N = {worst['N']}, rho = {worst['rho']:g}), because the annealing is fast",
        {
            "cells": cells,
            "all_above_2_T_AT": pooled,
            "all_above_2_T_AT_bar": pooled_bar,
            "bands": bands,
            "limit_in_1_over_N": limits,
        },
    )


def _pooled(curves: Sequence[CoolingCurve], low: float, high: float) -> tuple[float, float]:
    """Deviation in a band of beta / beta_AT over all N and rho; sizes of one problem are averaged first."""
    pairs = []
    for N in sorted({curve.N for curve in curves}):
        each_size = np.stack([curve.in_band(low, high) for curve in curves if curve.N == N])
        pairs.append(mean_and_bar(each_size.mean(axis=0)))
    values, bars = np.array(pairs).T
    weight = 1.0 / np.maximum(bars, 1e-12) ** 2
    return float(weight @ values / weight.sum()), float(weight.sum() ** -0.5)
