"""The answer in words: how many columns, which, how well they predict, and what to doubt.

It is written here and nowhere else: `print(curve)`, the command line, the page and result.json all show this.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from pairflip.least_squares import Floats
from pairflip.report import class_words
from pairflip.report.cautions import search_doubts, size_doubts, table_doubts
from pairflip.report.figures_by_size import shrinkage_words
from pairflip.report.group_words import counted, kept, members, unit_labels, units_of, what_is_counted
from pairflip.report.halves import (
    NAME_LENGTH,
    Piece,
    joined,
    listed,
    null_words,
    plain,
    stability_words,
    unstable_names,
)
from pairflip.report.limits import limit_words
from pairflip.report.proof import curve_pieces
from pairflip.report.sign_words import sign_words
from pairflip.selection.curve import SizeCurve, TargetErrors
from pairflip.selection.verdict import (
    CHANCE,
    CLEAR,
    HeldOut,
    baseline,
    difference,
    held_out,
    predicts,
    recommended_size,
    sizes_by_repetition,
)
from pairflip.text import clean, explained, number, percent, plural, r2_text, shorten

_LISTED = 6  # columns of a group that are named one by one


@dataclass(frozen=True)
class Answer:
    """What a reader is told.

    Attributes
    ----------
    predicts : bool
        Whether some columns predict clearly better than the mean (or than the forced columns alone).
    size, other_size : int
        The recommended number of columns, 0 if nothing predicts; a second one that is worth knowing, or None.
    headline : pieces (text, is a name)
        The recommendation in one sentence. Names are set apart, so that they are never read as markup.
    details : pieces
        How well it predicts, and the other size.
    cautions : tuple of str
        Reasons to doubt it, each with what to do.
    mood : {"fairly", "not", "nothing"}
        Fairly sure, not sure (there are cautions), or nothing predicts.
    """

    predicts: bool
    size: int
    other_size: int | None
    headline: tuple[Piece, ...]
    details: tuple[Piece, ...]
    cautions: tuple[str, ...]
    mood: Literal["fairly", "not", "nothing"]

    @property
    def text(self) -> str:
        """Headline and details as plain text, names in quotes."""
        return f"{plain(self.headline)} {plain(self.details)}"

    def to_json(self, curve: SizeCurve) -> dict[str, Any]:
        """The verdict for machines."""
        at = curve.at(self.size)
        now = held_out(curve, self.size)
        return {
            "predicts": self.predicts,
            "size": self.size,
            "other_size": self.other_size,
            "columns": [curve.names[j] for j in curve.supports[at].tolist()],
            **_groups(curve, self.size),
            "always": [curve.names[j] for j in curve.always.tolist()],
            **_errors(curve, self.size, now),
            "p_value": curve.facts.get("p_value"),
            "outer": _outer_errors(curve),
            "sizes_by_repetition": sizes_by_repetition(curve),
            "corrected": None if curve.chosen is None else curve.chosen.to_json(),
            **({"rmse_without_columns": _without_columns(curve)} if curve.loss.squared else {}),
            "headline": plain(self.headline),
            "details": plain(self.details),
            "cautions": list(self.cautions),
        }


def _groups(curve: SizeCurve, size: int) -> dict[str, Any]:
    """The groups that were chosen and their columns, where columns are chosen in groups."""
    if curve.units is None:
        return {}
    return {
        "groups": {
            curve.units.name(unit, curve.names): [curve.names[j] for j in members(curve, unit) or [unit]]
            for unit in units_of(curve, size)
        }
    }


def _errors(curve: SizeCurve, size: int, now: HeldOut) -> dict[str, Any]:
    """The errors of held-out rows that make sense for the target."""
    if curve.targets is not None:
        at = curve.at(size)
        return {
            "rmse": now.rmse,
            "r2": now.r2,
            **_target_record(curve.targets, curve.targets.r2[at], curve.targets.rmse[at]),
        }
    if curve.loss.squared:
        return {"rmse": now.rmse, "r2": now.r2}
    at, classes = curve.at(size), curve.classes
    more: dict[str, Any] = {"rmse": now.rmse}
    if classes is not None:
        wrong = float(classes.misclassified[at])
        more = {"classes": classes.labels, "misclassified": wrong, "majority": classes.majority}
    if curve.ranked is not None:
        more = {**(more if curve.survival is None else {}), curve.loss.words.ranking: float(curve.ranked[at])}
    return {"loss": curve.loss.name, "deviance": 2.0 * float(curve.cv_error[at]), "explained_deviance": now.r2, **more}


def _target_record(targets: TargetErrors | None, r2: Floats | None, rmse: Floats | None) -> dict[str, Any]:
    """R2 and RMSE of each of several targets; nothing for one."""
    if targets is None or r2 is None or rmse is None:
        return {}
    own = zip(targets.names, r2.tolist(), rmse.tolist(), strict=True)
    return {"targets": [{"target": name, "r2": _finite(share), "rmse": error} for name, share, error in own]}


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _outer_errors(curve: SizeCurve) -> dict[str, Any] | None:
    if curve.outer is None:
        return None
    if curve.loss.squared:
        of_targets = _target_record(curve.targets, curve.outer.target_r2, curve.outer.target_rmse)
        return {"rmse": curve.outer.rmse, "r2": curve.outer.r2, **of_targets}
    return {"deviance": 2.0 * curve.outer.error, "explained_deviance": curve.outer.r2}


def _without_columns(curve: SizeCurve) -> float | None:
    return held_out(curve, 0).rmse if 0 in curve.sizes else None


def answer_of(curve: SizeCurve) -> Answer:
    """The answer that the curve supports."""
    if not predicts(curve):
        return _nothing(curve)
    size = recommended_size(curve)
    other = next((k for k in (curve.best_size, curve.one_se_size) if k not in (size, 0)), None)
    headline = [(f"Keep {kept(curve, size)}{_besides(curve)}", False), *_forced(curve), (": ", False)]
    headline += [*_names(curve, size), (".", False)]
    details: list[Piece] = [*_limits(curve), (_how_well(curve, size), False), *_by_target(curve, size)]
    details += [(_repetition_words(curve), False), *_outer_words(curve)]
    if other is not None:
        details += _other(curve, size, other)
    if words := shrinkage_words(curve):
        details.append((words, False))
    details += sign_words(curve, size)
    details += [*stability_words(curve, size), (null_words(curve), False), *curve_pieces(curve, size)]
    cautions = (*search_doubts(curve, size), *size_doubts(curve), *table_doubts(curve), *unstable_names(curve, size))
    cautions = (*class_words.separated(curve, size), *cautions)
    return Answer(True, size, other, tuple(headline), tuple(details), cautions, "not" if cautions else "fairly")


def _nothing(curve: SizeCurve) -> Answer:
    """The answer where no set of columns predicts better than none."""
    what, than = "target", "its mean"
    if curve.classes is not None:
        what, than = "class", "the class frequencies"
    elif curve.survival is not None:
        what, than = "time", "the same risk for every row"
    elif curve.targets is not None:
        what, than = "targets", "their means"
    if curve.always.size:
        than = "the columns that are always in the model"
    headline: tuple[Piece, ...] = ((f"No set of columns predicts the {what} better than {than}.", False),)
    tried = [int(k) for k in curve.sizes if k > 0]
    best = min(tried, key=lambda k: float(curve.cv_error[curve.at(k)]))
    now = held_out(curve, best)
    how = "the error is no lower"
    if 0 in curve.sizes and curve.cv_error[curve.at(best)] < curve.cv_error[curve.at(0)]:
        how = "the error is hardly lower"
    details: list[Piece] = [
        *_limits(curve),
        (f"Of sizes {tried[0]} to {tried[-1]}, " if len(tried) > 1 else "", False),
        (f"{kept(curve, best)} did best on rows that were held out (", False),
        *_names(curve, best),
        (f"), but {how}", False),
    ]
    if curve.loss.squared:
        details.append((f": the RMSE is {number(now.rmse, 3)}{_against_nothing(curve)}", False))
    else:
        beside = f", against {class_words.short(curve, 0)} with the {baseline(curve)}"
        details.append((f": {class_words.short(curve, best)}{beside}", False))
    details.append((f"{_chance(curve, best)}. Do not rely on {'it' if best == 1 else 'them'}.", False))
    details += sign_words(curve, best)
    details += [*_outer_words(curve), *stability_words(curve, best), (null_words(curve), False)]
    cautions = (*class_words.separated(curve, 0), *search_doubts(curve, best), *table_doubts(curve))
    size = 0 if 0 in curve.sizes else best
    return Answer(False, size, None, headline, tuple(details), cautions, "nothing")


def _limits(curve: SizeCurve) -> list[Piece]:
    """Under which limits columns were chosen, where there were any."""
    words = limit_words(curve.settings)
    return [(f"{words} ", False)] if words else []


def _how_well(curve: SizeCurve, size: int) -> str:
    """How well the chosen columns predict new rows, allowing for their number having been chosen."""
    if not curve.loss.squared:
        return class_words.how_well(curve, size, _explains(curve, size))
    chosen = curve.chosen
    if chosen is None:
        now = held_out(curve, size)
        return (
            f"On rows that were held out, {_explains(curve, size)} {percent(now.r2)} of the variance "
            f"{_of_target(curve)}: the error (RMSE) is {number(now.rmse, 3)}{_against_nothing(curve)}. That is "
            f"somewhat too good, because the number of {what_is_counted(curve)}s was chosen by it."
        )
    rmse = [number(value, 3) for value in chosen.rmse]
    share = class_words.share_words(chosen.r2, f"of the variance {_of_target(curve)}")
    what = f"number of {what_is_counted(curve)}s" + (" and the ridge" if curve.ridge_predictions is not None else "")
    return (
        f"On new rows, {_explains(curve, size)} {share}: the error (RMSE) is about {rmse[0]} ({rmse[1]} to {rmse[2]})"
        f"{_against_nothing(curve)}. This allows for the {what} having been chosen; the ranges are "
        f"{percent(chosen.level)} intervals."
    )


def _by_target(curve: SizeCurve, size: int) -> list[Piece]:
    """How well each of several targets is predicted."""
    if curve.targets is None:
        return []
    units = " Errors are in units of each target's standard deviation;" if _scaled(curve) else ""
    own = _r2_of_targets(curve.targets.names, curve.targets.r2[curve.at(size)])
    return [(f"{units} R2 on held-out rows: ", False), *own, (".", False)]


def _r2_of_targets(names: list[str], shares: Floats) -> list[Piece]:
    """Targets, each with its R2."""
    pieces: list[Piece] = []
    for t, name in enumerate(names):
        pieces += [(", " if t else "", False), (shorten(clean(name), 60), True)]
        pieces.append((f" {r2_text(float(shares[t]))}", False))
    return pieces


def _scaled(curve: SizeCurve) -> bool:
    return bool(curve.settings.get("scale_targets", False))


def _of_target(curve: SizeCurve) -> str:
    return "of the target" if curve.targets is None else "of the targets"


def _repetition_words(curve: SizeCurve) -> str:
    """How stable the number of columns is: what each repetition of the folds would have chosen."""
    sizes, unit = sizes_by_repetition(curve), what_is_counted(curve)
    if not sizes:
        return ""
    if len(set(sizes)) == 1:
        have = "has" if sizes[0] == 1 else "have"
        return f" In each of {len(sizes)} repetitions of the folds, {plural(sizes[0], unit)} {have} the lowest error."
    *others, last = (str(size) for size in sorted(sizes))
    return f" In {len(sizes)} repetitions of the folds, {', '.join(others)} and {last} {unit}s have the lowest error."


def _outer_words(curve: SizeCurve) -> list[Piece]:
    """What the cross validation around the whole selection found, if there was one."""
    outer = curve.outer
    if outer is None:
        return []
    sizes = ", ".join(str(size) for size in outer.sizes.tolist())
    if not curve.loss.squared:
        said = f"half the mean deviance is {number(outer.error, 3)}"
    else:
        said = f"the RMSE is {number(outer.rmse, 3)} ({explained(outer.r2)})"
    text = (
        f" In {outer.sizes.size} outer folds, where size and columns were chosen anew without the rows predicted, "
        f"{said}; sizes chosen there: {sizes}."
    )
    if curve.targets is None or outer.target_r2 is None:
        return [(text, False)]
    return [(f"{text} R2 there: ", False), *_r2_of_targets(curve.targets.names, outer.target_r2), (".", False)]


def _explains(curve: SizeCurve, size: int) -> str:
    if curve.always.size:
        return "all these together explain"
    return "it explains" if curve.supports[curve.at(size)].size == 1 else "they explain"


def _chance(curve: SizeCurve, best: int) -> str:
    """Why an error below that of the mean is not a finding."""
    if 0 not in curve.sizes:
        return ""
    gain, error = difference(curve, 0, best)
    if not gain > 0:
        return ""
    if curve.facts.get("p_value", 0.0) > CHANCE:
        return f"; but of shuffled targets, {percent(curve.facts['p_value'])} are fitted as well"
    if curve.corrected is not None and curve.corrected.ranked is not None:
        what = "AUC" if curve.survival is None else "concordance"
        return f", and {what} is {curve.corrected.ranked[0]:.2f} once it is corrected for the choice of the size"
    if gain <= CLEAR * error:
        return f", a difference of {gain / error:.1f} standard errors"
    return ", and not lower once it is corrected for the choice of the size"


def _against_nothing(curve: SizeCurve) -> str:
    """The error of the mean, with which every other error is to be compared."""
    if 0 not in curve.sizes:
        return " in the unit of the target"
    return f", and {number(held_out(curve, 0).rmse, 3)} with the {baseline(curve)}".replace("the zero", "zero")


def _other(curve: SizeCurve, size: int, other: int) -> list[Piece]:
    """The other size: the one with the lowest error, or the smallest that is not clearly worse."""
    # Both without the correction, which is there for the chosen size only.
    there, here = held_out(curve, other).rmse, held_out(curve, size).rmse
    how = f"RMSE {number(there, 3)} against {number(here, 3)} on held-out rows"
    if not curve.loss.squared:
        how = f"{class_words.short(curve, other)}, against {class_words.short(curve, size)} on held-out rows"
    if other > size:
        return [(f" {kept(curve, other)} had the lowest error ({how}), but not clearly.", False)]
    verb = "is" if other == 1 else "are"
    return [
        (f" {counted(curve, other)} (", False),
        *_names(curve, other),
        (f") {verb} not clearly worse ({how}).", False),
    ]


def _besides(curve: SizeCurve) -> str:
    return (
        f" in addition to {'those that are' if curve.always.size > 1 else 'the one that is'} always in ("
        if curve.always.size
        else ""
    )


def _forced(curve: SizeCurve) -> list[Piece]:
    return [*listed(curve, curve.always.tolist()), (")", False)] if curve.always.size else []


def _names(curve: SizeCurve, size: int) -> list[Piece]:
    """The chosen columns; of groups, each with its columns."""
    if curve.units is None:
        return listed(curve, curve.supports[curve.at(size)].tolist())
    return joined([_group(curve, unit) for unit in units_of(curve, size)])


def _group(curve: SizeCurve, unit: int) -> list[Piece]:
    """A group and its columns, of many the first and the last."""
    own, name = members(curve, unit), (unit_labels(curve, [unit], NAME_LENGTH)[0], True)
    if not own:
        return [name]
    if len(own) <= _LISTED:
        return [name, (" (", False), *listed(curve, own), (")", False)]
    (first,), (last,) = listed(curve, own[:1]), listed(curve, own[-1:])
    return [name, (f" ({plural(len(own), 'column')}, ", False), first, (" to ", False), last, (")", False)]
