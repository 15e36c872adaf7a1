"""What the page says, as plain values: texts, tables of texts, charts. No markup of its own, no statistics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.crossval.answer import answer_of
from pairflip.crossval.verdict import r_squared
from pairflip.figures import numbers
from pairflip.labels import NOTHING, clean, column_labels, number, percent, plural, plus_minus, shorten
from pairflip.least_squares import Floats
from pairflip.report import charts

if TYPE_CHECKING:
    from pairflip.crossval.curve import SizeCurve

Rows = list[list[str]]

_POINTS = 40_000  # held-out predictions in the page, over all sizes
_CHAIN_POINTS = 24_000  # temperatures x chains x sizes in the page
_CELLS = 1200  # places of the heat map, and of the paths
_ROWS = 150  # rows of a table that follows the slider
_RESIDUALS = 25
_COLD_ROWS = 12


def page_content(
    curve: SizeCurve,
    *,
    title: str | None,
    target: str | None,
    dropped: Iterable[str | tuple[str, str]],
    command: str | None,
    extra: Mapping[str, object] | None,
) -> dict[str, Any]:
    """Everything the template shows. `data` is what the page's script needs to follow the slider."""
    order = [int(s) for s in np.argsort(curve.sizes, kind="stable")]
    sizes = [int(curve.sizes[s]) for s in order]
    shown = sizes.index(curve.best_size)
    bars = numbers.error_bars(curve)
    counts = numbers.count_map(curve, limit=int(np.clip(_CELLS // len(sizes), 12, 40)), length=30)
    paths = numbers.coefficient_paths(curve, limit=int(np.clip(_CELLS // len(sizes), 20, 60)))
    limit = max(100, min(1000, _POINTS // len(sizes)))
    points = [numbers.held_out(curve, k, limit) for k in sizes]
    curves = _coolings(curve, sizes)
    per_size = [_of_size(curve, k, points[i], curves[i]) for i, k in enumerate(sizes)]
    scatter = charts.scatter_charts(
        points[shown],
        [float(v) for p in points for v in p.predicted],
        [float(v) for p in points for v in p.residual],
    )
    return {
        "title": clean(title) if title else "Which columns, how many, how sure",
        "target": clean(target) if target else None,
        "curve": curve,
        "n_columns": len(curve.names),
        "sizes": sizes,
        "shown": shown,
        "now": per_size[shown],
        "answer": answer_of(curve),
        "size_charts": [charts.size_chart(bars, wide) for wide in (True, False)],
        "size_rows": _size_rows(curve, order),
        "counts": counts,
        "counts_charts": [
            charts.counts_chart(counts, curve.best_size, curve.one_se_size, wide) for wide in (True, False)
        ],
        "count_rows": [
            [label, *(str(c) for c in counts.counts[:, i])]
            for i, label in enumerate(column_labels(curve.names, counts.columns.tolist(), 80))
        ],
        "paths": paths,
        "paths_charts": [charts.paths_chart(paths, wide) for wide in (True, False)],
        "legend": [(charts.legend_mark(i), label) for i, label in enumerate(paths.labels[: charts.NAMED])],
        "path_rows": [
            [label, *(number(c) for c in paths.coefs[:, i])]
            for i, label in enumerate(column_labels(curve.names, paths.columns.tolist(), 80))
        ],
        "scatter": scatter,
        "points_cut": points[0].cut,
        "cooling": charts.cooling_charts(curves, shown) if any(c.temperature.size for c in curves) else (),
        "always": column_labels(curve.names, curve.always.tolist(), 80),
        "facts": _facts(curve, command, extra),
        "settings": _settings(curve.settings),
        "dropped": _dropped(dropped),
        "notes": [clean(note) for note in curve.notes],
        "data": {
            "sizes": sizes,
            "shown": shown,
            "rows": points[0].rows.tolist(),
            "observed": _rounded(points[0].observed),
            "predicted": [_rounded(p.predicted) for p in points],
            "cooling": [
                {
                    "temperature": _rounded(c.temperature),
                    "energy": [_rounded(chain) for chain in c.energy],
                    "acceptance": [_rounded(chain, 3) for chain in c.acceptance],
                }
                for c in curves
            ],
            "tables": per_size,
        },
    }


def _coolings(curve: SizeCurve, sizes: Sequence[int]) -> list[numbers.Cooling]:
    steps = 60
    chains = int(np.clip(_CHAIN_POINTS // (steps * len(sizes)), 3, 32))
    return [numbers.cooling(curve, k, chains, steps) for k in sizes]


def _of_size(curve: SizeCurve, size: int, points: numbers.Scatter, cold: numbers.Cooling) -> dict[str, Any]:
    """Texts and tables that follow the slider."""
    at = curve.at(size)
    counts = curve.selection_counts[at]
    support = curve.supports[at].tolist()
    by_count = sorted(range(len(support)), key=lambda i: -int(counts[support[i]]))[:_ROWS]
    columns = [support[i] for i in by_count]
    labels = column_labels(curve.names, columns)
    always = column_labels(curve.names, curve.always.tolist())
    same = round(curve.stability[at] * curve.n_folds)
    share = points.share_explained
    marks = [w for w, k in (("best", curve.best_size), ("one-standard-error", curve.one_se_size)) if k == size]
    return {
        "name": plural(size, "column") + (f" ({' and '.join(marks)} size)" if marks else ""),
        "summary": (
            f"cv_error {plus_minus(curve.cv_error[at], curve.cv_error_se[at])}; explained {percent(share)} of the "
            f"variance of held-out rows; {same:,} of {plural(curve.n_folds, 'fold')} selected exactly these columns; "
            f"{percent(curve.final_agreement[at])} of the chains of the final fit agree."
            + (f" The {_ROWS} columns selected most often are listed." if len(support) > _ROWS else "")
        ),
        "columns": [
            [label, number(curve.coefs[at][i]), f"{counts[j]:,} of {curve.n_folds:,}"]
            for i, j, label in zip(by_count, columns, labels, strict=True)
        ]
        + [[label, number(c), "always in"] for label, c in zip(always, curve.always_coefs[at].tolist(), strict=True)]
        + [["(constant)", number(curve.intercepts[at]), NOTHING]],
        "stand_ins": _stand_ins(curve, columns, counts),
        "fit": f"Root mean square error {number(points.rmse, 3)}, explained {percent(share)} of the variance.",
        "residuals": _residuals(curve, size),
        "chains": cold.cut,
        "cooling": _cooling_rows(cold),
    }


def _stand_ins(curve: SizeCurve, columns: Sequence[int], counts: numbers.Ints) -> Rows:
    rows = []
    for j, label in zip(columns, column_labels(curve.names, columns, 80), strict=True):
        pairs = curve.stand_ins.of(j)
        for (other, r), name in zip(pairs, column_labels(curve.names, [o for o, _ in pairs], 80), strict=True):
            both = " (also chosen)" if other in columns else ""
            rows.append([label, name, _decimals(r, 3), f"{counts[other]:,} of {curve.n_folds:,}{both}"])
    return rows[: 2 * _ROWS]


def _decimals(value: float, count: int) -> str:
    return f"{value:.{count}f}" if np.isfinite(value) else NOTHING


def _residuals(curve: SizeCurve, size: int) -> Rows:
    predicted = curve.predictions[curve.at(size)]
    residual = curve.observed - predicted
    largest = np.argsort(-np.abs(residual), kind="stable")[:_RESIDUALS]
    return [
        [str(curve.held_out_rows[p]), number(curve.observed[p]), number(predicted[p]), number(residual[p], 3)]
        for p in largest
    ]


def _cooling_rows(cold: numbers.Cooling) -> Rows:
    steps = cold.temperature.size
    if not steps:
        return []
    at = np.unique(np.linspace(0, steps - 1, _COLD_ROWS).round().astype(np.int64))
    return [
        [
            number(cold.temperature[t], 3),
            number(cold.energy[:, t].min()),
            number(np.median(cold.energy[:, t])),
            number(cold.energy[:, t].max()),
            percent(float(np.median(cold.acceptance[:, t]))),
        ]
        for t in at
    ]


def _size_rows(curve: SizeCurve, order: Sequence[int]) -> list[dict[str, Any]]:
    """One row a size; the lowest of each criterion is marked."""
    lowest = {name: int(np.argmin(getattr(curve, name))) for name in ("cv_error", "aic", "bic", "ebic")}
    rows = []
    for s in order:
        k = int(curve.sizes[s])
        marks = [text for text, size in (("best", curve.best_size), ("one-SE", curve.one_se_size)) if size == k]
        cells = [
            (str(k) + (f" ({', '.join(marks)})" if marks else ""), False),
            (plus_minus(curve.cv_error[s], curve.cv_error_se[s]), s == lowest["cv_error"]),
            (percent(r_squared(curve, k)), False),
            (number(curve.energy_per_row[s], 3), False),
            (percent(curve.stability[s]), False),
            (percent(curve.agreement[s]), False),
            (number(_spread(curve.chain_cv_error[s]), 2), False),
            *((_decimals(getattr(curve, name)[s], 1), s == lowest[name]) for name in ("aic", "bic", "ebic")),
        ]
        rows.append({"cells": cells, "marked": bool(marks)})
    return rows


def _spread(values: Floats) -> float:
    """Standard deviation; that of rounding errors is zero."""
    spread = float(np.std(values))
    return 0.0 if spread < 1e-12 * float(np.max(np.abs(values))) else spread


def _facts(curve: SizeCurve, command: str | None, extra: Mapping[str, object] | None) -> list[tuple[str, str]]:
    facts = [
        ("Data", f"{plural(curve.n_rows, 'row')}, {plural(len(curve.names), 'column')}"),
        ("Data hash", str(curve.data_hash)),
        ("Folds", f"{curve.n_folds:,}"),
        ("Engine", str(curve.engine)),
        ("pairflip version", str(curve.version)),
        ("Time", f"{number(curve.seconds, 3)} s"),
    ]
    if command:
        facts.insert(0, ("Command", command))
    facts += [(str(key), _text(value)) for key, value in (extra or {}).items()]
    return [(clean(key), clean(value)) for key, value in facts]


def _settings(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Settings as flat pairs, nested ones with a dot."""
    pairs: list[tuple[str, str]] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            pairs += _settings(value, f"{prefix}{key}.")
        else:
            pairs.append((clean(f"{prefix}{key}"), clean(_text(value))))
    return pairs


def _text(value: object) -> str:
    """A setting on one line; long lists are cut."""
    if isinstance(value, float):
        return number(value, 6)
    if isinstance(value, str):
        return shorten(value, 400)
    if isinstance(value, (list, tuple)) and len(value) > 12:
        return f"{_text(list(value[:3]))[:-1]}, …, {_text(value[-1])}] ({len(value)} values)"
    if isinstance(value, (list, tuple)) and all(isinstance(v, float) for v in value):
        return f"[{', '.join(number(v, 6) for v in value)}]"
    try:
        return shorten(json.dumps(value, ensure_ascii=False, default=str), 200)
    except (TypeError, ValueError):
        return shorten(str(value), 200)


def _dropped(dropped: Iterable[str | tuple[str, str]]) -> list[tuple[str, str]]:
    """(what, why) of what was left out of the table."""
    pairs = [(item, "") if isinstance(item, str) else (item[0], item[1]) for item in dropped]
    shown = [(clean(what), clean(why) if why else "") for what, why in pairs[:200]]
    return shown + ([(f"and {len(pairs) - 200:,} more", "")] if len(pairs) > 200 else [])


def _rounded(values: Any, digits: int = 4) -> list[float | None]:
    """Numbers for a chart in few characters; None for what is not finite."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=float).tolist()]
