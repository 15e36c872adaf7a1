"""Tables of a curve as texts: one line for each size (on the page and as plain text), the columns, their stand-ins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.report.answer import answer_of
from pairflip.report.figures_by_size import by_size
from pairflip.report.registry import FigureTable
from pairflip.report.vocabulary import members, size_text, unit_labels, units_of, vocabulary
from pairflip.rules import name_positions
from pairflip.selection.coefficients import coefficient_rows, target_coefficients
from pairflip.selection.decide import baseline, least_agreement, single_rows, uncertain
from pairflip.text import (
    NOTHING,
    aligned,
    clean,
    column_labels,
    number,
    percent,
    plural,
    r2_text,
    table_lines,
    text_width,
    wrapped,
)

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

STRONG = 0.8
"""A column with a lower correlation is not a stand-in: most tables have some at 0.5 by chance."""
_ROWS = 150  # of a table that follows the slider
_NAMES = 6  # that a line of plain text has
_LABEL = 80
_STANDARD = (
    "Standard errors are those of columns that were fixed beforehand; these were chosen because they fit, so "
    "coefficients tend to be too large and these errors too small."
)


# One line for each size -----------------------------------------------------------------------------------------------


def size_table(curve: SizeCurve) -> FigureTable:
    """Errors, agreement and remarks of each size, for the page and for notebooks."""
    order = np.argsort(curve.sizes, kind="stable")
    sizes, words, limit = curve.sizes[order].tolist(), vocabulary(curve), least_agreement(curve)
    remarks = [size_words(curve, k) + (["search uncertain"] if k and uncertain(curve, k) else []) for k in sizes]
    columns = [
        ("Size", [str(k) if k else f"0 ({baseline(curve)})" for k in sizes]),
        *words.error_columns(sizes),
        ("Unchanged", [percent(curve.unchanged[s]) if curve.sizes[s] else NOTHING for s in order]),
        ("Chains agree", [percent(curve.agreement[s]) if curve.sizes[s] else NOTHING for s in order]),
        ("Remarks", list(map("; ".join, remarks))),
    ]
    doubt = f"; below {percent(limit)}, better columns may have been missed, and the remark says “search uncertain”"
    caption = (
        f"Errors on held-out rows by size, with standard errors (SE): {curve.loss.words.meaning}.{_uncorrected(curve)} "
        "Unchanged: fraction of the folds that selected exactly the columns of the final fit, so unchanged when "
        f"{left_out(curve)} (noise can pass this, too). Chains agree: fraction of the searches that reached the best "
        f"set of their fold{doubt if limit else ''}."
    )
    recommended = curve.answer.size
    marked = sizes.index(recommended) if recommended else None
    return FigureTable.of(columns, caption, summary="Table: errors by size", by_size=True, recommended=marked)


def plain_table(curve: SizeCurve) -> FigureTable:
    """The table of sizes as plain text; the size with the lowest error is marked *, the one-standard-error size +."""
    sizes, words, limit = curve.sizes.tolist(), vocabulary(curve), least_agreement(curve)
    marks = {curve.one_se_size: "+"} | {curve.best_size: "*"}
    columns = [
        ("size", [f"{size}{marks.get(size, ' ')}" for size in sizes]),
        *words.error_columns(sizes),
        ("agree", [f"{curve.agreement[at]:.0%}{'?' * uncertain(curve, size)}" for at, size in enumerate(sizes)]),
        (f"{words.unit}s", [_names(curve, size) for size in sizes]),
    ]
    doubt = f" (? below {percent(limit)}: search uncertain)" if any(uncertain(curve, size) for size in sizes) else ""
    legend = (
        f"* lowest {words.minimized} on held-out rows, + smallest size within one standard error of it; agree: chains "
        f"that reached the best set of their fold{doubt}.{_uncorrected(curve)}"
    )
    return FigureTable.of(columns, legend)


def criteria_table(curve: SizeCurve) -> FigureTable:
    """Training error and information criteria, the lowest of each marked."""
    order = np.argsort(curve.sizes, kind="stable")
    criteria = {name.upper(): values[order] for name, values in curve.criteria.items()}
    columns = {"Size": list(map(str, curve.sizes[order])), "Training error": aligned(curve.energy_per_row[order], 3)}
    for name, values in criteria.items():
        columns[name] = [f"{v:.1f}" if np.isfinite(v) else NOTHING for v in values]
    lowest = {2 + i: int(np.nanargmin(v)) for i, v in enumerate(criteria.values()) if np.isfinite(v).any()}
    about = "Lowest of a criterion in bold. Criteria are computed from the final fits on all rows" + (
        "." if curve.answer.rule in curve.criteria else "; they stand here for comparison and do not choose the size."
    )
    summary = "Table: training error and information criteria"
    return FigureTable.of(columns, about, summary=summary, by_size=True, lowest=lowest)


def search_table(curve: SizeCurve) -> FigureTable:
    """How well the search went at each size that was searched."""
    order = by_size(curve)
    spread = np.std(curve.chain_cv_error, axis=1)
    spread[spread < 1e-12 * np.max(np.abs(curve.chain_cv_error), axis=1)] = 0.0  # that of rounding errors
    columns = {
        "Size": list(map(str, curve.sizes[order])),
        "Chains agree: folds": list(map(percent, curve.agreement[order])),
        "Chains agree: final fit": list(map(percent, curve.final_agreement[order])),
        "Run-to-run SD of cv_error": aligned(spread[order], 2),
        "Energy": aligned(curve.energies[order], least=3),
    }
    about = (
        "Fraction of the independent chains that reached the best set of their fold, and of the final fit; how much "
        "cv_error would vary if each fold had been searched by a single chain; energy (half the residual sum of "
        "squares) of the final fit"
    )
    return FigureTable.of(columns, about, by_size=True)


def size_words(curve: SizeCurve, size: int) -> list[str]:
    """Remarks on a size: recommended, lowest error, one-SE size."""
    recommended = size > 0 and size == curve.answer.size
    words = (("recommended", recommended), ("lowest error", size == curve.best_size))
    return [word for word, holds in (*words, ("one-SE size", size == curve.one_se_size)) if holds]


def left_out(curve: SizeCurve) -> str:
    """What a fold leaves out."""
    return "one row is left out" if single_rows(curve) else "a fold is left out"


def _uncorrected(curve: SizeCurve) -> str:
    """Why the answer's numbers differ from those of the table of sizes; empty where they do not."""
    if curve.answer.error is None or curve.answer.rule in curve.criteria:
        return ""
    return " Unlike the answer, the table is not corrected for the choice of the size."


