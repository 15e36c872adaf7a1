"""Figures 2 and 3: the epsilon that annealing reaches and the LOO error over the size, beside the replica theory.

For the LOO error every left-out row was annealed; its theory is epsilon_g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed

from pairflip.least_squares import Floats
from pairflip.paper.reproduce.finite_sample import factors
from pairflip.paper.reproduce.problems import MODEL, Annealed
from pairflip.paper.reproduce.verdict import BARS, Claim, Limit, extrapolate, mean_and_bar, shown
from pairflip.paper.theory.curves import at_point, curve_over_beta
from pairflip.paper.theory.model import Planted
from pairflip.paper.theory.states import solve

CURVE_RHOS = sorted((*(round(0.005 * i, 4) for i in range(2, 41)), 0.0625, 0.1175, 0.1225, 0.1275))
"""Sizes of the theory's curves."""
RHO_STAR = 0.063
CLOSE, CLEAR = 0.05, 0.1
NEAR, FOLLOWS, WORSE, ENOUGH = 0.01, 0.2, 0.1, 0.2
BOOTSTRAPS = 1000


@dataclass(frozen=True)
class Levels:
    """Errors of the theory at one size."""

    epsilon_inf: float  # at temperature zero: a formal value, and a lower bound
    epsilon_g_inf: float
    epsilon_at: float  # at the AT point
    epsilon_g_at: float
    at_beta: float  # inverse temperature of the AT point
    zero_energy: bool  # whether the formal solution at temperature zero fits all rows exactly


def model_at(alpha: float) -> Planted:
    """The model with this many rows per column."""
    return replace(MODEL, alpha=alpha)


def theory_at(rho: float, alpha: float) -> Levels:
    """The theory's errors at the size rho = K / N of problems with alpha = M / N."""
    return _levels(round(rho, 12), model_at(alpha))


@cache
def _levels(rho: float, model: Planted) -> Levels:
    ground, at = solve(np.inf, rho, model), at_point(rho, model)
    errors = ground.epsilon, ground.epsilon_g, at.state.epsilon, at.state.epsilon_g
    return Levels(*errors, at.beta, bool(ground.zero_energy))


def cooling(betas: Floats, rho: float, alpha: float) -> Floats:
    """The theory's training error while cooling."""
    return curve_over_beta(betas, rho, model_at(alpha)).epsilon


def theory_table(alpha: float) -> list[dict[str, Any]]:
    """Rows of theory.csv: the levels at many sizes, for the curves."""
    rows = []
    for rho in CURVE_RHOS:
        if rho < alpha:
            level = theory_at(rho, alpha)
            row = {"rho": rho, "theory_inf": level.epsilon_inf, "theory_at": level.epsilon_at}
            row |= {"theory_g_inf": level.epsilon_g_inf, "theory_g_at": level.epsilon_g_at}
            rows.append(row | {"at_temperature": 1.0 / level.at_beta, "zero_energy": level.zero_energy})
    return rows


@dataclass(frozen=True, eq=False)
class SizePoints:
    """An error of n problems at S sizes of N columns."""

    N: int
    sizes: tuple[int, ...]
    values: Floats  # (n, S)
    matched: Floats  # (n, S): divided by the factors of the problems' own coefficients and noise
    levels: tuple[Levels, ...]  # the theory at the number of rows that was annealed

    @property
    def rhos(self) -> Floats:
        """K / N."""
        return np.asarray(self.sizes) / self.N

    def rows(self, error: str) -> list[dict[str, Any]]:
        """What both figures have in common: one row for each size, with the name of the error."""
        mean, bar = mean_and_bar(self.values)
        matched, matched_bar = mean_and_bar(self.matched)
        return [
            {
                "N": self.N,
                "k": k,
                "rho": k / self.N,
                "problems": self.values.shape[0],
                error: mean[at],
                "error_bar": bar[at],
                f"matched_{error}": matched[at],
                "matched_error_bar": matched_bar[at],
            }
            for at, k in enumerate(self.sizes)
        ]


def points_of(annealed: Annealed, quantity: Literal["epsilon", "epsilon_g"], n_jobs: int | None = None) -> SizePoints:
    """A measured error at every size, with the theory's levels beside it."""
    values = annealed.reached if quantity == "epsilon" else annealed.loo_error
    assert values is not None
    alpha = annealed.M / annealed.N
    annealed_alpha = (annealed.M - (quantity == "epsilon_g")) / annealed.N

    def at_size(k: int) -> tuple[Levels, Floats]:
        rho = k / annealed.N
        # The factor is a ratio: one row less changes it by a few parts in 1,000, and both figures share it.
        betas = tuple(theory_at(rho, alpha).at_beta / over for over in (30.0, 8.0, 3.0, 1.0))
        return theory_at(rho, annealed_alpha), getattr(factors(annealed.problems, betas, rho, alpha), quantity)[:, -1]

    by_size = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(at_size)(k) for k in annealed.sizes)
    matched = values / np.stack([factor for _, factor in by_size], axis=1)
    return SizePoints(annealed.N, annealed.sizes, values, matched, tuple(level for level, _ in by_size))


