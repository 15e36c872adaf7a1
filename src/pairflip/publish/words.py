"""Paragraphs for a paper: what was done, and what came out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairflip.report.answer import answer_of, plain_paragraph
from pairflip.report.vocabulary import named, named_columns, plain, size_text, vocabulary
from pairflip.rules import ALL_POSITIVE
from pairflip.text import plural

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

PAPER = "Obuchi and Kabashima, arXiv:1603.01399, 2016"
BIBTEX = """@article{{obuchi2016sampling,
  title = {{Sampling approach to sparse approximation problem: determining degrees of freedom by simulated annealing}},
  author = {{Obuchi, Tomoyuki and Kabashima, Yoshiyuki}},
  journal = {{arXiv preprint arXiv:1603.01399}},
  year = {{2016}},
}}
@software{{pairflip,
  title = {{pairflip: best subsets of columns by simulated annealing with pair flips}},
  author = {{{{The pairflip authors}}}},
  version = {{{version}}},
}}
"""
_SIZES = {
    "auto": "the smallest size was taken whose error of held-out rows is higher than the lowest by at most half a "
    "standard error of their difference, row by row",
    "best": "the size with the lowest error of held-out rows was taken",
    "one_se": "the smallest size whose error of held-out rows is within one standard error of the lowest was taken",
    "bic": "the size with the lowest BIC of the fits on all rows was taken",
    "ebic": "the size with the lowest extended BIC of the fits on all rows was taken",
}
_RULES = "Rules"  # the paragraph of the answer on columns that may be chosen together


def preprocessing(curve: SizeCurve) -> str:
    """A sentence for captions; "" where columns are those of the table."""
    words = curve.settings.get("preprocess")
    return f" Columns are those after preprocessing ({words})." if words else ""


def methods(curve: SizeCurve, target: str) -> str:
    """One paragraph: data, search, choice of the size, checks, seed, versions."""
    settings, words = curve.settings, vocabulary(curve)
    unit = words.unit
    sizes = [int(k) for k in curve.sizes if k > 0]
    ends = f"from {min(sizes)} to {max(sizes)}" if len(sizes) > 1 else f"{sizes[0]}"
    names = [target] if curve.targets is None else curve.targets.names
    told = ("method", "effort", *(["chains"] if "schedule" in settings else []), "seed")
    known = {"loss": curve.loss.name} | {name: settings[name] for name in told if settings.get(name) is not None}
    how = ", ".join(f"{name} {value}" for name, value in (*known.items(), ("engine", curve.engine)))
    rule = _SIZES[curve.answer.rule]
    cv = str(settings.get("cv", f"{curve.n_folds} folds"))
    sentences = [
        f"Columns that predict {plain(named(names))} were selected from {plural(len(curve.names), 'candidate column')} "
        f"of {plural(curve.total_rows, 'row')} with pairflip {curve.version} (best-subset selection; {PAPER}).",
        *_preparation(curve),
        f"For each number of {unit}s {ends}, the set with the lowest training error was searched ({how}).",
        *_limits(curve),
        f"The number of {unit}s was chosen by cross validation ({'leave-one-out' if cv == 'loo' else cv}), in which "
        f"the search was repeated without the held-out rows; {rule}. The error is the {words.minimized} of these rows.",
    ]
    if curve.answer.error is not None:
        sentences.append("Errors on new rows were corrected for this choice by a bootstrap over independent rows.")
    if curve.ridge_surface is not None and curve.ridge_surface.ridges.size > 1:
        values = ", ".join(f"{ridge:g}" for ridge in curve.ridge_surface.ridges)
        sentences.append(f"A ridge term in units of the scaled columns was chosen with it from {values}.")
    if curve.stability is not None:
        halves = f"{2 * curve.stability.pairs} {curve.stability.how}"
        sentences.append(f"The selection was repeated in {halves} to tell how often columns are selected again.")
    if curve.average is not None:
        sentences.append(
            "The weighted average combines the models that the folds chose at all sizes and ridge regression on all "
            "columns, with weights that predict held-out rows best (non-negative, with a sum of at most one)."
        )
    if curve.null is not None:
        sentences.append(f"It was also repeated with the target shuffled {plural(curve.null.r2.size, 'time')}.")
    if curve.outer is not None:
        sentences.append(f"A cross validation of {curve.outer.sizes.size} outer folds repeated the whole procedure.")
    sentences.append(f"The data have the hash {curve.data_hash[:16]}.")
    return " ".join(sentences)


def _preparation(curve: SizeCurve) -> list[str]:
    """Sentences on preprocessing, and whether held-out rows had a part in it."""
    words = curve.settings.get("preprocess")
    if not words:
        return []
    preparation = curve.preparation if curve.preprocess is not None else None  # a file may not keep what was fitted
    alone = preparation is not None and preparation.row_wise
    how = "each row by itself" if alone else "fitted in every fold without the held-out rows"
    return [
        f"Before that, the {plural(len(curve.raw_names), 'column')} of the table were preprocessed, {how}: {words}."
    ]


def _limits(curve: SizeCurve) -> list[str]:
    """Sentences on what models had to have and to keep."""
    sentences = [plain(text) for label, text in answer_of(curve).more if label == _RULES]
    if curve.always.size:
        sentences.append(f"Every model contained {plain(named_columns(curve.names, curve.always))}.")
    if signs := curve.settings.get("signs"):
        sentences.append(f"Coefficients were kept {'positive' if signs == ALL_POSITIVE else 'to given signs'}.")
    return sentences


def results(curve: SizeCurve) -> list[str]:
    """Paragraphs: what was selected; how well it predicts; how stable it is; what to doubt; what chance would give."""
    answer = answer_of(curve)
    lead = plain(answer.headline)
    if answer.predicts:
        columns = plain(named_columns(curve.names, curve.supports[curve.at(answer.size)]))
        lead = f"The selected model has {size_text(curve, answer.size)}: {columns}."
    paragraphs = [plain_paragraph(each) for each in (*answer.bullets, *answer.more) if each[0] != _RULES]
    if (chance := curve.facts.get("p_value")) is not None:
        paragraphs.append(
            f"Permutation test of the fit to all rows (forward selection, target shuffled): p = {chance:.2g}."
        )
    return [lead + preprocessing(curve), *paragraphs]