def _names(curve: SizeCurve, size: int) -> str:
    """The chosen columns, or groups with their numbers of columns: the first few."""
    names = [clean(name) for name in curve.columns(size)]
    if curve.units is not None:
        units = units_of(curve, size)
        sizes = [len(members(curve, unit)) for unit in units]
        labels = zip(unit_labels(curve, units), sizes, strict=True)
        names = [f"{label} ({plural(columns, 'column')})" if columns else label for label, columns in labels]
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more if names else f"({baseline(curve)})"


def summary(curve: SizeCurve, full: bool = True) -> str:
    """The answer, then one line for each size, as plain text; `full`: with all that the answer has to say."""
    width, table = text_width(), plain_table(curve)
    parts = [*answer_of(curve).lines(width, full), "", *table_lines([table.heads, *table.rows], width=width), ""]
    for text in (table.caption, *(f"Note: {note}." for note in curve.notes)):
        parts += wrapped(text, width)
    return "\n".join(parts)


# Texts and tables that follow the slider of the page ------------------------------------------------------------------


def of_size(curve: SizeCurve, size: int) -> dict[str, Any]:
    """Texts and rows of tables about the columns of a size."""
    name = size_text(curve, size) if size else "0 columns"
    words = [word for word in size_words(curve, size) if word != "one-SE size" or size != curve.best_size]
    remarks = ", ".join(words) if size else baseline(curve)
    if remarks:  # 4 columns (recommended, lowest error), 2 groups (5 columns; recommended)
        name = f"{name[:-1]}; {remarks})" if name.endswith(")") else f"{name} ({remarks})"
    replacing = _stand_in_rows(curve, size)
    none = f"None: no other column has a correlation above {STRONG} or below -{STRONG} with a chosen one."
    return {
        "name": name,
        "summary": _about_size(curve, size),
        "columns": column_table(curve, size).rows,
        "stand_ins": replacing,
        "no_stand_ins": "" if replacing else none if size else "No columns are chosen at this size.",
    }


