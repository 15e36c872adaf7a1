"""Under which limits columns were chosen, in words: from the settings of a run (`limits.Limits.settings`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairflip.text import number, plural


def limit_words(settings: Mapping[str, Any]) -> str:
    """One sentence for each limit on what may be chosen together; empty where there was none."""
    said = []
    if settings.get("one_per_group"):
        said.append(f"At most one column is chosen of each of {plural(len(settings['column_groups']), 'group')}.")
    if settings.get("min_distance"):
        by = "by the numbers in their names" if settings.get("distance_by") == "names" else "in places"
        said.append(f"No two columns are closer than {number(settings['min_distance'], 6)} ({by}).")
    if settings.get("hierarchy"):
        said.append("A product is chosen only together with its factors.")
    return " ".join(said)
