"""Figure 2: the epsilon that annealing reaches against the size, beside the theory's bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pairflip.paper.reproduce.levels import SizePoints, common_rhos, limit_at
from pairflip.paper.reproduce.verdict import BARS, Claim, shown

CLOSE, ENOUGH = 0.05, 0.1


def table(all_points: Sequence[SizePoints]) -> list[dict[str, Any]]:
    """Rows of fig2.csv."""
    return [
        row | {"theory_inf": level.epsilon_inf, "theory_at": level.epsilon_at, "zero_energy": level.zero_energy}
        for points in all_points
        for row, level in zip(points.rows("epsilon"), points.levels, strict=True)
    ]


def above_bound(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: epsilon at T = 0 of the theory is a lower bound."""
    rows, holds = [], True
    for row in table(all_points):
        excess, bar = row["epsilon"] - row["theory_inf"], row["error_bar"]
        matched, matched_bar = row["matched_epsilon"] - row["theory_inf"], row["matched_error_bar"]
        holds = holds and excess >= -BARS * bar and matched >= -BARS * matched_bar
        holds = holds and matched_bar <= ENOUGH * row["matched_epsilon"]
        measured = {"excess": excess, "error_bar": bar, "matched_excess": matched, "matched_error_bar": matched_bar}
        rows.append({"N": row["N"], "rho": row["rho"]} | measured)
    lowest = min(rows, key=lambda row: row["excess"] / row["error_bar"])
    return Claim(
        "energies_above_bound",
        "The energies that annealing reaches lie above the theory's value at temperature zero, a lower bound.",
        bool(holds),
        f"At every N and rho the mean, as measured and matched, is no more than {BARS:g} error bars below the "
        f"bound. Matched bars must be below {ENOUGH:g} of the value, else there are too few problems to say.",
        f"the smallest excess is {lowest['excess'] / lowest['error_bar']:+.1f} error bars "
        f"(N = {lowest['N']}, rho = {lowest['rho']:g})",
        {"points": rows},
    )


def close_to_bound(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: the energies reached are fairly close to the bound."""
    rows: list[dict[str, Any]] = []
    for rho in common_rhos(all_points):
        high = limit_at(all_points, rho, "epsilon_at")
        inside = high.bar <= ENOUGH and high.value <= CLOSE + BARS * high.bar
        over_inf = None
        if _has_bound(all_points, rho):
            low = limit_at(all_points, rho, "epsilon_inf")
            inside, over_inf = inside and low.value >= -CLOSE - BARS * low.bar, low.value
        rows.append({"rho": rho, "over_inf": over_inf, "over_at": high.value, "bar": high.bar, "inside": inside})
    far = max(rows, key=lambda row: row["over_at"])
    return Claim(
        "energies_close_to_bound",
        "The energies that annealing reaches are fairly close to the lower bound.",
        all(row["inside"] for row in rows),
        f"Matched to each problem's own coefficients and extrapolated in 1/N, epsilon at every rho lies between the "
        f"theory at T = 0 (lower bound; none where it is zero) and at the AT point, up to {CLOSE:g} of it + {BARS:g} "
        f"bars (a straight line in 1/N is good to some percent only), the bars being below {ENOUGH:g}.",
        f"over the theory at the AT point, epsilon is at most {shown(far['over_at'], far['bar'])} of it "
        f"(rho = {far['rho']:g})",
        {"limits": rows},
    )


def _has_bound(all_points: Sequence[SizePoints], rho: float) -> bool:
    """Whether the theory at T = 0 does not fit all rows exactly there: the bound would be zero."""
    return not any(
        level.zero_energy or level.epsilon_inf <= 0.0
        for each in all_points
        for size, level in zip(each.rhos, each.levels, strict=True)
        if abs(size - rho) < 1e-6
    )