def _most_selected(curve: SizeCurve, size: int) -> list[int]:
    """The columns of a size that are listed, the most often selected first; columns of a group stay together."""
    counts, support = curve.selection_counts[curve.at(size)], curve.supports[curve.at(size)].tolist()
    first = range(len(counts)) if curve.units is None else curve.units.first
    return sorted(support, key=lambda j: (-int(counts[j]), int(first[j])))[:_ROWS]


def _about_size(curve: SizeCurve, size: int) -> str:
    """How well a size predicts, and how often folds chose the same columns."""
    at, words = curve.at(size), vocabulary(curve)
    # The mean itself (of the other rows) is not compared with the mean.
    share = f", {words.share_text(size)}" if size or curve.always.size else ""
    error = f"{words.words.long_error} {words.error_text(size)} on held-out rows{share}."
    if curve.answer.error is not None and curve.answer.error.size == size and curve.loss.squared:
        rmse = [number(value, 3) for value in curve.answer.error.rmse]
        error += f" Corrected for having chosen this size: {rmse[0]} ({rmse[1]} to {rmse[2]})."
    if not size:
        return f"No columns ({baseline(curve)}). {error}"
    if curve.targets is not None:
        each = zip(curve.targets.names, curve.targets.r2[at].tolist(), strict=True)
        error += f" R2 of each target: {', '.join(f'{clean(name)} {r2_text(r2)}' for name, r2 in each)}."
    same = round(curve.unchanged[at] * curve.n_folds)
    doubt = " The search is uncertain at this size." if uncertain(curve, size) else ""
    cut = f" The {_ROWS} columns selected most often are listed." if curve.supports[at].size > _ROWS else ""
    return (
        f"{error} Unchanged in {same:,} of {plural(curve.n_folds, 'fold')}, when {left_out(curve)} (noise can pass "
        f"this, too).{doubt}{cut}"
    )


def column_table(curve: SizeCurve, size: int) -> FigureTable:
    """Columns of a size with what is known of each, then forced ones and the constant."""
    at, halves, outputs, always = curve.at(size), curve.stability, curve.outputs, curve.always.tolist()
    counts, columns = curve.selection_counts[at], _most_selected(curve, size)
    order = (*columns, *always, -1)
    each = "" if outputs is None else f" for each {vocabulary(curve).output}"
    units = "preprocessed columns" if curve.settings.get("preprocess") else "table"
    text = f"Columns and coefficients{each} of the final fit on all rows, in the units of the {units}."
    labels = [*column_labels(curve.names, columns), *column_labels(curve.names, always), "(constant)"]
    cells = [("Column", labels)]
    if curve.units is not None:
        text += (
            " Groups enter as a whole; where columns of a group depend on each other (dummies of one category do), "
            f"coefficients{each} are the smallest that fit alike."
        )
    if outputs is not None:
        several = {row.place: row for row in target_coefficients(curve, size)}
        kinds = [several[j].kind for j in order]
        values = zip(*(several[j].coefficients for j in order), strict=True)
        cells += [(clean(name), _by_unit(of, 4, 4)) for name, of in zip(outputs, values, strict=True)]
        if halves is not None:
            chosen = halves.chosen[halves.at(size)] if size in halves.sizes else ()
            often = [percent(halves.frequency(j, size)) if j in chosen else NOTHING for j in order]
            cells.append(("Selected in halves", often))
            text += f" Selected in halves: how many of {2 * halves.pairs} {halves.how} did."
    else:
        single = {row.place: row for row in coefficient_rows(curve, size)}
        shown = [single[j] for j in order]
        kinds = [row.kind for row in shown]
        if curve.units is not None:
            firsts = [int(curve.units.first[j]) if j >= 0 else -1 for j in order]
            groups = [unit_labels(curve, [unit])[0] if members(curve, unit) else NOTHING for unit in firsts]
            cells.append(("Group", groups))
        cells.append(("Coefficient", _by_unit([row.coefficient for row in shown], 4, 4)))
        for kind, head, meaning in (
            ("standard", "Standard error", _STANDARD),
            ("robust", "Robust", f"Robust ones ({curve.loss.robust}) also hold where noise differs from row to row."),
            ("clustered", "Clustered", "Clustered ones also hold where rows of a group share their noise."),
        ):
            if getattr(curve, f"{kind}_errors") is not None:
                cells.append((head, _by_unit([getattr(row, f"{kind}_error") for row in shown])))
                text += f" {meaning}"
        if halves is not None:
            cells.append(("In halves: 5 %", _by_unit([row.coef_5 for row in shown])))
            cells.append(("95 %", _by_unit([row.coef_95 for row in shown])))
            cells.append(("Selected in halves", [percent(row.frequency) for row in shown]))
            text += (
                f" In halves: quantiles of the coefficient over those of {2 * halves.pairs} {halves.how} that selected "
                "the column (where at least ten did), and how many did."
            )
    told = {"always": "always in", "intercept": NOTHING}
    folds = [told.get(kind, f"{counts[j]:,} of {curve.n_folds:,}") for kind, j in zip(kinds, order, strict=True)]
    return FigureTable.of([*cells, ("Selected in folds", folds)], text)


