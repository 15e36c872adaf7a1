"""The answer in words: how many columns, which, how well they predict, and what to doubt.

It is written here and nowhere else: `print(curve)`, the command line, the page and result.json all show this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pairflip.report.cautions import cautions_of
from pairflip.report.predicted_words import average_words
from pairflip.report.proof_words import proof_of, proof_words
from pairflip.report.stability_words import (
    cluster_word,
    known,
    level_label,
    levels,
    null_words,
    stability_details,
    stability_words,
)
from pairflip.report.vocabulary import (
    NAME_LENGTH,
    Paragraph,
    ToldNumber,
    joined,
    members,
    n_candidates,
    named,
    named_columns,
    plain,
    size_text,
    target_record,
    target_shares,
    unit_labels,
    units_of,
    vocabulary,
    what_is_counted,
)
from pairflip.rules import ALL_POSITIVE
from pairflip.selection.curve import Average, SizeCurve
from pairflip.selection.decide import (
    CHANCE,
    CLEAR,
    Claim,
    baseline,
    difference,
    sizes_by_repetition,
    uncertain_names,
)
from pairflip.selection.stability import THRESHOLD
from pairflip.text import clean, compared, number, percent, plural, quoted, r2_text, wrapped

DOUBT = "Doubt"
"""Label of the bullet about what to doubt."""
_LISTED = 6  # columns of a group that are named one by one


@dataclass(frozen=True)
class AnswerWords:
    """What a reader is told: a headline, at most four bullets, and more for those who ask."""

    predicts: bool  # whether some columns predict clearly better than the mean (or than the forced columns alone)
    size: int  # the recommended number of columns, 0 if nothing predicts
    other_size: int | None  # a second one that is worth knowing
    headline: str  # the recommendation in one sentence
    bullets: tuple[Paragraph, ...]  # how well it predicts, how stable it is, proved or not, what to doubt
    more: tuple[Paragraph, ...]
    cautions: tuple[str, ...]  # reasons to doubt it, each with what to do, explained

    @property
    def mood(self) -> Literal["fairly", "not", "nothing"]:
        """Fairly sure, not sure (there are cautions), or nothing predicts."""
        return "nothing" if not self.predicts else "not" if self.cautions else "fairly"

    @property
    def details(self) -> str:
        """All paragraphs but the doubts, as plain text."""
        return " ".join(plain_paragraph(each) for each in (*self.bullets, *self.more) if each[0] != DOUBT)

    @property
    def text(self) -> str:
        """Headline and details as plain text, names in quotes."""
        return f"{plain(self.headline)} {self.details}"

    def lines(self, width: int, full: bool = False) -> list[str]:
        """Lines of plain text: the headline and the bullets; `full`: also everything else."""
        lines = [*wrapped(plain(self.headline), width), ""]
        for bullet in self.bullets:
            lines += wrapped(f"- {plain_paragraph(bullet)}", width, "  ")
        if full:
            for text in (*map(plain_paragraph, self.more), *self.cautions):
                lines += ["", *wrapped(text, width)]
        return lines

    def to_json(self, curve: SizeCurve) -> dict[str, Any]:
        """The verdict for machines."""
        words, units, squared = vocabulary(curve), curve.units, curve.loss.squared
        groups, without = {}, {}
        if units is not None:
            groups["groups"] = {
                units.name(unit, curve.names): [curve.names[j] for j in members(curve, unit) or [unit]]
                for unit in units_of(curve, self.size)
            }
        if squared:
            without["rmse_without_columns"] = words.error(0)
        answer = curve.answer
        return {
            "predicts": self.predicts,
            "claim": str(answer.claim),
            "rule": answer.rule,
            "predictor": answer.predictor,
            "doubts": [str(doubt.reason) for doubt in answer.doubts],
            "size": self.size,
            "other_size": self.other_size,
            "columns": [curve.names[j] for j in curve.supports[curve.at(self.size)].tolist()],
            **groups,
            "always": [curve.names[j] for j in curve.always.tolist()],
            **words.record(self.size),
            "p_value": curve.facts.get("p_value"),
            "outer": None if curve.outer is None else _outer_record(curve),
            "sizes_by_repetition": sizes_by_repetition(curve),
            "corrected": None if answer.error is None else answer.error.to_json(),
            **({} if curve.average is None else {"average": _average_record(curve.average)}),
            **without,
            "headline": plain(self.headline),
            "bullets": [plain_paragraph(each) for each in self.bullets],
            "details": self.details,
            "cautions": list(self.cautions),
        }


def _average_record(average: Average) -> dict[str, Any]:
    """The weighted average for machines."""
    corrected = None if average.corrected is None else average.corrected.to_json()
    columns = {"columns": int(average.columns.size), "selected_columns": int(average.selected.size)}
    return {**columns, "weight_of_all_columns": average.all_columns, "corrected": corrected}


def _outer_record(curve: SizeCurve) -> dict[str, Any]:
    outer, targets = curve.outer, curve.targets
    assert outer is not None
    if not curve.loss.squared:
        return {"deviance": 2.0 * outer.error, "explained_deviance": outer.r2}
    record: dict[str, Any] = {"rmse": outer.rmse, "r2": outer.r2}
    if targets is not None and outer.target_r2 is not None and outer.target_rmse is not None:
        record["targets"] = target_record(targets.names, outer.target_r2, outer.target_rmse)
    return record


def answer_of(curve: SizeCurve) -> AnswerWords:
    """The words of the curve's answer."""
    answer, words = curve.answer, vocabulary(curve)
    size, keeps = answer.shown, answer.predicts or answer.size > 0
    cautions = cautions_of(curve)
    stability, details = stability_words(curve, size), stability_details(curve, size)
    more = [("Rules", _rules(curve))]
    if keeps:
        bullets = [
            ("Prediction", _sentences(words.how_well(size), _outer_words(curve), average_words(curve))),
            ("Stability", _sentences(_size_words(curve, size, answer.other), stability)),
            _proof(curve, size),
        ]
        more += [("Numbers", words.meaning(size)), ("Targets", _target_words(curve, size))]
        more += [("Shrinkage", shrinkage_words(curve)), ("Half-samples", details)]
    else:
        bullets = [("Prediction", _sentences(_best_tried(curve, size), _outer_words(curve)))]
        more.append(("Half-samples", _sentences(stability, details)))
    bullets.append(("Shuffled targets", null_words(curve)))
    if curve.outer is not None:
        sizes = ", ".join(str(each) for each in curve.outer.sizes.tolist())
        anew = "there, size and columns were chosen anew without the rows predicted"
        more.append(("Outer folds", f"{anew}; sizes chosen: {sizes}."))
    more.append(("Signs", sign_words(curve, size)))
    bullets.append(("Rows", moments_words(curve)))
    bullets.append((DOUBT, " ".join(each.short for each in cautions)))
    bullets, more = ([(label, text) for label, text in paragraphs if text] for paragraphs in (bullets, more))
    texts = tuple(each.text for each in cautions)
    return AnswerWords(answer.predicts, answer.size, answer.other, _headline(curve), tuple(bullets), tuple(more), texts)


