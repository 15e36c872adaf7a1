"""Figure 3: the LOO error against the size, every left-out row annealed, beside epsilon_g of the theory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairflip.least_squares import Floats
from pairflip.paper.reproduce.levels import SizePoints, common_rhos, limit_at
from pairflip.paper.reproduce.typical import Levels
from pairflip.paper.reproduce.verdict import Claim, extrapolate, mean_and_bar, shown

RHO_STAR = 0.063
NEAR, FOLLOWS, WORSE, ENOUGH = 0.01, 0.2, 0.1, 0.2
BARS = 3.0
BOOTSTRAPS = 1000


def table(all_points: Sequence[SizePoints], typical: Sequence[Sequence[Levels]]) -> list[dict[str, Any]]:
    """Rows of fig3.csv; `typical` is the theory at alpha = M / N, the points have it at (M - 1) / N."""
    rows = []
    for each, whole in zip(all_points, typical, strict=True):
        mean, bar = mean_and_bar(each.values)
        matched, matched_bar = mean_and_bar(each.matched)
        for at, k in enumerate(each.sizes):
            rows.append(
                {
                    "N": each.N,
                    "k": k,
                    "rho": k / each.N,
                    "problems": each.values.shape[0],
                    "loo_error": mean[at],
                    "error_bar": bar[at],
                    "matched_loo_error": matched[at],
                    "matched_error_bar": matched_bar[at],
                    "theory_g_inf": whole[at].epsilon_g_inf,
                    "theory_g_at": whole[at].epsilon_g_at,
                    "theory_g_inf_one_row_less": each.levels[at].epsilon_g_inf,
                    "theory_g_at_one_row_less": each.levels[at].epsilon_g_at,
                    "zero_energy": each.levels[at].zero_energy,
                }
            )
    return rows


@dataclass(frozen=True)
class Minimum:
    """Where an averaged curve is lowest, with the spread over bootstraps of the problems."""

    rho: float
    bar: float
    argmin: float


def parabola_minimum(rhos: Floats, curve: Floats) -> float:
    """Lowest point of the parabola through the lowest place of a curve and its two neighbours; an end stays an end."""
    at = int(np.argmin(curve))
    if at in (0, curve.size - 1):
        return float(rhos[at])
    x, y = rhos[at - 1 : at + 2], curve[at - 1 : at + 2]
    left, right = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
    bend = (right - left) / (x[2] - x[0])
    if bend <= 0:
        return float(x[1])
    return float(np.clip(0.5 * (x[0] + x[1]) - 0.5 * left / bend, x[0], x[2]))


def minimum(rhos: Floats, values: Floats, seed: int = 0) -> Minimum:
    """Where the mean curve is lowest, and the error of that place by drawing the problems again (bootstrap)."""
    mean = values.mean(axis=0)
    rng = np.random.default_rng(seed)
    again = rng.integers(0, values.shape[0], size=(BOOTSTRAPS, values.shape[0]))
    spread = [parabola_minimum(rhos, values[rows].mean(axis=0)) for rows in again]
    return Minimum(parabola_minimum(rhos, mean), float(np.std(spread)), float(rhos[np.argmin(mean)]))


def _record(N: int, found: Minimum) -> dict[str, float]:
    return {"N": N, "rho": found.rho, "bar": found.bar, "argmin": found.argmin}


def lowest_near_rho_star(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: the LOO error is lowest near rho_* = 0.063."""
    found = [(each.N, minimum(each.rhos, each.values)) for each in all_points]
    matched = [(each.N, minimum(each.rhos, each.matched[np.isfinite(each.matched).all(axis=1)])) for each in all_points]
    limit = extrapolate([N for N, _ in found], [m.rho for _, m in found], [max(m.bar, 1e-3) for _, m in found])
    N, last = found[-1]
    holds = abs(last.rho - RHO_STAR) <= NEAR + BARS * last.bar and last.bar < RHO_STAR / 2
    return Claim(
        "loo_minimum",
        f"The LOO error is lowest near rho_* = {RHO_STAR:g}.",
        bool(holds),
        f"Parabola through the lowest three points of the averaged curve at the largest N: within {NEAR:g} "
        f"(a step of the sizes; near its minimum the curve is flat) + {BARS:g} bars of {RHO_STAR:g}, the bar, from "
        f"drawing the problems again {BOOTSTRAPS} times, being below half of it.",
        f"rho_* = {last.rho:.4f} +- {last.bar:.4f} at N = {N}",
        {
            "minima": [_record(N, m) for N, m in found],
            "matched_minima": [_record(N, m) for N, m in matched],
            "limit_in_1_over_N": {"value": limit.value, "bar": limit.bar},
        },
    )


