"""A curve in one JSON file, whose parts have to fit each other when it is read, and as labelled arrays for xarray."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from pairflip.losses import SEVERAL, loss_named
from pairflip.preparation import Preparation
from pairflip.search.draws import as_tree
from pairflip.search.prove import Proof
from pairflip.selection import curve as records
from pairflip.selection.curve import SizeCurve
from pairflip.selection.settings import RULES
from pairflip.selection.stability import Clusters, Stability
from pairflip.supports import ABSENT, Ints

if TYPE_CHECKING:
    import xarray as xr

SCHEMA = 4  # since version 0.2
_KIND = "pairflip size curve"
_SPARSE = "selection_counts"
_ROUNDING = 1e-9
MOST_PREDICTIONS = 1_000_000
"""Held-out predictions of all ridge terms are written up to this number (some 20 MB)."""

_SHAPES: dict[type, dict[str, str]] = {
    SizeCurve: {
        "S": "sizes cv_error=f cv_error_se energy_per_row energies exact criteria"
        " unchanged=1 agreement=1 final_agreement=1",
        "S q": "intercepts=f",
        "S A q": "always_coefs=f",
        "S N": "selection_counts",
        "S P": "predictions=f",
        "S C": "chain_cv_error",
        "P": "held_out_rows=M held_out_fold=F held_out_unit observed=f weights=f",
        "A": "always=N!",
        "S|F ?": "fold_supports=N-",
        "S|?": "supports=N!",
        "S|? q": "coefs=f",
        "S|": "training_ranges proved",
        "?": "groups=N!",
    },
    records.StandIns: {"U": "columns=N!", "U T": "others=N- correlation"},
    records.AnnealCurves: {"S steps": "betas", "S chains steps": "energy acceptance"},
    records.SampledErrors: {"K t": "error=f fold=F"},
    records.FoldFits: {
        "T": "sizes",
        "T|F ? q": "coefs=f",
        "T|F A q": "always_coefs=f",
        "T F q": "intercepts=f",
        "T|": "sampled",
    },
    records.TrainingRange: {"d": "means scales", "d r": "factor", "M": "leverages"},
    records.StandardErrors: {"S": "intercepts", "S A": "always", "S|?": "chosen"},
    records.ClassErrors: {"c": "shares=1", "S": "misclassified auc"},
    records.SurvivalErrors: {"P": "times", "S P": "risks", "S": "concordance"},
    records.NullCheck: {"n": "r2 set_frequency overlap highest"},
    Proof: {"k": "support=N!", "n k": "supports=N!", "n": "energies", "L": "within counts", "|?": "dependent=N!"},
    records.OuterError: {
        "G": "sizes",
        "G|?": "supports=N!",
        "O": "rows=M fold=G",
        "O q": "predictions",
        "q": "target_rmse target_r2",
    },
    records.RidgeSurface: {"R": "ridges", "R S": "errors", "R S P": "predictions"},
    records.TargetErrors: {"S q": "cv_error rmse r2", "F q": "means scales"},
    records.Average: {
        "U": "columns=N!",
        "V": "selected=N!",
        "U q": "coefs=f",
        "A q": "always_coefs=f",
        "q": "intercept=f",
        "n": "rows=M weights",
        "n q": "observed=f predictions=f",
    },
    records.ChosenError: {},
    records.Inclusion: {"n": "columns=N! probability error coef_mean coef_sd"},
    Clusters: {"|?": "members", "w": "widths numbers"},
    Stability: {
        "Z": "sizes",
        "U": "columns=N!",
        "N": "profile",
        "Z|": "clusters",
        "Z|?": "chosen",
        "Z|B ?": "supports",
        "Z|B ? q": "coefs",
    },
}
"""Shapes of the arrays of each record, in letters: S sizes, M rows, N columns, F folds, P held-out
predictions, A forced ones.

