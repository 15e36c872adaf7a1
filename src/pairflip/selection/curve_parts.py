"""The parts of a curve from the plain lists and numbers of its file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pairflip.search.proof import Proof
from pairflip.selection.records import (
    ClassErrors,
    FoldFits,
    Inclusion,
    NullCheck,
    OuterError,
    Proved,
    RidgeSurface,
    StandardErrors,
    TargetErrors,
    TrainingRange,
)
from pairflip.selection.stability import Stability
from pairflip.selection.surface import Surface, Warmer

_WHOLE = {"sizes", "held_out_rows", "held_out_fold", "held_out_unit", "always", "columns", "others"}


def as_array(name: str, value: Any) -> np.ndarray[Any, Any]:
    """A field of the file as an array of whole numbers, or of floats."""
    if name in _WHOLE:
        return np.array(value, dtype=np.int64)
    return np.array(value, dtype=float)  # null becomes not-a-number


def _stability(value: dict[str, Any]) -> Stability:
    whole = {name: np.array(value[name], dtype=np.int64) for name in ("sizes", "columns")}
    chosen = tuple(np.array(v, dtype=np.int64) for v in value["chosen"])
    supports = tuple(np.array(v, dtype=np.int64) for v in value["supports"])
    coefs = tuple(np.array(v, dtype=float) for v in value["coefs"])
    return Stability(**{**value, **whole, "chosen": chosen, "supports": supports, "coefs": coefs})


def _null(value: dict[str, Any]) -> NullCheck:
    arrays = {name: np.array(v, dtype=float) for name, v in value.items() if isinstance(v, list)}
    return NullCheck(**{**value, **arrays})


def _standard_errors(value: dict[str, Any]) -> StandardErrors:
    chosen = tuple(np.array(v, dtype=float) for v in value["chosen"])
    intercepts = np.array(value["intercepts"], dtype=float)
    return StandardErrors(chosen, np.array(value["always"], dtype=float).reshape(intercepts.size, -1), intercepts)


def _proved(value: dict[str, Any]) -> Proved:
    """Proofs as they are in the file: the names of the columns are those of the curve, see `_with_names`."""
    return Proved(tuple(None if proof is None else _proof(proof) for proof in value["proofs"]))


def _proof(value: dict[str, Any]) -> Proof:
    arrays: dict[str, Any] = {name: np.array(value[name], dtype=np.int64) for name in ("support", "supports", "counts")}
    arrays |= {name: np.array(value[name], dtype=float) for name in ("energies", "within")}
    return Proof(**{**value, **arrays, "names": []})


def _fold_fits(record: dict[str, Any] | None) -> FoldFits | None:
    if record is None:
        return None
    floats = {name: tuple(np.array(v, dtype=float) for v in record[name]) for name in ("coefs", "always_coefs")}
    return FoldFits(
        as_array("sizes", record["sizes"]), **floats, intercepts=as_array("intercepts", record["intercepts"])
    )


def _outer(value: dict[str, Any]) -> OuterError:
    whole = {name: np.array(value[name], dtype=np.int64) for name in ("sizes", "rows", "fold")}
    supports = tuple(np.array(v, dtype=np.int64) for v in value["supports"])
    predictions = np.array(value["predictions"], dtype=float)
    r2 = float("nan") if value["r2"] is None else value["r2"]
    own = {name: value.get(name) for name in ("target_rmse", "target_r2")}
    whole |= {name: np.array(each, dtype=float) for name, each in own.items() if each is not None}
    return OuterError(**{**value, **whole, "supports": supports, "predictions": predictions, "r2": r2})


def _ridge_surface(record: dict[str, Any]) -> RidgeSurface:
    found = record["predictions"]
    return RidgeSurface(
        ridges=as_array("ridges", record["ridges"]),
        errors=as_array("errors", record["errors"]),
        predictions=None if found is None else as_array("predictions", found),
        ridge=float(record["ridge"]),
    )


def _surface(value: dict[str, Any]) -> Surface:
    warmer: dict[str, Any] = {name: _warmer(value[name]) for name in ("warmer", "averaged_warmer")}
    arrays = {name: as_array(name, v) for name, v in value.items() if isinstance(v, list)}
    return Surface(**{**value, **arrays, **warmer})


def _warmer(value: dict[str, Any]) -> Warmer:
    arrays = {name: as_array(name, value[name]) for name in ("gain", "gain_se")}
    return Warmer(**{**value, **arrays})


def _classes(value: dict[str, Any]) -> ClassErrors:
    arrays = {name: np.array(value[name], dtype=float) for name in ("misclassified", "auc")}
    return ClassErrors(**{**value, **arrays})


def _inclusion(value: dict[str, Any]) -> Inclusion:
    floats = {name: np.array(v, dtype=float) for name, v in value.items() if isinstance(v, list)}
    return Inclusion(**{**value, **floats, "columns": np.array(value["columns"], dtype=np.int64)})


def _targets(value: dict[str, Any]) -> TargetErrors:
    arrays = {name: np.array(value[name], dtype=float) for name in ("cv_error", "rmse", "r2", "means", "scales")}
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
    "targets": _targets,
    "inclusion": _inclusion,
    "surface": _surface,
    "training_ranges": lambda value: tuple(None if each is None else _training_range(each) for each in value),
    "groups": lambda value: {name: np.array(own, dtype=np.int64) for name, own in value.items()},
}
"""How each part that may be missing is read."""
