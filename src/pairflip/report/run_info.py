"""What was done, as pairs of texts: data, settings, what was left out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pairflip.text import clean, number, plural, shorten

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

Pairs = list[tuple[str, str]]
_ENTRIES = 12  # of a nested setting


@dataclass(frozen=True)
class About:
    """What is known about a run beside its record; the parameters of `write_report`."""

    title: str | None = None
    target: str | None = None
    dropped: Iterable[str | tuple[str, str]] = ()
    command: str | None = None
    extra: Mapping[str, object] | None = None

    def facts(self, record_facts: Pairs) -> Pairs:
        """Facts of a record, with the command before them and what the caller adds behind."""
        first = [("Command", self.command)] if self.command else []
        more = [(str(key), _text(value)) for key, value in (self.extra or {}).items()]
        return [(clean(key), clean(value)) for key, value in (*first, *record_facts, *more)]


def facts(curve: SizeCurve) -> Pairs:
    """Data, folds, sizes for which nothing was left to a search, engine, version, time."""
    sizes = curve.sizes.tolist()
    solved = [] if curve.exact is None else [k for k, exact in zip(sizes, curve.exact, strict=True) if exact and k]
    proofs = [] if curve.proved is None else zip(sizes, curve.proved, strict=True)
    proved = [k for k, proof in proofs if proof is not None and proof.optimal]
    pairs = [
        ("Data", f"{plural(curve.total_rows, 'row')}, {plural(len(curve.names), 'column')}"),
        ("Data hash", str(curve.data_hash)),
        ("Folds", f"{curve.n_folds:,}"),
    ]
    if solved:
        pairs.append(("Solved in every fold by looking at all sets", f"sizes {_runs(solved)}"))
    if proved:
        pairs.append(("Proved to be the best on all rows", f"sizes {_runs(proved)}"))
    return [
        *pairs,
        ("Engine", str(curve.engine)),
        ("pairflip version", str(curve.version)),
        ("Time", f"{number(curve.seconds, 3)} s"),
    ]


def _runs(sizes: list[int]) -> str:
    """Ascending numbers such as "1 to 4, 7"."""
    runs: list[list[int]] = []
    for size in sizes:
        if runs and size == runs[-1][-1] + 1:
            runs[-1].append(size)
        else:
            runs.append([size])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def flat(settings: Mapping[str, Any], prefix: str = "") -> Pairs:
    """Settings as flat pairs, nested ones with a dot and of these no more than can be read."""
    pairs: Pairs = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            pairs += flat(dict(islice(value.items(), _ENTRIES)), f"{prefix}{key}.")
            if len(value) > _ENTRIES:
                pairs.append((clean(f"{prefix}{key}"), f"and {len(value) - _ENTRIES:,} more"))
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
    return shorten(json.dumps(value, ensure_ascii=False, default=str), 200)