q are targets or classes, an axis that is there only where there are several; other letters take the first length they
meet within a record, ? any length. Before a bar stands the length of a tuple. After "=" stands what the numbers are: f
finite, 1 fractions, a letter indices below that length; N! different ones in each row, N- perhaps -1 among them.
"""
_OF_LOSS = {"targets": (SEVERAL,), "classes": ("logistic", "multinomial"), "survival": ("cox",)}
_IMPUTED = ("missing", "same", "of")
_FACTS = {
    "p_value": (0.0, 1.0),
    "autocorrelation": (-1.0, 1.0),
    "identical_rows": (0, np.inf),
    "few_rows": (0, np.inf),
    "few_groups": (0, np.inf),
    "alike_rows": (0.0, 1.0),
    "alike_values": (0, np.inf),
    "error_of_the_mean": (0.0, np.inf),
}


def curve_to_json(curve: SizeCurve) -> dict[str, Any]:
    """Plain lists and numbers; what is not a number is null, and counts are kept for selected columns only."""
    record: dict[str, Any] = {"kind": _KIND, "schema": SCHEMA, "best_size": curve.best_size}
    record |= {"one_se_size": curve.one_se_size, **plain(curve)}
    record[_SPARSE] = [[[int(j), int(row[j])] for j in np.flatnonzero(row)] for row in curve.selection_counts]
    if curve.proved is not None:
        for proof in filter(None, record["proved"]):
            del proof["names"]  # those of the curve
        record["proved"] = {"proofs": record["proved"]}
    if curve.preparation is not None:
        record["preparation"] = curve.preparation.to_dict()
    predictions = curve.ridge_predictions
    if predictions is not None and predictions.size > MOST_PREDICTIONS:
        record["ridge_surface"]["predictions"] = None
    return record


def plain(value: Any) -> Any:
    """Records, tuples and arrays as dictionaries, lists and numbers; None for what is not finite."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {name: plain(v) for name, v in value.items()}
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return np.where(np.isfinite(value), value.astype(object), np.array(None)).tolist()
        return value.tolist()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def curve_from_json(record: dict[str, Any]) -> SizeCurve:
    """The curve of a record that `curve_to_json` made; a record of which parts do not fit is refused."""
    record = _upgraded(record)
    names, labels = record["names"], (record.get("classes") or {}).get("labels", ())
    counts = np.zeros((len(record[_SPARSE]), len(names)), dtype=np.int64)
    for row, selected in zip(counts, record[_SPARSE], strict=True):
        for column, count in selected:
            row[column] = count
    record = {**record, _SPARSE: counts}
    preparation = record.pop("preparation", None)
    if record.get("proved") is not None:
        proofs = record["proved"]["proofs"]
        record["proved"] = [None if proof is None else {**proof, "names": names} for proof in proofs]
    outputs = labels if record.get("targets") is None else record["targets"]["names"]
    lengths = {
        "S": len(record["sizes"]),
        "N": len(names),
        "F": record["n_folds"],
        "P": len(record["observed"]),
        "M": record["n_rows"],
        "A": len(record["always"]),
    }
    if record.get("targets") is not None or len(labels) > 2:
        lengths["q"] = len(outputs)
    curve: SizeCurve = _read(SizeCurve, record, "", lengths)
    _check_curve(curve)
    _check_by_size(curve)
    _check_other_parts(curve)
    if preparation is not None:
        curve = replace(curve, preparation=Preparation.from_dict(preparation, curve.names))
    return curve


def _upgraded(record: dict[str, Any]) -> dict[str, Any]:
    """A record of an older version as this one would have written it."""
    record = dict(record)
    if "ridges" in (record.get("surface") or {}):  # an older name; files of 0.2 may hold another part under it
        record["ridge_surface"] = record["surface"]
    if "share" in (record.get("classes") or {}):  # of the event: only two classes had been thought of
        share = record["classes"]["share"]
        record["classes"] = {**record["classes"], "shares": [1.0 - share, share]}
    if "supports" in (record.get("average") or {}):  # over half-samples, before version 0.4
        record["average"] = None
    return record


