"""Settings: one value that says how a size is chosen, and what a table and its loss allow of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from pairflip.losses.squares import check_shrinkage
from pairflip.philox import check_seed
from pairflip.problem import SubsetProblem
from pairflip.search.effort import FOLD_EFFORTS, Method, as_method, check_chains, no_more_than
from pairflip.search.schedule import Schedule, as_schedule
from pairflip.selection.folds import DEFAULT_CV, parse_cv
from pairflip.text import label_text, plural


@dataclass(frozen=True)
class Selection:
    """How a number of columns is chosen; with the table and the groups of its rows, all that determines the result.

    A setting is a field here and nowhere else: `select_size` and its relatives, the estimator, the command line,
    ``run.toml``, the journal and the report take or show this value.

    Parameters
    ----------
    sizes
        Numbers of columns to try; None: 1 to 10, or as many as the table allows. Size 0 is always tried. Sizes for
        which a fold has too few independent columns are left out, with a note.
    cv
        ``"auto"`` (ten folds, repeated 5 to 100 times with other random folds, as the size of the table allows),
        ``"loo"`` (leave one row out, as in the paper), a number of folds (drawn from `seed`), ``"5x10"``
        (10 folds, 5 times with other random folds), ``"blocks:5"`` (5 blocks of neighbouring rows, for tables in the
        order of time), a scikit-learn splitter, or an iterable of (training rows, held-out rows). Where the target has
        two classes, folds by number keep their shares.
    method, effort
        How supports are searched: ``"auto"`` or ``"descend"`` (in every fold the path over all sizes, descents and
        kicks), or ``"anneal"``. None: ``"anneal"`` if a schedule or a number of chains is given, else ``"auto"``. The
        effort of the first two is ``"quick"`` (the path alone, in greedy time), ``"normal"`` or ``"thorough"``.
    schedule
        ``"auto"``, ``"paper"``, or a `Schedule`; what its unit means in a fold follows from the fold's training rows.
    chains
        Walks for each size and fold, and for each final fit; the one with the lowest training energy counts. None: 8 to
        16 in a fold, by the size of the table, and as many as `anneal` takes for the final fits.
    seed
        What folds and searches are drawn from. Same seed, same curve: for any number of workers, after any resume.
    polish
        Whether final fits are improved: by what the folds found, and by the best flips until none lowers the energy.
        Nothing held out depends on it.
    prove
        Whether final fits are proved to be the best of all supports where that takes at most half a second by a cost
        model (``curve.proved``), and folds are solved by looking at every support where that takes no longer than
        searching, or 5 ms (``curve.exact``; not with method "anneal").
    stability, stability_at
        Pairs of random half-samples in which columns are selected again, once the size is chosen (0: none); at the
        recommended size (``"chosen"``) or at ``"all"`` sizes. See `Stability`.
    null
        How often the target is shuffled, to see what stability and explained variance noise would give (0: never).
    outer
        Folds of a second cross validation around the whole selection (0: none): in each, everything is chosen anew
        without the rows that are predicted. It takes so many times as long. See `OuterError`.
    ridge
        ``"auto"`` or several values: one of these relative ridge terms (`SubsetProblem.with_shrinkage`) is chosen
        together with the size, each searched by itself in the same folds. None: the penalty of the problem, as it is;
        for classes and counts, ``"auto"`` unless the problem was given a ridge.
    choose
        By which rule the size is recommended. ``"auto"``: no columns where nothing predicts, otherwise the smallest
        size whose held-out error is higher than the lowest one by at most half a standard error of their difference,
        row by row. The others are taken literally, with size 0 among all sizes, whether columns predict or not:
        ``"best"``, the lowest held-out error; ``"one_se"``, the smallest size within one standard error of it;
        ``"bic"`` or ``"ebic"``, the lowest information criterion of the fits on all rows (``"bic"`` does not count how
        many sets there were to choose from, and keeps too many of many columns).
    predict_with
        What `SizeCurve.predict` predicts with unless told otherwise: ``"subset"``, the recommended columns;
        ``"average"``, a weighted average of the folds' models at all sizes and of ridge regression on all columns;
        ``"auto"``: the average, unless the recommended columns predict clearly better, or about the same.
    """

    sizes: Iterable[int] | None = None
    cv: Any = "auto"
    schedule: Schedule | Literal["auto", "paper"] = "auto"
    chains: int | None = None
    seed: int = 0
    polish: bool = True
    method: Method | None = None
    effort: Literal["quick", "normal", "thorough"] = "normal"
    stability: int = 0
    stability_at: Literal["chosen", "all"] = "chosen"
    null: int = 0
    outer: int = 0
    ridge: Iterable[float] | Literal["auto"] | None = None
    prove: bool = True
    choose: Literal["auto", "best", "one_se", "bic", "ebic"] = "auto"
    predict_with: Literal["auto", "subset", "average"] = "auto"

    def __post_init__(self) -> None:
        if not (isinstance(self.effort, str) and self.effort in FOLD_EFFORTS):
            raise ValueError(f"effort is {self.effort!r}; expected 'quick', 'normal' or 'thorough'.")
        plain = self.chains is None and isinstance(self.schedule, str) and self.schedule == "auto"
        method = as_method(("auto" if plain else "anneal") if self.method is None else self.method)
        if method != "anneal" and self.chains is not None:
            raise ValueError(
                f"method is {method!r} and chains is given; expected method='anneal' (--method anneal), or an effort."
            )
        if self.stability_at not in ("chosen", "all"):
            raise ValueError(f"stability_at is {self.stability_at!r}; expected 'chosen' or 'all'.")
        if self.choose not in RULES:
            raise ValueError(f"choose (--choose) is {self.choose!r}; expected {', '.join(map(repr, RULES))}.")
        if self.predict_with not in PREDICTORS:
            raise ValueError(f"predict_with is {self.predict_with!r}; expected {', '.join(map(repr, PREDICTORS))}.")
        cv = parse_cv(DEFAULT_CV if self.cv is None else self.cv)
        # Splits that come one by one are listed, so that a selection can be used again.
        given_splits = isinstance(cv, Iterable) and not isinstance(cv, str) and not hasattr(cv, "split")
        checked = {
            "stability": check_count("stability (--stability)", self.stability),
            "null": check_count("null (--null)", self.null),
            "outer": check_count("outer (--outer)", self.outer),
            "method": method,
            "sizes": None if self.sizes is None else _listed(self.sizes),
            "cv": tuple(cv) if given_splits else cv,
            "schedule": as_schedule(self.schedule),
            "chains": None if self.chains is None else check_chains(self.chains),
            "seed": check_seed(self.seed),
            "polish": bool(self.polish),
            "prove": bool(self.prove),
            "ridge": None if self.ridge is None else _checked_ridges(self.ridge),
        }
        if checked["outer"] == 1:
            raise ValueError("outer (--outer) is 1; expected 0 (none) or at least 2 folds, for instance 5.")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def ridges(self) -> tuple[float, ...]:
        """Relative ridge terms to choose from; () where none is chosen, or "auto" is not resolved for a problem yet."""
        return self.ridge if isinstance(self.ridge, tuple) else ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, for files and for display."""
        plan = as_schedule(self.schedule)
        return {field.name: getattr(self, field.name) for field in fields(self)} | {
            "sizes": None if self.sizes is None else list(self.sizes),
            "cv": "given splits" if isinstance(self.cv, tuple) else " ".join(str(self.cv).split()),
            "schedule": {
                "name": plan.name,
                "unit": plan.unit,
                "betas": list(plan.betas),
                "sweeps": list(plan.sweeps),
                "least_flips": plan.least_flips,
            },
            "ridge": list(self.ridges) or self.ridge,
        }


