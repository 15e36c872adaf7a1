"""A curve in words and a plain table."""

from __future__ import annotations

import numpy as np

from pairflip.crossval.curve import SizeCurve

_SHOWN_NAMES = 6


def answer(curve: SizeCurve) -> str:
    """How many columns, which, and how sure: two or three sentences."""
    best, thrifty = curve.best_size, curve.one_se_size
    at = curve.at(best)
    error, se = curve.cv_error[at], curve.cv_error_se[at]
    text = f"Keep {_columns(best)}: {names(curve, best)} (cv_error {error:.4g} +- {se:.2g}, the lowest)."
    if thrifty != best:
        few = curve.cv_error[curve.at(thrifty)]
        verb = "predicts" if thrifty == 1 else "predict"
        text += f" {_columns(thrifty)} ({names(curve, thrifty)}) {verb} as well within one standard error ({few:.4g})."
    same, agreed = curve.stability[at], curve.agreement[at]
    text += f" At size {best}, {same:.0%} of the folds selected the same columns and {agreed:.0%} of the chains agreed."
    return text


def names(curve: SizeCurve, size: int) -> str:
    """Names of the columns of a size, the first few."""
    chosen = [" ".join(name.split()) for name in curve.columns(size)]
    more = f" and {len(chosen) - _SHOWN_NAMES} more" if len(chosen) > _SHOWN_NAMES else ""
    return ", ".join(chosen[:_SHOWN_NAMES]) + more


def summary(curve: SizeCurve) -> str:
    """The answer, then one line a size; the best size is marked *, the one-standard-error size +."""
    header = "  size    cv_error        +-      train  stable  agree   run sd        BIC  columns"
    lines = [answer(curve), "", header]
    spread = np.std(curve.chain_cv_error, axis=1)
    for at, size in enumerate(curve.sizes.tolist()):
        mark = "*" if size == curve.best_size else "+" if size == curve.one_se_size else " "
        lines.append(
            f"{size:>5}{mark}{curve.cv_error[at]:>11.5g}{curve.cv_error_se[at]:>10.2g}{curve.energy_per_row[at]:>11.4g}"
            f"{curve.stability[at]:>8.0%}{curve.agreement[at]:>7.0%}{spread[at]:>9.2g}{curve.bic[at]:>11.1f}"
            f"  {names(curve, size)}"
        )
    lines += ["", *(f"Note: {note}." for note in curve.notes)]
    return "\n".join(lines).rstrip()


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"
