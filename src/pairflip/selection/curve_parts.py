"""The parts of a curve from the plain lists and numbers of its file, and whether they fit each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from pairflip.losses import SEVERAL, loss_named
from pairflip.search.proof import Proof
from pairflip.selection.curve import SizeCurve
from pairflip.selection.records import (
    ClassErrors,
    FoldFits,
    Inclusion,
    NullCheck,
    OuterError,
    Proved,
    RidgeSurface,
    StandardErrors,
    SurvivalErrors,
    TargetErrors,
    TrainingRange,
)
from pairflip.selection.stability import Stability
from pairflip.supports import ABSENT

_ROUNDING = 1e-9
_FACTS = {
    "p_value": (0.0, 1.0),
    "autocorrelation": (-1.0, 1.0),
    "identical_rows": (0, np.inf),
    "error_of_the_mean": (0.0, np.inf),
}
_WHOLE = {"sizes", "held_out_rows", "held_out_fold", "held_out_unit", "always", "columns", "others"}


def as_array(name: str, value: Any) -> NDArray[Any]:
    """A field of the file as an array of whole numbers, or of floats."""
    return whole_numbers(value) if name in _WHOLE else numbers(value)


def whole_numbers(value: Any) -> NDArray[np.int64]:
    """Lists of the file as whole numbers, where NumPy alone would also take 1.5 and "1" for 1."""
    found = np.array(value)
    if found.size and found.dtype.kind not in "iu":
        raise ValueError("expected whole numbers")
    return np.array(value, dtype=np.int64)


def numbers(value: Any) -> NDArray[np.float64]:
    """Lists of the file as floats; null becomes not-a-number."""
    found = np.array(value)
    plain = found.dtype.kind in "iuf" or (
        found.dtype.kind == "O" and all(each is None or type(each) in (int, float) for each in found.ravel())
    )
    if found.size and not plain:
        raise ValueError("expected numbers")
    return np.array(value, dtype=float)


def _stability(value: dict[str, Any]) -> Stability:
    whole = {name: whole_numbers(value[name]) for name in ("sizes", "columns")}
    chosen = tuple(whole_numbers(v) for v in value["chosen"])
    supports = tuple(whole_numbers(v) for v in value["supports"])
    coefs = tuple(numbers(v) for v in value["coefs"])
    return Stability(**{**value, **whole, "chosen": chosen, "supports": supports, "coefs": coefs})


def _null(value: dict[str, Any]) -> NullCheck:
    arrays = {name: numbers(v) for name, v in value.items() if isinstance(v, list)}
    return NullCheck(**{**value, **arrays})


def _standard_errors(value: dict[str, Any]) -> StandardErrors:
    chosen = tuple(numbers(v) for v in value["chosen"])
    intercepts = numbers(value["intercepts"])
    return StandardErrors(chosen, numbers(value["always"]).reshape(intercepts.size, -1), intercepts)


def _proved(value: dict[str, Any]) -> Proved:
    """Proofs as they are in the file: the names of the columns are those of the curve, see `_with_names`."""
    return Proved(tuple(None if proof is None else _proof(proof) for proof in value["proofs"]))


def _proof(value: dict[str, Any]) -> Proof:
    arrays: dict[str, Any] = {name: whole_numbers(value[name]) for name in ("support", "supports", "counts")}
    arrays |= {name: numbers(value[name]) for name in ("energies", "within")}
    return Proof(**{**value, **arrays, "names": []})


def _fold_fits(record: dict[str, Any] | None) -> FoldFits | None:
    if record is None:
        return None
    floats = {name: tuple(numbers(v) for v in record[name]) for name in ("coefs", "always_coefs")}
    return FoldFits(
        as_array("sizes", record["sizes"]), **floats, intercepts=as_array("intercepts", record["intercepts"])
    )


def _outer(value: dict[str, Any]) -> OuterError:
    whole: dict[str, Any] = {name: whole_numbers(value[name]) for name in ("sizes", "rows", "fold")}
    supports = tuple(whole_numbers(v) for v in value["supports"])
    predictions = numbers(value["predictions"])
    r2 = float("nan") if value["r2"] is None else value["r2"]
    own = {name: value.get(name) for name in ("target_rmse", "target_r2")}
    whole |= {name: numbers(each) for name, each in own.items() if each is not None}
    return OuterError(**{**value, **whole, "supports": supports, "predictions": predictions, "r2": r2})


def _ridge_surface(record: dict[str, Any]) -> RidgeSurface:
    found = record["predictions"]
    return RidgeSurface(
        ridges=as_array("ridges", record["ridges"]),
        errors=as_array("errors", record["errors"]),
        predictions=None if found is None else as_array("predictions", found),
        ridge=float(record["ridge"]),
    )


def _classes(value: dict[str, Any]) -> ClassErrors:
    if "share" in value:  # of the event: only two classes had been thought of
        value = {**value, "shares": [1.0 - value["share"], value["share"]]}
        del value["share"]
    arrays = {name: numbers(value[name]) for name in ("shares", "misclassified", "auc") if value[name] is not None}
    return ClassErrors(**{**value, **arrays})


def _survival(value: dict[str, Any]) -> SurvivalErrors:
    return SurvivalErrors(**{name: numbers(each) for name, each in value.items()})


def _inclusion(value: dict[str, Any]) -> Inclusion:
    floats = {name: numbers(v) for name, v in value.items() if isinstance(v, list)}
    return Inclusion(**{**value, **floats, "columns": whole_numbers(value["columns"])})


def _targets(value: dict[str, Any]) -> TargetErrors:
    arrays = {name: numbers(value[name]) for name in ("cv_error", "rmse", "r2", "means", "scales")}
    return TargetErrors(**{**value, **arrays})


def _training_range(value: dict[str, Any]) -> TrainingRange:
    arrays = {name: np.array(value[name], dtype=float) for name in ("means", "scales", "factor")}
    return TrainingRange(**arrays, limit=float(value["limit"]))


READERS: dict[str, Callable[[Any], Any]] = {
    "stability": _stability,
    "null": _null,
    "standard_errors": _standard_errors,
    "fold_fits": _fold_fits,
    "outer": _outer,
    "ridge_surface": _ridge_surface,
    "exact": lambda value: np.array(value, dtype=bool),
    "proved": _proved,
    "classes": _classes,
    "survival": _survival,
    "targets": _targets,
    "inclusion": _inclusion,
    "training_ranges": lambda value: tuple(None if each is None else _training_range(each) for each in value),
    "groups": lambda value: {name: whole_numbers(own) for name, own in value.items()},
}
"""How each part that may be missing is read."""


def check_curve(curve: SizeCurve) -> None:
    """Refuse a curve whose parts are of another type or shape, or name columns, rows or folds that do not exist."""
    _check_types(curve, "")
    _check_sizes(curve)
    s, n, folds, p = curve.sizes.size, len(curve.names), curve.n_folds, curve.observed.size
    several = () if curve.outputs is None else (curve.n_outputs,)
    by_size = "cv_error cv_error_se energy_per_row unchanged agreement energies final_agreement exact"
    _check_shapes(curve, by_size, s)
    _check_shapes(curve, "intercepts", s, *several)
    _check_shapes(curve, "always_coefs", s, curve.always.size, *several)
    _check_shapes(curve, "selection_counts", s, n)
    _check_shapes(curve, "held_out_rows held_out_fold held_out_unit observed weights", p)
    _check_shapes(curve, "predictions", s, p)
    _require(curve.chain_cv_error.shape[:1] == (s,) and curve.chain_cv_error.ndim == 2, "chain_cv_error")
    _require(all(each.shape == (s,) for each in curve.criteria.values()), "criteria")
    for name in ("cv_error", "intercepts", "always_coefs", "observed", "weights", "predictions"):
        _require(bool(np.isfinite(getattr(curve, name)).all()), name, "expected finite numbers")
    _require(bool((curve.cv_error >= -_ROUNDING).all()), "cv_error", "expected no negative numbers")
    _require(bool((curve.weights >= 0).all() and curve.weights.any()), "weights", "expected no negative numbers")
    for name in ("unchanged", "agreement", "final_agreement"):
        _check_range(getattr(curve, name), 0, 1 + _ROUNDING, name)
    _check_range(curve.held_out_rows, 0, curve.n_rows - 1, "held_out_rows")
    _check_range(curve.held_out_fold, 0, folds - 1, "held_out_fold")
    _check_range(curve.selection_counts, 0, folds, "selection_counts")
    _check_range(curve.stand_ins.others, ABSENT, n - 1, "stand_ins")
    _check_columns([curve.always, curve.stand_ins.columns], n, "always or stand_ins")
    _check_facts(curve)
    _check_supports(curve, several)
    _check_others(curve, several)


def _check_sizes(curve: SizeCurve) -> None:
    """Refuse a curve without rows, folds, columns or sizes, or with more columns in a fit than there are."""
    _require(curve.n_rows > 0, "n_rows", "expected at least one")
    _require(curve.n_folds > 0, "n_folds", "expected at least one")
    _require(curve.names != [], "names", "expected at least one")
    _require(curve.sizes.ndim == 1 and np.unique(curve.sizes).size == curve.sizes.size > 0, "sizes")
    _check_range(curve.sizes, 0, len(curve.names), "sizes")
    loss = curve.settings.get("loss", "squares")
    loss_named(loss)  # refuses one that is not known
    _require((curve.targets is not None) == (loss == SEVERAL), "targets")
    _require((curve.classes is not None) == (loss in ("logistic", "multinomial")), "classes")
    _require((curve.survival is not None) == (loss == "cox"), "survival")


def _check_supports(curve: SizeCurve, several: tuple[int, ...]) -> None:
    """Refuse final fits and supports of folds with columns that do not exist, or of another number than their size."""
    n, least = len(curve.names), 0 if curve.groups is None else ABSENT
    for part in (curve.supports, curve.coefs, curve.fold_supports):
        _require(len(part) == curve.sizes.size, "supports, coefs or fold_supports", "expected one for each size")
    for size, support, coef, found in zip(
        curve.sizes.tolist(), curve.supports, curve.coefs, curve.fold_supports, strict=True
    ):
        _check_columns([support], n, "supports")
        _require(not np.isin(support, curve.always).any(), "supports", "expected no column that is always in the model")
        _require(coef.shape == (support.size, *several) and bool(np.isfinite(coef).all()), "coefs")
        _require(found.ndim == 2 and len(found) == curve.n_folds, "fold_supports")
        _check_range(found, least, n - 1, "fold_supports")
        if curve.groups is None:
            _require(support.size == found.shape[1] == size, "supports", "expected as many columns as the size says")


def _check_others(curve: SizeCurve, several: tuple[int, ...]) -> None:
    """Refuse parts that were asked for besides and do not fit the rest."""
    s, n, folds = curve.sizes.size, len(curve.names), curve.n_folds
    _check_columns((curve.groups or {}).values(), n, "groups")
    if curve.standard_errors is not None:
        errors = curve.standard_errors
        _check_shapes(errors, "intercepts", s)
        _check_shapes(errors, "always", s, curve.always.size)
        _require([each.shape for each in errors.chosen] == [each.shape for each in curve.coefs], "standard_errors")
    if curve.stability is not None:
        _check_stability(curve.stability, curve, several)
    if curve.null is not None:
        _check_shapes(curve.null, "r2 set_frequency overlap highest", curve.null.r2.size)
    if curve.classes is not None:
        _require(len(curve.classes.labels) >= 2, "classes")
        _require(curve.classes.several == (curve.classes.auc is None), "classes")
        _check_shapes(curve.classes, "shares", len(curve.classes.labels))
        _check_range(curve.classes.shares, 0, 1 + _ROUNDING, "classes")
        _check_shapes(curve.classes, "misclassified auc", s)
    if curve.survival is not None:
        _check_shapes(curve.survival, "times", curve.observed.size)
        _check_shapes(curve.survival, "risks", s, curve.observed.size)
        _check_shapes(curve.survival, "concordance", s)
    if curve.targets is not None:
        q = len(curve.targets.names)
        _check_shapes(curve.targets, "cv_error rmse r2", s, q)
        _check_shapes(curve.targets, "means scales", folds, q)
    if curve.inclusion is not None:
        parts = "columns probability error coef_mean coef_sd"
        _check_shapes(curve.inclusion, parts, curve.inclusion.columns.size)
        _check_columns([curve.inclusion.columns], n, "inclusion")
    if curve.outer is not None:
        outer = curve.outer
        _check_shapes(outer, "sizes", len(outer.supports))
        _check_shapes(outer, "rows fold", outer.rows.size)
        _check_shapes(outer, "predictions", outer.rows.size, *several)
        _check_range(outer.rows, 0, curve.n_rows - 1, "outer rows")
        _check_range(outer.fold, 0, len(outer.supports) - 1, "outer fold")
        _check_columns(outer.supports, n, "outer supports")
    if curve.proved is not None:
        _require(len(curve.proved) == s, "proved", "expected one for each size")
        for proof in curve.proved.proofs:
            if proof is not None:
                _check_columns([proof.support, *proof.supports], n, "proved")
                _require(len(proof.supports) == proof.energies.size and proof.energies.ndim == 1, "proved")
                _require(proof.within.shape == proof.counts.shape, "proved")


def _check_stability(found: Stability, curve: SizeCurve, several: tuple[int, ...]) -> None:
    """Refuse half-samples that do not fit the sizes and columns of the curve."""
    name = "stability"
    _require(found.pairs > 0 and found.rows > 0 and found.n_candidates > 0, name)
    _require(found.sizes.ndim == 1 and bool(np.isin(found.sizes, curve.sizes).all()), f"{name} sizes")
    _require(found.columns.shape == (len(found.names),) and bool((np.diff(found.columns) > 0).all()), f"{name} columns")
    _check_columns([found.columns], len(curve.names), f"{name} columns")
    for part in (found.chosen, found.supports, found.coefs):
        _require(len(part) == found.sizes.size, name, "expected one for each size")
    for size, chosen, supports, coefs in zip(
        found.sizes.tolist(), found.chosen, found.supports, found.coefs, strict=True
    ):
        _require(chosen.shape == (size,) and bool(np.isin(chosen, found.columns).all()), f"{name} chosen")
        shape = 2 * found.pairs, size
        _require(supports.shape == shape and bool(np.isin(supports, found.columns).all()), f"{name} supports")
        _require(coefs.shape == (*shape, *several) or curve.groups is not None, f"{name} coefs")


def _check_facts(curve: SizeCurve) -> None:
    """Refuse facts that are not of their kind."""
    for name, (low, high) in _FACTS.items():
        value = curve.facts.get(name, low)
        number = type(value) in (int, float) and low <= value <= high
        _require(number, f"facts {name}", f"expected a number from {low:g} to {high:g}")
    values = curve.facts.get("two_values", [0, 1])
    fits = isinstance(values, list) and [type(each) in (int, float) for each in values] == [True, True]
    _require(fits, "facts two_values", "expected two numbers")


def _check_types(part: Any, where: str) -> None:
    """Refuse fields that do not have the type that a record declares; arrays were made of numbers already."""
    hints = get_type_hints(type(part))
    for field in fields(part):
        name = f"{where}{field.name}"
        _require(_has_type(getattr(part, field.name), hints[field.name], name), name, "it is of the wrong type")


def _has_type(value: Any, kind: Any, where: str) -> bool:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_has_type(value, each, where) for each in inner)
    if is_dataclass(kind):
        if type(value) is not kind:
            return False
        _check_types(value, f"{where} ")
        return True
    if origin in (list, tuple):
        return isinstance(value, origin) and all(_has_type(each, inner[0], where) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_has_type(each, inner[1], where) for each in value.values())
    if kind is float:
        return type(value) is int or (type(value) is float and np.isfinite(value))
    return kind is Any or type(value) is (origin or kind) or (kind is None and value is None)


def _check_shapes(part: Any, names: str, *shape: int) -> None:
    """Refuse fields of a record that are arrays of another shape."""
    for name in names.split():
        found = getattr(part, name)
        where = "" if isinstance(part, SizeCurve) else f"{type(part).__name__} "
        _require(found is None or found.shape == shape, f"{where}{name}", f"expected shape {shape}")


def _check_columns(parts: Iterable[NDArray[np.int64]], n: int, name: str) -> None:
    """Refuse columns that do not exist, and two of one kind."""
    for columns in parts:
        _check_range(columns, 0, n - 1, name)
        _require(columns.ndim == 1 and np.unique(columns).size == columns.size, name, "expected different columns")


def _check_range(values: NDArray[Any], low: float, high: float, name: str) -> None:
    beyond = values[(values < low) | (values > high)]
    if beyond.size:
        raise ValueError(f"{name} has {beyond.flat[0]:g}; expected {low:g} to {high:g}")


def _require(fits: bool, name: str, why: str = "it does not fit the rest") -> None:
    if not fits:
        raise ValueError(f"{name}: {why}")