def common_rhos(all_points: Sequence[SizePoints]) -> list[float]:
    """Sizes rho that every N has."""
    return sorted(set.intersection(*({round(float(rho), 6) for rho in each.rhos} for each in all_points)))


def limit_at(all_points: Sequence[SizePoints], rho: float, level: str) -> Limit:
    """Matched error over a level of the theory, minus 1, extrapolated in 1 / N."""
    ratios = []
    for each in all_points:
        at = int(np.argmin(np.abs(each.rhos - rho)))
        ratios.append(mean_and_bar(each.matched[:, at] / getattr(each.levels[at], level) - 1.0))
    values, bars = zip(*((float(mean), float(bar)) for mean, bar in ratios), strict=True)
    return extrapolate([each.N for each in all_points], values, bars)


def fig2_table(all_points: Sequence[SizePoints]) -> list[dict[str, Any]]:
    """Rows of fig2.csv."""
    return [
        row | {"theory_inf": level.epsilon_inf, "theory_at": level.epsilon_at, "zero_energy": level.zero_energy}
        for points in all_points
        for row, level in zip(points.rows("epsilon"), points.levels, strict=True)
    ]


def above_bound(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: epsilon at T = 0 of the theory is a lower bound."""
    rows, holds = [], True
    for row in fig2_table(all_points):
        excess, bar = row["epsilon"] - row["theory_inf"], row["error_bar"]
        matched, matched_bar = row["matched_epsilon"] - row["theory_inf"], row["matched_error_bar"]
        holds = holds and excess >= -BARS * bar and matched >= -BARS * matched_bar
        holds = holds and matched_bar <= CLEAR * row["matched_epsilon"]
        measured = {"excess": excess, "error_bar": bar, "matched_excess": matched, "matched_error_bar": matched_bar}
        rows.append({"N": row["N"], "rho": row["rho"]} | measured)
    lowest = min(rows, key=lambda row: row["excess"] / row["error_bar"])
    return Claim(
        "energies_above_bound",
        "The energies that annealing reaches lie above the theory's value at temperature zero, a lower bound.",
        bool(holds),
        f"At every N and rho the mean, as measured and matched, is no more than {BARS:g} error bars below the "
        f"bound. Matched bars must be below {CLEAR:g} of the value, else there are too few problems to say.",
        f"the smallest excess is {lowest['excess'] / lowest['error_bar']:+.1f} error bars "
        f"(N = {lowest['N']}, rho = {lowest['rho']:g})",
        {"points": rows},
    )


def close_to_bound(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: the energies reached are fairly close to the bound."""
    rows: list[dict[str, Any]] = []
    for rho in common_rhos(all_points):
        high = limit_at(all_points, rho, "epsilon_at")
        inside = high.bar <= CLEAR and high.value <= CLOSE + BARS * high.bar
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
        f"bars (a straight line in 1/N is good to some percent only), the bars being below {CLEAR:g}.",
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


def fig3_table(all_points: Sequence[SizePoints]) -> list[dict[str, Any]]:
    """Rows of fig3.csv, with the theory at alpha = M / N; the points have it at (M - 1) / N."""
    rows = []
    for points in all_points:
        for row, level in zip(points.rows("loo_error"), points.levels, strict=True):
            whole = theory_at(row["rho"], round(MODEL.alpha * points.N) / points.N)
            row |= {"theory_g_inf": whole.epsilon_g_inf, "theory_g_at": whole.epsilon_g_at}
            row["theory_g_inf_one_row_less"] = level.epsilon_g_inf
            row["theory_g_at_one_row_less"] = level.epsilon_g_at
            rows.append(row | {"zero_energy": level.zero_energy})
    return rows


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


def minimum(points: SizePoints, values: Floats) -> dict[str, float]:
    """Where the mean of errors (n, S) is lowest, with its bar by drawing the problems again, and the lowest size."""
    rhos, mean = points.rhos, values.mean(axis=0)
    again = np.random.default_rng(0).integers(0, values.shape[0], size=(BOOTSTRAPS, values.shape[0]))
    spread = [parabola_minimum(rhos, values[rows].mean(axis=0)) for rows in again]
    place = {"rho": parabola_minimum(rhos, mean), "bar": float(np.std(spread))}
    return {"N": points.N, **place, "argmin": float(rhos[np.argmin(mean)])}


def lowest_near_rho_star(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: the LOO error is lowest near rho_* = 0.063."""
    minima = [minimum(each, each.values) for each in all_points]
    matched = [minimum(each, each.matched[np.isfinite(each.matched).all(axis=1)]) for each in all_points]
    sizes = [each.N for each in all_points]
    limit = extrapolate(sizes, [each["rho"] for each in minima], [max(each["bar"], 1e-3) for each in minima])
    last = minima[-1]
    holds = abs(last["rho"] - RHO_STAR) <= NEAR + BARS * last["bar"] and last["bar"] < RHO_STAR / 2
    return Claim(
        "loo_minimum",
        f"The LOO error is lowest near rho_* = {RHO_STAR:g}.",
        bool(holds),
        f"Parabola through the lowest three points of the averaged curve at the largest N: within {NEAR:g} "
        f"(a step of the sizes; near its minimum the curve is flat) + {BARS:g} bars of {RHO_STAR:g}, the bar, from "
        f"drawing the problems again {BOOTSTRAPS} times, being below half of it.",
        f"rho_* = {last['rho']:.4f} +- {last['bar']:.4f} at N = {last['N']}",
        {"minima": minima, "matched_minima": matched, "limit_in_1_over_N": limit._asdict()},
    )


def follows_at_point(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: right of the minimum the LOO error follows epsilon_g at the AT point."""
    rows, holds, last = [], True, all_points[-1]
    for rho in (r for r in common_rhos(all_points) if r > RHO_STAR):
        limit = limit_at(all_points, rho, "epsilon_g_at")
        at = int(np.argmin(np.abs(last.rhos - rho)))
        mean, bar = mean_and_bar(last.values[:, at] / last.levels[at].epsilon_g_at - 1.0)
        holds = holds and abs(limit.value) <= FOLLOWS + BARS * limit.bar
        row = {"rho": rho, "over_at": float(mean), "bar": float(bar)}
        rows.append(row | {"limit_in_1_over_N": limit.value, "limit_bar": limit.bar})
    # Sizes share their problems, so the bar of the mean is that of a typical size, not smaller.
    average = float(np.mean([r["limit_in_1_over_N"] for r in rows])) if rows else float("nan")
    error = float(np.median([r["limit_bar"] for r in rows])) if rows else float("nan")
    holds = holds and abs(average) <= FOLLOWS / 2 + BARS * error and error <= ENOUGH
    return Claim(
        "loo_follows_at",
        "Right of its minimum the LOO error follows epsilon_g at the AT point.",
        bool(holds and rows),
        f"LOO systems have M - 1 rows: theory at alpha = (M - 1) / N. Matched to each problem's own coefficients and "
        f"extrapolated in 1/N, the relative difference is within {FOLLOWS:g} + {BARS:g} bars at every rho above "
        f"{RHO_STAR:g}, and within {FOLLOWS / 2:g} + {BARS:g} bars on average. Annealing continues to cool below the "
        f"AT temperature, so it ends 8 to 13 % above at large rho; 'follows' cannot mean more. A bar above {ENOUGH:g} "
        f"is too few problems to say.",
        f"the relative difference, extrapolated, is {shown(average, error)} on average",
        {"points": rows, "average": average, "average_bar": error},
    )


def no_worse_than_zero_temperature(all_points: Sequence[SizePoints]) -> Claim:
    """The paper: the LOO error is no worse than epsilon_g at T = 0."""
    rows = []
    for rho in common_rhos(all_points):
        limit = limit_at(all_points, rho, "epsilon_g_inf")
        worse = limit.value > WORSE + BARS * limit.bar or limit.bar > ENOUGH
        rows.append({"rho": rho, "over_inf": limit.value, "bar": limit.bar, "worse": worse})
    lower = any(row["over_inf"] < -BARS * row["bar"] for row in rows if row["rho"] > RHO_STAR)
    best, far = (choose(rows, key=lambda row: row["over_inf"]) for choose in (min, max))
    return Claim(
        "loo_no_worse_than_infinity",
        "The LOO error is no worse than epsilon_g at temperature zero, and much lower at large rho.",
        lower and not any(row["worse"] for row in rows),
        f"Theory at alpha = (M - 1) / N. Matched and extrapolated in 1/N, the LOO error is nowhere above "
        f"epsilon_g(inf) by more than {WORSE:g} of it + {BARS:g} bars (small sizes have large corrections in 1/N), and "
        f"at one rho above {RHO_STAR:g} at least it is below by more than {BARS:g} bars, all bars being below "
        f"{ENOUGH:g}.",
        f"at most {shown(far['over_inf'], far['bar'])} of it above (rho = {far['rho']:g}), at best "
        f"{shown(best['over_inf'], best['bar'])} (rho = {best['rho']:g})",
        {"limits": rows},
    )


FIG2_CLAIMS = above_bound, close_to_bound
FIG3_CLAIMS = lowest_near_rho_star, follows_at_point, no_worse_than_zero_temperature