def _read(kind: Any, value: Any, name: str, lengths: dict[str, int], shape: str = "") -> Any:
    """A value of the file as the type, and of the shape, that a record declares for it; other values are refused."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):  # all are of a type and None
        return None if value is None else _read(inner[0], value, name, lengths, shape)
    if kind in _SHAPES:
        known = dict(lengths)
        return kind(
            **{
                field: _read(hint, value[field], f"{name} {field}".strip(), known, spec)
                for field, hint, spec, needed in _declared(kind)
                if needed or field in value
            }
        )
    if origin is np.ndarray:
        shape, _, rule = shape.partition("=")
        array = _shaped(_array(value, get_args(inner[1])[0], name), shape, name, lengths)
        _check_rule(array, rule, name, lengths)
        return array
    if origin is tuple:
        length, _, of_each = shape.rpartition("|")
        _require(isinstance(value, list), name, "expected a list")
        expected = lengths.setdefault(length, len(value)) if length else len(value)
        _require(len(value) == expected, name, f"expected {expected}, one for each size or fold")
        return tuple(_read(inner[0], each, name, lengths, of_each) for each in value)
    if origin in (list, dict):
        _require(isinstance(value, origin), name, "it is of the wrong type")
        if origin is list:
            return [_read(inner[0], each, name, lengths) for each in value]
        return {key: _read(inner[1], each, name, lengths, shape) for key, each in value.items()}
    fits = type(value) is int or (type(value) is float and np.isfinite(value)) if kind is float else type(value) is kind
    _require(fits or kind is Any, name, "it is of the wrong type")
    return value


@cache
def _declared(kind: Any) -> list[tuple[str, Any, str, bool]]:
    """Name, type and shape of each field of a record, and whether it has to be in a file."""
    hints = get_type_hints(kind)
    ruled = [(spec, *field.partition("=")) for spec, each in _SHAPES[kind].items() for field in each.split()]
    shapes = {field: f"{spec}={rule}" for spec, field, _, rule in ruled}
    return [(each.name, hints[each.name], shapes.get(each.name, ""), each.default is MISSING) for each in fields(kind)]


def _array(value: Any, kind: type, name: str) -> NDArray[Any]:
    """Lists of the file as an array, where NumPy alone would take 1.5 and "1" for 1; null becomes not-a-number."""
    given = np.array(value)
    allowed = {np.int64: "iu", np.float64: "iuf", np.bool_: "b"}[kind]
    fits = given.size == 0 or given.dtype.kind in allowed
    if kind is np.float64 and given.dtype.kind == "O":
        fits = all(each is None or type(each) in (int, float) for each in given.ravel())
    _require(fits, name, "expected whole numbers" if kind is np.int64 else "expected numbers")
    return np.array(value, dtype=kind)


def _shaped(array: NDArray[Any], shape: str, name: str, lengths: dict[str, int]) -> NDArray[Any]:
    """The array, if its shape is that of the letters; an empty list has lost its shape and gets it back."""
    letters = [letter for letter in shape.split() if letter != "q" or "q" in lengths]
    if array.size == 0:
        given = dict(enumerate(array.shape))
        full = tuple(lengths.get(letter, given.get(axis, 0)) for axis, letter in enumerate(letters))
        if 0 in full and array.shape == full[: full.index(0) + 1]:
            array = array.reshape(full)
    _require(array.ndim == len(letters), name, f"expected {len(letters)} axes")
    for letter, length in zip(letters, array.shape, strict=True):
        expected = length if letter == "?" else lengths.setdefault(letter, length)
        _require(length == expected, name, f"expected length {expected}, not {length}")
    return array


def _check_rule(array: NDArray[Any], rule: str, name: str, lengths: dict[str, int]) -> None:
    """Refuse numbers that are not finite, fractions, or indices below a length, as the rule asks for."""
    if rule == "f":
        _require(bool(np.isfinite(array).all()), name, "expected finite numbers")
    elif rule == "1":
        _check_range(array, 0, 1 + _ROUNDING, name)
    elif rule:
        _check_range(array, ABSENT if rule.endswith("-") else 0, lengths[rule[0]] - 1, name)
        if rule.endswith("!"):
            _check_different(array, name)


def _check_curve(curve: SizeCurve) -> None:
    """Refuse numbers that cannot be, and parts that do not belong to the loss."""
    n = len(curve.names)
    _require(curve.n_rows > 0 and curve.n_folds > 0 and n > 0, "n_rows, n_folds or names", "expected at least one")
    _require(0 in curve.sizes, "sizes", "expected 0 among them")
    _check_range(curve.sizes, 0, n, "sizes")
    _check_different(curve.sizes, "sizes")
    loss = curve.settings.get("loss", "squares")
    loss_named(loss)  # refuses one that is not known
    rule = curve.settings.get("choose", "auto")
    _require(rule in RULES and (rule not in ("bic", "ebic") or rule in curve.criteria), "settings choose")
    for name, losses in _OF_LOSS.items():
        _require((getattr(curve, name) is not None) == (loss in losses), name)
    _require(bool((curve.cv_error >= -_ROUNDING).all()), "cv_error", "expected no negative numbers")
    _require(bool((curve.weights >= 0).all() and curve.weights.any()), "weights", "expected no negative numbers")
    _check_range(curve.selection_counts, 0, curve.n_folds, _SPARSE)
    for name, (low, high) in _FACTS.items():
        value = curve.facts.get(name, low)
        fits = type(value) in (int, float) and low <= value <= high
        _require(fits, f"facts {name}", f"expected a number from {low:g} to {high:g}")
    pairs = curve.facts.get("copied_rows", [])
    fits = isinstance(pairs, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(type(row) in (int, str) for row in pair) for pair in pairs
    )
    _require(fits, "facts copied_rows", "expected pairs of rows")
    fits = isinstance(curve.facts.get("alike_by", ""), str) and ("alike_rows" in curve.facts) == (
        "alike_by" in curve.facts
    )
    _require(fits, "facts alike_by", "expected the name of a column")
    values = curve.facts.get("two_values", [0, 1])
    fits = isinstance(values, list) and [type(each) in (int, float) for each in values] == [True, True]
    _require(fits, "facts two_values", "expected two numbers")
    stands_for = curve.facts.get("stands_for", {"rows": 1, "blocks": 1, "missing": {}})
    fits = isinstance(stands_for, dict) and isinstance(stands_for.get("missing"), dict)
    numbers = [stands_for.get("rows"), stands_for.get("blocks"), *stands_for["missing"].values()] if fits else [None]
    fits = all(type(each) is int and each >= 0 for each in numbers)
    _require(fits, "facts stands_for", "expected numbers of rows and blocks, and of missing values by column")
    imputed = curve.facts.get("imputed", dict.fromkeys(_IMPUTED, 0))
    fits = isinstance(imputed, dict) and [type(imputed.get(name)) for name in _IMPUTED] == [int] * len(_IMPUTED)
    _require(fits, "facts imputed", f"expected the numbers {', '.join(_IMPUTED)}")


def _check_by_size(curve: SizeCurve) -> None:
    """Refuse fits of another number of columns than their size says."""
    errors = [each for each in (curve.standard_errors, curve.robust_errors, curve.clustered_errors) if each is not None]
    ranges = curve.training_ranges or (None,) * len(curve.sizes)
    for at, (size, support, known) in enumerate(zip(curve.sizes.tolist(), curve.supports, ranges, strict=True)):
        _require(not np.isin(support, curve.always).any(), "supports", "expected no column that is always in the model")
        _require(len(curve.coefs[at]) == support.size, "coefs")
        fits = all(each.chosen[at].size == support.size for each in errors)
        _require(fits, "standard_errors, robust_errors or clustered_errors")
        if curve.groups is None:
            _check_present(curve.fold_supports[at], "fold_supports")
            fits = support.size == curve.fold_supports[at].shape[1] == size
            _require(fits, "supports", "expected as many columns as the size says")
        fits = known is None or known.means.size == support.size + curve.always.size
        _require(fits, "training_ranges", "they do not fit the columns of the sizes")
    if curve.fold_fits is not None:
        for size, coefs in zip(curve.fold_fits.sizes.tolist(), curve.fold_fits.coefs, strict=True):
            fits = coefs.shape[1] == curve.fold_supports[curve.at(size)].shape[1]
            _require(fits, "fold_fits", "they do not fit the columns of the folds")


def _check_other_parts(curve: SizeCurve) -> None:
    """Refuse parts that were asked for besides and do not fit the rest."""
    n, classes, ridges, stability = len(curve.names), curve.classes, curve.ridge_surface, curve.stability
    if classes is not None:
        _require(classes.shares.size == len(classes.labels) >= 2, "classes")
        _require(classes.several == (classes.auc is None), "classes")
    if ridges is not None:
        _require(ridges.ridge in ridges.ridges, "ridge_surface", "they do not fit the sizes")
    if (average := curve.average) is not None:
        _require(bool((average.weights > 0).all()), "average weights", "expected numbers above 0")
    if stability is not None:
        _require(stability.pairs > 0 and stability.rows > 0 and stability.n_candidates > 0, "stability")
        _require(bool(np.isin(stability.sizes, curve.sizes).all()), "stability sizes")
        fits = stability.columns.size == len(stability.names) and bool((np.diff(stability.columns) > 0).all())
        _require(fits, "stability columns")
        for at, size in enumerate(stability.sizes.tolist()):
            chosen, supports = stability.chosen[at], stability.supports[at]
            fits = supports.shape == stability.coefs[at].shape[:2] == (2 * stability.pairs, size)
            known = bool(np.isin([*chosen, *supports.ravel()], stability.columns).all())
            _require(fits and known and chosen.size == size, "stability supports")
        for clusters in stability.clusters or ():
            members = np.concatenate([*clusters.members, np.zeros(0, np.int64)])
            _check_range(members, 0, n - 1, "stability clusters")
            _check_different(members, "stability clusters")
            _check_range(clusters.widths, 1, n, "stability clusters")


def _check_present(columns: Ints, name: str) -> None:
    _require(bool((columns != ABSENT).all()), name, "expected columns only, where there are no groups")


def _check_different(columns: Ints, name: str) -> None:
    fits = all(np.unique(row).size == row.size for row in np.atleast_2d(columns))
    _require(fits, name, "expected different columns")


def _check_range(values: NDArray[Any], low: float, high: float, name: str) -> None:
    beyond = values[(values < low) | (values > high)]
    if beyond.size:
        raise ValueError(f"{name} has {beyond.flat[0]:g}; expected {low:g} to {high:g}")


def _require(fits: bool, name: str, why: str = "it does not fit the rest") -> None:
    if not fits:
        raise ValueError(f"{name}: {why}")


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


def load_record(path: str | os.PathLike[str]) -> tuple[SizeCurve, dict[str, Any]]:
    """Read a curve back, and the record of its file, which may hold more."""
    try:
        # JSON knows neither NaN nor Infinity: `int` refuses these words.
        record = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=int)
    except OSError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be read ({error.strerror or error}).") from None
    except (ValueError, RecursionError):  # a file of a hundred thousand brackets
        raise ValueError(f"{os.fspath(path)!r} is not JSON; expected a file written by SizeCurve.save.") from None
    if not isinstance(record, dict) or record.get("kind") != _KIND:
        raise ValueError("this JSON file is not a pairflip size curve; expected one written by SizeCurve.save.")
    if record.get("schema") != SCHEMA:
        raise ValueError(
            f"the curve has schema {record.get('schema')}, but this version of pairflip reads schema {SCHEMA}; select "
            "again."
        )
    try:
        return curve_from_json(record), record
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error).rstrip(".").splitlines()[0]
        raise ValueError(f"{os.fspath(path)!r} is not a complete size curve ({reason[:120]}).") from None


def to_datatree(curve: SizeCurve) -> xr.DataTree:
    """Groups ``size_curve`` (size, column), ``held_out`` (size, prediction), ``annealing`` (size, chain, draw)."""
    if curve.outputs is not None:
        raise ValueError("to_datatree is for one target, and this result has several; use to_pandas, or save.")
    by_size = ("cv_error", "cv_error_se", "energy_per_row", "unchanged", "agreement", "intercepts", "energies")
    mask = np.zeros((curve.sizes.size, len(curve.names)), dtype=bool)
    coef = np.zeros(mask.shape)
    for s, (support, values) in enumerate(zip(curve.supports, curve.coefs, strict=True)):
        mask[s, support] = True
        coef[s, support] = values
    by_column = {"selection_counts": curve.selection_counts, "mask": mask, "coef": coef}
    size_curve = {
        **{name: ("size", getattr(curve, name)) for name in by_size},
        **{name: ("size", values) for name, values in curve.criteria.items()},
        **{name: (("size", "column"), values) for name, values in by_column.items()},
        "chain_cv_error": (("size", "chain"), curve.chain_cv_error),
    }
    held_out = {
        "prediction": (("size", "place"), curve.predictions),
        "observed": ("place", curve.observed),
        "row": ("place", curve.held_out_rows),
        "fold": ("place", curve.held_out_fold),
        "weight": ("place", curve.weights),
    }
    annealing = {
        "beta": (("size", "draw"), curve.annealing.betas),
        "energy": (("size", "chain", "draw"), curve.annealing.energy),
        "acceptance_rate": (("size", "chain", "draw"), curve.annealing.acceptance),
    }
    coords: dict[str, Any] = {"size": curve.sizes}
    names = np.array(curve.names, dtype=object).astype(str)
    about = {"best_size": curve.best_size, "one_se_size": curve.one_se_size, "data_hash": curve.data_hash}
    return as_tree(
        {
            "size_curve": {"data_vars": size_curve, "coords": {**coords, "column": names}, "attrs": about},
            "held_out": {"data_vars": held_out, "coords": coords},
            "annealing": {"data_vars": annealing, "coords": coords},
        }
    )