def _headline(curve: SizeCurve) -> str:
    """The recommendation in one sentence, as sure as the evidence is."""
    answer, words = curve.answer, vocabulary(curve)
    than = "the columns that are always in the model" if curve.always.size else words.mean
    if answer.claim == Claim.TOGETHER and answer.average is not None:
        share = ToldNumber(words.explains, r2_text(answer.average.r2[0])).text
        few = f"no set of at most {plural(int(curve.sizes.max()), words.unit)} is clearly better than {than}"
        return f"The columns predict together ({share} by a weighted average of models), but {few}."
    if answer.size == 0:
        if answer.predicts:
            return f"Keep no columns, as the rule {answer.rule} asks, although some predict better than {than}."
        return f"No set of columns predicts the {words.predicted} better than {than}."
    if not answer.predicts:
        size = size_text(curve, answer.size)
        return (
            f"{size[0].upper()}{size[1:]} by the rule {answer.rule}: {_names(curve, answer.size)}; not clearly better "
            f"than {than}."
        )
    return _recommendation(curve, answer.size)


def tiles_of(curve: SizeCurve, size: int) -> list[ToldNumber]:
    """The numbers of an answer that recommends a size: errors, columns, how many of them are stable."""
    unit, halves = what_is_counted(curve), known(curve, size)
    tiles = vocabulary(curve).numbers(size)
    tiles.append(ToldNumber(f"{unit.capitalize()}s", str(size), f"of {n_candidates(curve):,}"))
    if halves is not None:
        chosen = levels(halves, size)
        stable = [level for level in chosen if level.frequency >= THRESHOLD - 1e-9]
        if any(level.columns.size > 1 for level in stable):
            unit = cluster_word(halves)
        how = f"of {len(chosen)}, in at least {percent(THRESHOLD)} of {2 * halves.pairs} {halves.how}"
        tiles.append(ToldNumber(f"Stable {unit}s", str(len(stable)), how))
    return tiles


def plain_paragraph(paragraph: Paragraph) -> str:
    """A paragraph as plain text, names in quotes."""
    return f"{paragraph[0]}: {plain(paragraph[1])}"


def _sentences(*sentences: str) -> str:
    """Those that say something, one after the other."""
    return " ".join(filter(None, sentences))