RULES = ("auto", "best", "one_se", "bic", "ebic")
"""The rules by which the size may be chosen."""
PREDICTORS = ("auto", "subset", "average")
"""What may predict new rows."""
GRID = (0.0, 0.1, 1.0)
"""What ``ridge="auto"`` tries for squared error; six values chose about as well, in twice the time."""
LIKELIHOOD_GRID = (0.01, 0.1, 1.0)
"""What ``ridge="auto"``, the default there, tries for classes and counts. Without a penalty, training rows that are
separated completely give held-out probabilities of 0 and 1, and a few rows decide everything (docs/decisions/031)."""
_EXPECTED = "expected 'auto', or values >= 0 in units of the scaled columns, for instance [0, 0.1, 1]"
_LARGEST_COUNT = 10_000
_DEFAULT_LARGEST = 10


def check_count(name: str, count: Any, least: int = 0) -> int:
    """A whole number from `least` to ten thousand."""
    whole = isinstance(count, (int, np.integer)) and not isinstance(count, (bool, np.bool_))
    if not whole or not least <= count <= _LARGEST_COUNT:
        raise ValueError(
            f"{name} is {count!r}; expected a whole number from {least} to {_LARGEST_COUNT:,}, for instance 50."
        )
    return int(count)


def as_selection(
    sizes: Iterable[int] | Selection | None, settings: dict[str, Any], problem: SubsetProblem | None = None
) -> Selection:
    """A selection, given or made from sizes and other settings by name; with a problem, its ridge terms are known."""
    if isinstance(sizes, Selection):
        if settings:
            raise TypeError(f"a Selection is given, and also {next(iter(settings))}; expected one or the other.")
        selection = sizes
    else:
        known = [field.name for field in fields(Selection)]
        unknown = [name for name in settings if name not in known]
        if unknown:
            raise TypeError(f"{unknown[0]!r} is not a setting of a selection; expected one of {', '.join(known)}.")
        selection = Selection(sizes, **settings)
    if problem is None:
        return selection
    squared = problem.loss.squared
    if selection.ridge == "auto" or (selection.ridge is None and not squared and not problem.ridge_given):
        return replace(selection, ridge=GRID if squared else LIKELIHOOD_GRID)
    return selection


