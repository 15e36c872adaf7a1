"""What the page says, as plain values: texts, tables of texts, charts. No markup of its own, no statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.crossval.answer import answer_of
from pairflip.present import charts, cooling_numbers, done, numbers, panels, size_tables
from pairflip.present.per_size import of_size
from pairflip.text import aligned, clean, column_labels, shorten

if TYPE_CHECKING:
    from pairflip.crossval.curve import SizeCurve

_POINTS = 40_000  # held-out predictions in the page, over all sizes
_CHAIN_POINTS = 24_000  # temperatures x chains x sizes in the page
_CELLS = 1200  # places of the heat map, and of the paths


def page_content(
    curve: SizeCurve,
    *,
    title: str | None,
    target: str | None,
    dropped: Iterable[str | tuple[str, str]],
    command: str | None,
    extra: Mapping[str, object] | None,
    row_names: Sequence[object] | None,
) -> dict[str, Any]:
    """Everything the template shows. `data` is what the page's script needs to follow the slider."""
    sizes = [int(k) for k in np.sort(curve.sizes)]
    tried = [k for k in sizes if k > 0]
    shown = sizes.index(numbers.size_to_show(curve))
    bars = numbers.error_bars(curve)
    counts = numbers.count_map(curve, limit=int(np.clip(_CELLS // len(sizes), 12, 40)), length=30)
    paths = numbers.coefficient_paths(curve, limit=int(np.clip(_CELLS // len(sizes), 20, 60)))
    limit = max(100, min(1000, _POINTS // len(sizes)))
    points = [numbers.held_out(curve, k, limit) for k in sizes]
    cold = _coolings(curve, sizes)
    rows = _row_labels(curve, row_names)
    per_size = [of_size(curve, k, points[i], cold[i], rows) for i, k in enumerate(sizes)]
    frames = [panels.scatter_frames(p) | panels.cooling_frames(c) for p, c in zip(points, cold, strict=True)]
    annealed = any(c.temperature.size for c in cold)
    chains = max(c.energy.shape[0] for c in cold)
    return {
        "title": clean(title) if title else "Which columns, how many, how sure",
        "target": clean(target) if target else None,
        "curve": curve,
        "n_columns": len(curve.names),
        "sizes": sizes,
        "tried": tried,
        "shown": shown,
        "now": per_size[shown],
        "answer": answer_of(curve),
        "without": bars.without_text if np.isfinite(bars.without) else None,
        "size_charts": [charts.size_chart(bars, wide) for wide in (True, False)],
        "size_heads": size_tables.HEADS,
        "size_rows": size_tables.size_rows(curve),
        "size_about": size_tables.explanation(curve),
        "criteria_heads": size_tables.CRITERIA_HEADS,
        "criteria_rows": size_tables.criteria_rows(curve),
        "search_heads": size_tables.SEARCH_HEADS,
        "search_rows": size_tables.search_rows(curve),
        "counts": counts,
        "counts_charts": [charts.counts_chart(counts, bars.marks, wide) for wide in (True, False)],
        "count_rows": [
            [label, *(str(c) for c in counts.counts[:, i])]
            for i, label in enumerate(column_labels(curve.names, counts.columns.tolist(), 80))
        ],
        "paths": paths,
        "paths_charts": [charts.paths_chart(paths, wide) for wide in (True, False)],
        "legend": [(charts.legend_mark(i), label) for i, label in enumerate(paths.labels[: charts.NAMED])],
        "path_rows": _path_rows(curve, paths),
        "scatter": panels.scatter_charts(points[shown], frames[shown], per_size[shown]["fit"]),
        "points_cut": points[0].cut,
        "repeats": round(curve.held_out_rows.size / np.unique(curve.held_out_rows).size),
        "row_head": "Row (from 1)" if row_names is None else "Row",
        "cooling": panels.cooling_charts(cold[shown], chains, frames[shown]) if annealed else (),
        "always": column_labels(curve.names, curve.always.tolist(), 80),
        "facts": done.facts(curve, command, extra),
        "settings": done.flat(curve.settings),
        "dropped": done.left_out(dropped),
        "notes": [clean(note) for note in curve.notes],
        "data": {
            "sizes": sizes,
            "shown": shown,
            "rows": [rows[row] for row in points[0].rows.tolist()],
            "observed": _rounded(points[0].observed),
            "predicted": [_rounded(p.predicted) for p in points],
            "frames": [{role: frame.record() for role, frame in f.items()} for f in frames],
            "cooling": [
                {
                    "temperature": _rounded(c.temperature),
                    "energy": [_rounded(chain) for chain in c.above],
                    "acceptance": [_rounded(chain, 3) for chain in c.acceptance],
                }
                for c in cold
            ],
            "tables": per_size,
        },
    }


def _coolings(curve: SizeCurve, sizes: Sequence[int]) -> list[cooling_numbers.Cooling]:
    steps = 60
    chains = int(np.clip(_CHAIN_POINTS // (steps * len(sizes)), 3, 32))
    return [cooling_numbers.cooling(curve, k, chains, steps) for k in sizes]


def _row_labels(curve: SizeCurve, names: Sequence[object] | None) -> list[str]:
    """Names of the rows where they are given, else numbers from 1."""
    if names is None:
        return [str(row + 1) for row in range(curve.n_rows)]
    labels = [shorten(clean(name), 60) for name in names]
    if len(labels) != curve.n_rows:
        raise ValueError(
            f"row_names has {len(labels)} names for a table of {curve.n_rows} rows; expected one for each row, in the "
            "order of the table."
        )
    return labels


def _path_rows(curve: SizeCurve, paths: numbers.Paths) -> list[list[str]]:
    """Coefficients by column and size; all of the table with the same decimals or the same digits."""
    texts = np.array(aligned(paths.coefs.ravel(), least=3), dtype=object).reshape(paths.coefs.shape)
    labels = column_labels(curve.names, paths.columns.tolist(), 80)
    return [[label, *texts[:, i]] for i, label in enumerate(labels)]


def _rounded(values: Any, digits: int = 4) -> list[float | None]:
    """Numbers for a chart in few characters; None for what is not finite."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=float).tolist()]