def _rules(curve: SizeCurve) -> str:
    """What was asked for about columns that may be chosen together."""
    settings, texts = curve.settings, []
    if settings.get("one_per_group"):
        texts.append(f"At most one column is chosen of each of {plural(len(settings['column_groups']), 'group')}.")
    if settings.get("min_distance"):
        by = "by the numbers in their names" if settings.get("distance_by") == "names" else "in places"
        texts.append(f"No two columns are closer than {number(settings['min_distance'], 6)} ({by}).")
    if settings.get("hierarchy"):
        texts.append("A product is chosen only together with its factors.")
    return " ".join(texts)


def moments_words(curve: SizeCurve) -> str:
    """What is known of a table of which only moments were kept; "" for other tables."""
    if curve.single_rows:
        return ""
    known = curve.facts["stands_for"]
    text = (
        f"{plural(curve.total_rows, 'row')} were read once and kept as moments of {known['blocks']} random blocks. "
        "Errors are those of all rows; their ranges come from the blocks. Nothing is said of single rows."
    )
    return f"{text} {missing_words(known['missing'])}".rstrip()


def missing_words(missing: Mapping[str, int]) -> str:
    """One sentence on rows that were left out because of missing values; "" where there were none."""
    if not missing.get(""):
        return ""
    each = sorted(((count, name) for name, count in missing.items() if name), reverse=True)
    columns = ", ".join(f"{quoted(clean(name))} ({count:,})" for count, name in each[:3])
    more = f" and {len(each) - 3} more" if len(each) > 3 else ""
    were = "was" if missing[""] == 1 else "were"
    return f"{plural(missing[''], 'row')} with missing values {were} left out: {columns}{more}."


def _recommendation(curve: SizeCurve, size: int) -> str:
    """Headline where columns predict: what to keep, and whether the names are certain."""
    beside = ""
    if curve.always.size:
        those = "those that are" if curve.always.size > 1 else "the one that is"
        beside = f" in addition to {those} always in ({named_columns(curve.names, curve.always)})"
    columns = size_text(curve, size)
    if not uncertain_names(curve, size):
        return f"Keep {columns}{beside}: {_names(curve, size)}."
    halves = known(curve, size)
    assert halves is not None
    labels = joined([level_label(curve, halves, size, level.columns) for level in levels(halves, size)], _LISTED)
    verb, which = ("predicts", "its name is") if size == 1 else ("predict", "their names are")
    return f"{columns}{beside} {verb} best; {which} uncertain: {labels}."


def _size_words(curve: SizeCurve, size: int, other: int | None) -> str:
    """How much the size depends on the folds, and the other size that is worth knowing."""
    texts, words = [], vocabulary(curve)
    if rule := rule_words(curve):
        texts.append(rule)
    if sizes := sizes_by_repetition(curve):
        low, high, times = min(sizes), max(sizes), len(sizes)
        at = f"{low} to {plural(high, words.unit)} in" if low < high else f"{plural(low, words.unit)} in all"
        texts.append(f"lowest error at {at} {times} repetitions of the folds")
    if other is not None:  # both errors without the correction, which is there for the chosen size only
        errors = f"({words.compared(other, size)} on held-out rows)"
        clearly = f"{'is' if other == 1 else 'are'} not clearly worse {errors}"
        if other == curve.best_size:
            limit = curve.cv_error[curve.at(other)] + curve.cv_error_se[curve.at(other)]
            near = ", but not clearly" if curve.cv_error[curve.at(size)] <= limit else ""
            clearly = f"had the lowest error {errors}{near}"
        texts.append(f"{plural(other, words.unit)} {clearly}")
    return "; ".join(texts) + "." * bool(texts)


def _proof(curve: SizeCurve, size: int) -> Paragraph:
    """Whether it is proved that no other columns fit all rows better."""
    if (proof := proof_of(curve, size)) is not None:
        return "Proved", proof_words(proof, chosen=units_of(curve, size)).removeprefix("Proved: ")
    unit = what_is_counted(curve)
    others = f"another {unit}" if size == 1 else f"other sets of {plural(size, unit)}"
    return "Not proved", f"{others} may fit better."


def _best_tried(curve: SizeCurve, best: int) -> str:
    """The best size that was tried where nothing predicts."""
    words, tried = vocabulary(curve), [int(k) for k in curve.sizes if k > 0]
    lower = curve.cv_error[curve.at(best)] < curve.cv_error[curve.at(0)]
    errors = f"{words.compared(best, 0)} with the {baseline(curve)}"
    of = f"of sizes {tried[0]} to {tried[-1]}, " if len(tried) > 1 else ""
    return (
        f"{of}{size_text(curve, best)} did best on held-out rows ({_names(curve, best)}), but the error is "
        f"{'hardly' if lower else 'no'} lower: {errors}{_chance(curve, best)}. Do not rely on "
        f"{'it' if best == 1 else 'them'}."
    )


