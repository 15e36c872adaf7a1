"""A curve for other programs: one JSON file with everything in it, and labelled arrays for xarray."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.selection.curve import SizeCurve
from pairflip.selection.curve_parts import READERS, as_array, check_curve, numbers, whole_numbers
from pairflip.selection.records import (
    AnnealCurves,
    FoldFits,
    Proved,
    StandIns,
)

SCHEMA = 4
READABLE = (1, 2, 3, 4)  # version 0.1 wrote 1: without size 0, facts and units; 1 and 2 name three criteria
_KIND = "pairflip size curve"
_OPTIONAL = (
    "stability",
    "null",
    "standard_errors",
    "fold_fits",
    "outer",
    "ridge_surface",
    "exact",
    "proved",
    "classes",
    "survival",
    "targets",
    "groups",
    "inclusion",
    "training_ranges",
)  # before 4, "stability" was what `unchanged` is now
_SPARSE = "selection_counts"
MOST_PREDICTIONS = 1_000_000
"""Held-out predictions of all ridge terms are written up to this number (some 20 MB)."""


def curve_to_json(curve: SizeCurve) -> dict[str, Any]:
    """Plain lists and numbers; what is not a number is null, and counts are kept for selected columns only."""
    record: dict[str, Any] = {"kind": _KIND, "schema": SCHEMA, "best_size": curve.best_size}
    record["one_se_size"] = curve.one_se_size
    for field in fields(curve):
        value = getattr(curve, field.name)
        record[field.name] = _sparse(value) if field.name == _SPARSE else _plain(value)
    for proof in record["proved"]["proofs"] if curve.proved is not None else ():
        if proof is not None:
            del proof["names"]  # those of the curve
    predictions = curve.ridge_predictions
    if predictions is not None and predictions.size > MOST_PREDICTIONS:
        record["ridge_surface"]["predictions"] = None
    return record


def curve_from_json(record: dict[str, Any]) -> SizeCurve:
    """The curve of a record that `curve_to_json` made."""
    _check_kind(record)
    if "ridges" in (record.get("surface") or {}):  # an older name; files of 0.2 may hold another part under it
        record = {**record, "ridge_surface": record["surface"]}
    if record["schema"] == 1:
        record = {**record, "facts": {}, "held_out_unit": record["held_out_fold"]}
    if record["schema"] < 3:
        record = {**record, "criteria": {name: record[name] for name in ("aic", "bic", "ebic")}}
    if record["schema"] < 4:
        record = {**record, "unchanged": record["stability"], "stability": None}
    n = len(record["names"])
    values: dict[str, Any] = {}
    for field in fields(SizeCurve):
        value: Any = record.get(field.name) if field.name in _OPTIONAL else record[field.name]
        if field.name == _SPARSE:
            value = _dense(value, n)
        elif field.name == "stand_ins":
            value = StandIns(**{name: as_array(name, v) for name, v in value.items()})
            shape = value.columns.size, -1
            value = StandIns(value.columns, value.others.reshape(shape), value.correlation.reshape(shape))
        elif field.name == "annealing":
            value = AnnealCurves(**{name: as_array(name, v) for name, v in value.items()})
            sizes = len(record["sizes"])
            steps = value.betas.size // max(1, sizes)
            full = sizes, -1 if value.energy.size else 0, steps
            betas = value.betas.reshape(sizes, steps)
            value = AnnealCurves(betas, value.energy.reshape(full), value.acceptance.reshape(full))
        elif field.name in _OPTIONAL:
            value = None if value is None else READERS[field.name](value)
        elif field.name in ("fold_supports", "supports"):
            value = tuple(whole_numbers(v) for v in value)
        elif field.name == "coefs":
            value = tuple(numbers(v) for v in value)
        elif field.name == "criteria":
            value = {name: as_array(name, v) for name, v in value.items()}
        elif field.name == "notes":
            value = tuple(value)
        elif isinstance(value, list) and field.name != "names":
            value = as_array(field.name, value)
        values[field.name] = value
    if values["proved"] is not None:
        values["proved"] = _with_names(values["proved"], values["names"])
    shape = values["sizes"].size, values["always"].size
    classes = values["classes"]
    if values["targets"] is not None or (classes is not None and classes.several):
        q = len(classes.labels if values["targets"] is None else values["targets"].names)
        values["coefs"] = tuple(coef.reshape(-1, q) for coef in values["coefs"])
        values["always_coefs"] = values["always_coefs"].reshape(*shape, q)
        if values["fold_fits"] is not None:  # empty lists have lost their shape
            values["fold_fits"] = _with_targets(values["fold_fits"], int(values["n_folds"]), q)
    else:
        values["always_coefs"] = values["always_coefs"].reshape(shape[0], -1)
    curve = SizeCurve(**values)
    check_curve(curve)
    _check_fold_fits(curve)
    _check_ridge_surface(curve)
    _check_ranges(curve)
    return curve


def _with_names(proved: Proved, names: list[str]) -> Proved:
    return Proved(tuple(None if proof is None else replace(proof, names=names) for proof in proved.proofs))


def save_curve(curve: SizeCurve, path: str | os.PathLike[str]) -> None:
    """Write the curve: the file is complete, or it is not there."""
    target = Path(path)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        part.write_text(json.dumps(curve_to_json(curve), allow_nan=False) + "\n", encoding="utf-8")
        os.replace(part, target)
    except OSError as error:
        raise ValueError(f"{str(target)!r} cannot be written ({error.strerror or error}).") from None
    finally:
        with suppress(OSError):
            part.unlink()


def load_curve(path: str | os.PathLike[str]) -> SizeCurve:
    """Read a curve back, equal to what was saved."""
    return load_record(path)[0]


def load_record(path: str | os.PathLike[str]) -> tuple[SizeCurve, dict[str, Any]]:
    """Read a curve back, and the record of its file, which may hold more."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be read ({error.strerror or error}).") from None
    except (ValueError, RecursionError):  # a file of a hundred thousand brackets
        raise ValueError(f"{os.fspath(path)!r} is not JSON; expected a file written by SizeCurve.save.") from None
    _check_kind(record)
    try:
        return curve_from_json(record), record
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error).rstrip(".").splitlines()[0]
        raise ValueError(f"{os.fspath(path)!r} is not a complete size curve ({what[:120]}).") from None