def _by_unit(values: Sequence[float], digits: int = 3, least: int = 2) -> list[str]:
    """Numbers down a column with the same decimals; each with its own where their units are too far apart for that."""
    alike = aligned(values, digits, least)
    return [number(value, digits) for value in values] if any("e" in text for text in alike) else alike


# Columns that could take the place of a chosen one --------------------------------------------------------------------


def _stand_in_rows(curve: SizeCurve, size: int) -> list[list[str]]:
    """Stand-ins of the chosen columns, the strongest of each first; neighbours in a spectrum are one window."""
    at, lines, columns = curve.at(size), [], _most_selected(curve, size)
    selected, support = curve.fold_supports[at], set(curve.supports[at].tolist())
    for chosen, label in zip(columns, column_labels(curve.names, columns, _LABEL), strict=True):
        correlations = curve.stand_ins.of(chosen)
        strong = {other: r for other, r in correlations if abs(r) > STRONG}
        windows = [(run, [j for j in run if j != chosen]) for run in _windows(curve.names, [*strong, chosen])]
        windows = [(run, others) for run, others in windows if others]
        for run, others in sorted(windows, key=lambda window: -max(abs(strong[j]) for j in window[1])):
            first, last = column_labels(curve.names, [run[0], run[-1]], _LABEL)
            wider = " or wider" if chosen in run and len(strong) == len(correlations) else ""
            text = f"{first} to {last}{wider}" if len(run) > 1 else first
            instead = np.isin(selected, others).any(axis=1) & ~np.isin(selected, chosen).any(axis=1)
            also = " (also chosen)" if support.intersection(others) else ""
            r = min((strong[j] for j in others), key=abs)
            rounded = f"{r:.3f}" if not 0.9995 <= abs(r) < 1 else ">0.999" if r > 0 else "<-0.999"
            lines.append([label, text + also, rounded, f"{np.count_nonzero(instead):,} of {curve.n_folds:,}"])
    return lines[: 2 * _ROWS]


def _windows(names: Sequence[str], columns: Sequence[int]) -> list[list[int]]:
    """Columns in runs: next to each other in the table, with names that are numbered upwards or downwards."""
    runs: list[list[int]] = []
    for j in sorted(columns):
        if runs and runs[-1][-1] == j - 1 and _numbered(names, [*runs[-1], j]):
            runs[-1].append(j)
        else:
            runs.append([j])
    return runs


def _numbered(names: Sequence[str], run: Sequence[int]) -> bool:
    """Whether the names are one name with a number that rises or falls: ``2152``, ``line 2154``, ``2156 nm``."""
    steps = np.diff(name_positions([str(names[j]) for j in run]))
    return bool(np.all(steps > 0) or np.all(steps < 0))