def follows_at_point(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: right of the minimum the LOO error follows epsilon_g at the AT point."""
    rows, ok = [], True
    for rho in (r for r in common_rhos(all_points) if r > RHO_STAR):
        limit = limit_at(all_points, rho, "epsilon_g_at")
        last = all_points[-1]
        at = int(np.argmin(np.abs(last.rhos - rho)))
        mean, bar = mean_and_bar(last.values[:, at] / last.levels[at].epsilon_g_at - 1.0)
        ok = ok and abs(limit.value) <= FOLLOWS + BARS * limit.bar
        rows.append({"rho": rho, "over_at": float(mean), "bar": float(bar),
                     "limit_in_1_over_N": limit.value, "limit_bar": limit.bar})  # fmt: skip
    average, error = _average(rows)
    ok = ok and abs(average) <= FOLLOWS / 2 + BARS * error and error <= ENOUGH
    return Claim(
        "loo_follows_at",
        "Right of its minimum the LOO error follows epsilon_g at the AT point.",
        bool(ok and rows),
        f"LOO systems have M - 1 rows: theory at alpha = (M - 1) / N. Matched to each problem's own coefficients and "
        f"extrapolated in 1/N, the relative difference is within {FOLLOWS:g} + {BARS:g} bars at every rho above "
        f"{RHO_STAR:g}, and within {FOLLOWS / 2:g} + {BARS:g} bars on average. Annealing continues to cool below the "
        f"AT temperature, so it ends 8 to 13 % above at large rho; 'follows' cannot mean more. A bar above {ENOUGH:g} "
        f"is too few problems to say.",
        f"the relative difference, extrapolated, is {shown(average, error)} on average",
        {"points": rows, "average": average, "average_bar": error},
    )


def _average(rows: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Mean over sizes; they share their problems, so the bar is that of a typical size, not smaller."""
    if not rows:
        return float("nan"), float("nan")
    return float(np.mean([r["limit_in_1_over_N"] for r in rows])), float(np.median([r["limit_bar"] for r in rows]))


def no_worse_than_zero_temperature(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: the LOO error is no worse than epsilon_g at T = 0."""
    rows, ok = [], True
    for rho in common_rhos(all_points):
        limit = limit_at(all_points, rho, "epsilon_g_inf")
        worse = limit.value > WORSE + BARS * limit.bar or limit.bar > ENOUGH
        ok = ok and not worse
        rows.append({"rho": rho, "over_inf": limit.value, "bar": limit.bar, "worse": worse})
    right = [row for row in rows if row["rho"] > RHO_STAR]
    lower = [row for row in right if row["over_inf"] < -BARS * row["bar"]]
    far = max(rows, key=lambda row: row["over_inf"])
    best = min(rows, key=lambda row: row["over_inf"])
    return Claim(
        "loo_no_worse_than_infinity",
        "The LOO error is no worse than epsilon_g at temperature zero, and much lower at large rho.",
        bool(ok and lower),
        f"Theory at alpha = (M - 1) / N. Matched and extrapolated in 1/N, the LOO error is nowhere above "
        f"epsilon_g(inf) by more than {WORSE:g} of it + {BARS:g} bars (small sizes have large corrections in 1/N), and "
        f"at one rho above {RHO_STAR:g} at least it is below by more than {BARS:g} bars, all bars being below "
        f"{ENOUGH:g}.",
        f"at most {shown(far['over_inf'], far['bar'])} of it above (rho = {far['rho']:g}), at best "
        f"{shown(best['over_inf'], best['bar'])} (rho = {best['rho']:g})",
        {"limits": rows},
    )