def _target_words(curve: SizeCurve, size: int) -> str:
    """R2 of each of several targets, on held-out rows and in outer folds."""
    if curve.targets is None:
        return ""
    names = curve.targets.names
    r2 = target_shares(names, curve.targets.r2[curve.at(size)], range(len(names)))
    if curve.outer is not None and curve.outer.target_r2 is not None:
        r2 += f"; in outer folds: {target_shares(names, curve.outer.target_r2, range(len(names)))}"
    return f"R2 on held-out rows: {r2}."


def rule_words(curve: SizeCurve) -> str:
    """One sentence of the answer: by which rule the size was chosen; "" for the usual one."""
    rule = curve.answer.rule
    if rule in curve.criteria:
        by = f"the {rule.upper()} of fits on all rows"
        return f"the size was chosen by {by}, and the error is not corrected for this choice"
    sizes = {"best": "size with the lowest error", "one_se": "smallest within one standard error of the lowest error"}
    return f"this is the {sizes[rule]}, as was asked for" if rule in sizes else ""


def shrinkage_words(curve: SizeCurve) -> str:
    """One sentence of the answer: how much the coefficients are shrunk; "" where there was nothing to choose."""
    surface = curve.ridge_surface
    if surface is None or surface.ridges.size < 2:
        return ""
    values = ", ".join(f"{ridge:g}" for ridge in surface.ridges)
    if surface.ridge == 0:
        others = ", ".join(f"{ridge:g}" for ridge in surface.ridges if ridge > 0)
        return f"Shrinking the coefficients (by ridge terms of {others}) did not lower the error."
    text = f"Coefficients are shrunk by a ridge term of {surface.ridge:g}, chosen with the size from {values}"
    if 0 in surface.ridges:
        words = vocabulary(curve)
        lowest = [float(words.shown(surface.errors[surface.ridges == ridge].min())) for ridge in (0.0, surface.ridge)]
        without, shrunken = compared(lowest[0], lowest[1], 3)
        text += f"; the lowest {words.minimized} on held-out rows was {shrunken} with it and {without} without"
    return f"{text}."


def sign_words(curve: SizeCurve, size: int) -> str:
    """That coefficients were kept to signs, where any were given, and which columns carry no weight for that."""
    if not (signs := curve.settings.get("signs")):
        return ""
    how = "positive" if signs == ALL_POSITIVE else "to the signs that were asked for"
    at = curve.at(size)
    idle = curve.supports[at][np.asarray(curve.coefs[at]) == 0].tolist()
    if not idle:
        return f"Coefficients were kept {how}."
    carry, zero = ("carries", "its coefficient is") if len(idle) == 1 else ("carry", "their coefficients are")
    return (
        f"Coefficients were kept {how}; {named_columns(curve.names, idle)} {carry} no weight in this fit: {zero} zero "
        "at the bound, so a smaller size does the same."
    )


def _outer_words(curve: SizeCurve) -> str:
    """The error in the cross validation around the whole selection."""
    outer, words = curve.outer, vocabulary(curve)
    if outer is None:
        return ""
    error = f"{words.minimized} {number(float(words.shown(outer.error)), 3)}, {words.explains} {r2_text(outer.r2)}"
    return f"In {outer.sizes.size} outer folds: {error}."


def _chance(curve: SizeCurve, best: int) -> str:
    """Why an error below that of the mean is not a finding."""
    gain, error = difference(curve, 0, best)
    if not gain > 0:
        return ""
    if curve.facts.get("p_value", 0.0) > CHANCE:
        return f"; of shuffled targets, {percent(curve.facts['p_value'])} are fitted as well"
    if curve.answer.corrected is not None and curve.answer.corrected.ranked is not None:
        ranking = vocabulary(curve).ranking
        return (
            f", and {ranking} is {curve.answer.corrected.ranked[0]:.2f} once it is corrected for the choice of the size"
        )
    if gain <= CLEAR * error:
        return f", a difference of {gain / error:.1f} standard errors"
    return ", and not lower once it is corrected for the choice of the size"


def _names(curve: SizeCurve, size: int) -> str:
    """The chosen columns; of groups, each with its columns, of many the first and the last."""
    units = units_of(curve, size)
    labels = unit_labels(curve, units, NAME_LENGTH)
    if curve.units is None:
        return named(labels)
    items = []
    for unit, label in zip(units, labels, strict=True):
        columns, item = members(curve, unit), named([label])
        if len(columns) > _LISTED:
            first, last = (named_columns(curve.names, [j]) for j in (columns[0], columns[-1]))
            item += f" ({plural(len(columns), 'column')}, {first} to {last})"
        elif columns:
            item += f" ({named_columns(curve.names, columns)})"
        items.append(item)
    return joined(items)