def _listed(sizes: Any) -> tuple[Any, ...]:
    """Sizes as they were given, without 0, which is always there; what a table allows is checked with the table."""
    if isinstance(sizes, (int, np.integer)):
        raise TypeError(f"sizes is {sizes}; expected several sizes, for instance range(1, {sizes + 1}) or [{sizes}].")
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise TypeError(f"sizes is {sizes!r}; expected several whole numbers, for instance range(1, 11).")
    given = tuple(size for size in sizes if isinstance(size, bool) or size != 0)
    if not given:
        raise ValueError("sizes is empty; expected at least one number of columns, for instance range(1, 11).")
    return given


def _checked_ridges(ridge: Any) -> tuple[float, ...] | Literal["auto"]:
    """Relative ridge terms to choose from, sorted, each once; "auto" as it is."""
    if isinstance(ridge, str) and ridge == "auto":
        return "auto"
    if isinstance(ridge, (int, float, np.number)):
        raise TypeError(
            f"ridge is {ridge}; {_EXPECTED}. One penalty in the units of the table is a setting of SubsetProblem."
        )
    if isinstance(ridge, str) or not isinstance(ridge, Iterable):
        raise ValueError(f"ridge is {ridge!r}; {_EXPECTED}.")
    given = sorted({check_shrinkage(value) for value in ridge})
    if not given:
        raise ValueError(f"ridge is empty; {_EXPECTED}.")
    return tuple(given)


# What a table allows --------------------------------------------------------------------------------------------------


def check_sizes(problem: SubsetProblem, sizes: Any, fewest_rows: int) -> tuple[int, ...]:
    """Sizes that the table and the training rows of its folds allow, sorted, each once; None: the usual ones."""
    form, most, n_forced = problem.form, problem.most_columns, problem.forced.shape[1]
    # Columns that the smallest sets of 1, 2, ... units have: a fold needs as many rows.
    needed = np.cumsum(np.sort(form.widths)) if form.grouped else np.arange(1, form.n_columns + 1)
    if sizes is None:
        fitting = int(np.count_nonzero(needed < fewest_rows - n_forced))
        return tuple(range(1, max(1, min(_DEFAULT_LARGEST, most, fitting)) + 1))
    ridged = problem.ridge > 0 and problem.loss.squared  # then every support has one best fit
    fitting = most if ridged else min(most, int(np.count_nonzero(needed <= fewest_rows - n_forced)))
    allowed = f"from 1 to {max(1, fitting)}."
    for size in sizes:
        if isinstance(size, (bool, np.bool_)) or not isinstance(size, (int, np.integer)):
            raise TypeError(f"sizes (--sizes) holds {size!r}; expected whole numbers of {form.what} {allowed}")
    largest = int(max(sizes))
    if min(sizes) < 1:
        raise ValueError(f"sizes (--sizes) holds {min(sizes)}; expected whole numbers of {form.what} {allowed}")
    if largest > most:
        n = form.n_columns
        why = f"the table has {plural(n, 'candidate column')} that var{'ies' if n == 1 else 'y'}"
        if problem.limits.ruled:
            why = no_more_than(problem)
        elif form.grouped:
            why = f"the columns that vary make up {plural(n, 'group')} (columns of no group count as one each)"
        raise ValueError(f"sizes (--sizes) holds {largest}, but {why}; expected sizes {allowed}")
    if largest > fitting:
        smallest = f"even the smallest {largest} groups have {needed[largest - 1]} independent columns, and "
        forced = f" and {plural(n_forced, 'coefficient')} fitted anyway" if n_forced else ""
        raise ValueError(
            f"size {largest} was asked for, but {smallest * form.grouped}a fold has {fewest_rows} rows to learn "
            f"from{forced}; expected sizes up to {fitting}."
        )
    return tuple(sorted({int(size) for size in sizes}))


def model_settings(problem: SubsetProblem) -> dict[str, Any]:
    """What the settings of a run say about the model: forced columns, loss, and which columns may be chosen."""
    model = {
        "center": problem.center,
        "always": [problem.names[j] for j in problem.always],
        **problem.limits.settings(problem.names),
    }
    if problem.preparation is not None:
        model["preprocess"] = problem.preparation.words
    if problem.target_names:
        model |= {"loss": problem.loss.name, "targets": problem.target_names}
        return model | {"scale_targets": problem.scale_targets}
    if not problem.loss.squared:
        model["loss"] = problem.loss.name
    if problem.classes is not None:
        model["classes"] = [label_text(label) for label in problem.classes.tolist()]
    return model