def _refuse_constant(word: str) -> None:
    """JSON knows neither NaN nor Infinity, which Python's reader takes."""
    raise ValueError(word)


def _check_kind(record: Any) -> None:
    if not isinstance(record, dict) or record.get("kind") != _KIND:
        raise ValueError("this JSON file is not a pairflip size curve; expected one written by SizeCurve.save.")
    if record.get("schema") not in READABLE:
        raise ValueError(f"the curve has schema {record.get('schema')}; this version of pairflip reads 1 to {SCHEMA}.")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return np.where(np.isfinite(value), value.astype(object), np.array(None)).tolist()
        return value.tolist()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _with_targets(fits: FoldFits, folds: int, q: int) -> FoldFits:
    """Fits of folds for q targets: (F, k, q), (F, A, q) and (T, F, q)."""
    return FoldFits(
        fits.sizes,
        tuple(each.reshape(folds, each.size // (folds * q), q) for each in fits.coefs),
        tuple(each.reshape(folds, each.size // (folds * q), q) for each in fits.always_coefs),
        fits.intercepts.reshape(-1, folds, q),
    )


def _check_fold_fits(curve: SizeCurve) -> None:
    """Refuse fits of folds that do not belong to the folds' columns."""
    fits = curve.fold_fits
    if fits is None:
        return
    folds, forced = curve.n_folds, curve.always.size
    wanted = [curve.fold_supports[curve.at(size)].shape for size in fits.sizes.tolist()]
    several = () if curve.outputs is None else (curve.n_outputs,)
    if (
        [each.shape for each in fits.coefs] != [(*each, *several) for each in wanted]
        or [each.shape for each in fits.always_coefs] != [(folds, forced, *several)] * len(wanted)
        or fits.intercepts.shape != (len(wanted), folds, *several)
        or not all(np.isfinite(each).all() for each in (*fits.coefs, *fits.always_coefs, fits.intercepts))
    ):
        raise ValueError("fold_fits do not fit the columns of the folds")


def _check_ridge_surface(curve: SizeCurve) -> None:
    """Refuse errors of ridge terms that do not belong to the sizes."""
    ridges = curve.ridge_surface
    if ridges is not None:
        shape = ridges.ridges.size, curve.sizes.size
        if (
            ridges.errors.shape != shape
            or ridges.ridge not in ridges.ridges
            or (ridges.predictions is not None and ridges.predictions.shape != (*shape, curve.observed.size))
        ):
            raise ValueError("the errors of ridge terms do not fit the sizes")


def _check_ranges(curve: SizeCurve) -> None:
    """Refuse ranges of training rows that do not belong to the columns of the sizes."""
    if curve.training_ranges is None:
        return
    for support, known in zip(curve.supports, curve.training_ranges, strict=True):
        shape = (support.size + curve.always.size,)
        if known is not None and not known.means.shape == known.scales.shape == known.factor.shape[:1] == shape:
            raise ValueError("training_ranges do not fit the columns of the sizes")


def _sparse(counts: np.ndarray[Any, Any]) -> list[list[list[int]]]:
    """For each size, [column, folds] of the columns selected at least once."""
    return [[[int(j), int(row[j])] for j in np.flatnonzero(row)] for row in counts]


def _dense(rows: list[list[list[int]]], n_columns: int) -> np.ndarray[Any, Any]:
    counts = np.zeros((len(rows), n_columns), dtype=np.int64)
    for s, row in enumerate(rows):
        for column, count in row:
            counts[s, column] = count
    return counts


if TYPE_CHECKING:
    import xarray as xr


def to_datatree(curve: SizeCurve) -> xr.DataTree:
    """Groups ``size_curve`` (size, column), ``held_out`` (size, prediction), ``annealing`` (size, chain, draw)."""
    try:
        import xarray as xr
    except ImportError:
        raise ImportError("to_datatree needs xarray; install it with: pip install 'pairflip[datatree]'") from None
    if curve.outputs is not None:
        raise ValueError("to_datatree is for one target, and this result has several; use to_pandas, or save.")
    by_size = ("cv_error", "cv_error_se", "energy_per_row", "unchanged", "agreement", "intercepts", "energies")
    mask = np.zeros((curve.sizes.size, len(curve.names)), dtype=bool)
    coef = np.zeros(mask.shape)
    for s, (support, values) in enumerate(zip(curve.supports, curve.coefs, strict=True)):
        mask[s, support] = True
        coef[s, support] = values
    curves = xr.Dataset(
        {
            **{name: ("size", getattr(curve, name)) for name in by_size},
            **{name: ("size", values) for name, values in curve.criteria.items()},
            "selection_counts": (("size", "column"), curve.selection_counts),
            "mask": (("size", "column"), mask),
            "coef": (("size", "column"), coef),
            "chain_cv_error": (("size", "chain"), curve.chain_cv_error),
        },
        coords={"size": curve.sizes, "column": np.array(curve.names, dtype=object).astype(str)},
        attrs={"best_size": curve.best_size, "one_se_size": curve.one_se_size, "data_hash": curve.data_hash},
    )
    held_out = xr.Dataset(
        {
            "prediction": (("size", "place"), curve.predictions),
            "observed": ("place", curve.observed),
            "row": ("place", curve.held_out_rows),
            "fold": ("place", curve.held_out_fold),
            "weight": ("place", curve.weights),
        },
        coords={"size": curve.sizes},
    )
    annealing = xr.Dataset(
        {
            "beta": (("size", "draw"), curve.annealing.betas),
            "energy": (("size", "chain", "draw"), curve.annealing.energy),
            "acceptance_rate": (("size", "chain", "draw"), curve.annealing.acceptance),
        },
        coords={"size": curve.sizes},
    )
    return xr.DataTree.from_dict({"size_curve": curves, "held_out": held_out, "annealing": annealing})
