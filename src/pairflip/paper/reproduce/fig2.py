"""Figure 2: the epsilon that annealing reaches against the size, beside the theory's bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pairflip.paper.reproduce.levels import SizePoints, common_rhos, limit_at
from pairflip.paper.reproduce.verdict import Claim, mean_and_bar, shown

CLOSE, ENOUGH = 0.05, 0.1
BARS = 3.0


def table(all_points: Sequence[SizePoints]) -> list[dict[str, Any]]:
    """Rows of fig2.csv."""
    rows = []
    for each in all_points:
        mean, bar = mean_and_bar(each.values)
        matched, matched_bar = mean_and_bar(each.matched)
        for at, k in enumerate(each.sizes):
            level = each.levels[at]
            rows.append(
                {
                    "N": each.N,
                    "k": k,
                    "rho": k / each.N,
                    "problems": each.values.shape[0],
                    "epsilon": mean[at],
                    "error_bar": bar[at],
                    "matched_epsilon": matched[at],
                    "matched_error_bar": matched_bar[at],
                    "theory_inf": level.epsilon_inf,
                    "theory_at": level.epsilon_at,
                    "zero_energy": level.zero_energy,
                }
            )
    return rows


def above_bound(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: epsilon at T = 0 of the theory is a lower bound."""
    rows, ok = [], True
    for row in table(all_points):
        excess = row["epsilon"] - row["theory_inf"]
        matched = row["matched_epsilon"] - row["theory_inf"]
        ok = ok and excess >= -BARS * row["error_bar"] and matched >= -BARS * row["matched_error_bar"]
        ok = ok and row["matched_error_bar"] <= ENOUGH * row["matched_epsilon"]
        rows.append({"N": row["N"], "rho": row["rho"], "excess": excess, "error_bar": row["error_bar"],
                     "matched_excess": matched, "matched_error_bar": row["matched_error_bar"]})  # fmt: skip
    lowest = min(rows, key=lambda row: row["excess"] / row["error_bar"])
    return Claim(
        "energies_above_bound",
        "The energies that annealing reaches lie above the theory's value at temperature zero, a lower bound.",
        bool(ok),
        f"At every N and rho the mean, as measured and matched, is no more than {BARS:g} error bars below the "
        f"bound. Matched bars must be below {ENOUGH:g} of the value, else there are too few problems to say.",
        f"the smallest excess is {lowest['excess'] / lowest['error_bar']:+.1f} error bars "
        f"(N = {lowest['N']}, rho = {lowest['rho']:g})",
        {"points": rows},
    )


def close_to_bound(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: the energies reached are fairly close to the bound."""
    rows: list[dict[str, Any]] = []
    ok = True
    for rho in common_rhos(all_points):
        high = limit_at(all_points, rho, "epsilon_at")
        low = None if _no_bound(all_points, rho) else limit_at(all_points, rho, "epsilon_inf")
        inside = (
            high.bar <= ENOUGH
            and high.value <= CLOSE + BARS * high.bar
            and (low is None or low.value >= -CLOSE - BARS * low.bar)
        )
        ok = ok and inside
        rows.append({"rho": rho, "over_inf": None if low is None else low.value,
                     "over_at": high.value, "bar": high.bar, "inside": inside})  # fmt: skip
    far = max(rows, key=lambda row: row["over_at"])
    return Claim(
        "energies_close_to_bound",
        "The energies that annealing reaches are fairly close to the lower bound.",
        bool(ok and rows),
        f"Matched to each problem's own coefficients and extrapolated in 1/N, epsilon at every rho lies between the "
        f"theory at T = 0 (lower bound; none where it is zero) and at the AT point, up to {CLOSE:g} of it + {BARS:g} "
        f"bars (a straight line in 1/N is good to some percent only), the bars being below {ENOUGH:g}.",
        f"over the theory at the AT point, epsilon is at most {shown(far['over_at'], far['bar'])} of it "
        f"(rho = {far['rho']:g})",
        {"limits": rows},
    )


def _no_bound(all_points: Sequence[SizePoints], rho: float) -> bool:
    """Whether the theory at T = 0 fits all rows exactly there: the bound is zero."""
    return any(
        level.zero_energy or level.epsilon_inf <= 0.0
        for each in all_points
        for size, level in zip(each.rhos, each.levels, strict=True)
        if abs(size - rho) < 1e-6
    )
