"""The answer in two sentences: how many columns, which, how sure. The wording follows the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pairflip.figures.labels import column_labels, percent, plural, plus_minus
from pairflip.figures.numbers import exact_folds, share_explained

if TYPE_CHECKING:
    from pairflip.crossval.curve import SizeCurve

_LISTED = 8  # names in a sentence; more are counted
_LOW = 0.5  # stability below this is called unsure
_FEW = 3  # chains that reached the best set: with fewer, chance decided whether it was found


@dataclass(frozen=True)
class Answer:
    """Two sentences and what a reader must know beside them; `sure` is ``"fairly"`` or ``"not"``.

    `which` and `how_sure` are (text, is a name) pieces, so that names can be set apart and are never read as markup.
    """

    which: tuple[tuple[str, bool], ...]
    how_sure: str
    cautions: tuple[str, ...]
    sure: str

    @property
    def text(self) -> str:
        """Both sentences as plain text, names in quotes."""
        return "".join(f"“{t}”" if is_name else t for t, is_name in self.which) + " " + self.how_sure


def answer_of(curve: SizeCurve) -> Answer:
    """The answer that the curve supports, and the reasons to doubt it."""
    best, small = curve.best_size, curve.one_se_size
    which: list[tuple[str, bool]] = []
    if not share_explained(curve, best) > 0:
        which += [
            (
                f"No set of columns predicts the target; the lowest cv_error is that of {plural(best, 'column')} (",
                False,
            ),
            *_names(curve, best),
            (").", False),
        ]
    elif best == small:
        which += [(f"Keep {plural(best, 'column')}: ", False), *_names(curve, best), (".", False)]
    else:
        which += [
            (f"Prediction is best with {plural(best, 'column')} (", False),
            *_names(curve, best),
            (f"), but {plural(small, 'column')} (", False),
            *_names(curve, small),
            (f") {'predicts' if small == 1 else 'predict'} as well within one standard error.", False),
        ]
    cautions = _cautions(curve)
    return Answer(tuple(which), _how_sure(curve, best), cautions, "not" if cautions else "fairly")


def _names(curve: SizeCurve, size: int) -> list[tuple[str, bool]]:
    """Names in a sentence: a, b and c; with many, the first ones and how many more."""
    columns = [int(j) for j in curve.supports[curve.at(size)]]
    labels = column_labels(curve.names, columns, 48)
    shown = labels if len(labels) <= _LISTED else labels[: _LISTED - 1]
    pieces: list[tuple[str, bool]] = []
    for i, label in enumerate(shown):
        if i:
            pieces.append((" and " if i == len(labels) - 1 else ", ", False))
        pieces.append((label, True))
    if len(shown) < len(labels):
        pieces.append((f" and {len(labels) - len(shown)} more", False))
    return pieces


def _how_sure(curve: SizeCurve, best: int) -> str:
    at = curve.at(best)
    share = share_explained(curve, best)
    explained = "are no better on held-out rows than the plain mean"
    if share > 0:
        explained = f"explain {percent(share)} of the variance of held-out rows"
    same = exact_folds(curve, best)
    return (
        f"With {plural(best, 'column')}, predictions {explained} "
        f"(cv_error {plus_minus(curve.cv_error[at], curve.cv_error_se[at])}), {same:,} of "
        f"{plural(curve.n_folds, 'fold')} selected exactly these columns, and "
        f"{percent(curve.agreement[at])} of the search's chains agree on the best set of their fold."
    )


def _cautions(curve: SizeCurve) -> tuple[str, ...]:
    """Reasons to doubt the answer, each with what to do."""
    best, at = curve.best_size, curve.at(curve.best_size)
    found = []
    share = share_explained(curve, best)
    if not share > 0:
        found.append(
            "Do not rely on the columns named above: chance alone can select columns that predict no better than the "
            "mean of the target."
        )
    if curve.sizes.size > 1 and best == int(curve.sizes.max()):
        found.append(
            f"The lowest cv_error is at the largest size tried ({best}), so more columns may predict better: try "
            "larger sizes."
        )
    if exact_folds(curve, best) < _LOW * curve.n_folds:
        found.append(
            f"How many columns is better founded than which: only {exact_folds(curve, best):,} of "
            f"{plural(curve.n_folds, 'fold')} selected exactly these columns. See the selection counts and stand-ins."
        )
    chains = curve.settings.get("final_chains", {})
    agreed = float(curve.final_agreement[at])
    reached = round(agreed * chains[at]) if at < len(chains) and agreed >= 0 else _FEW
    if reached < _FEW:
        found.append(
            f"The search is hard: only {reached} of {chains[at]} chains of the final fit reached the best set found, "
            "and a better one may have been missed. Use more chains or a slower schedule."
        )
    return tuple(found)
