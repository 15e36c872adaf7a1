"""Choosing the number of columns by cross validation: folds, tasks, journal, and the curve that comes out."""

from __future__ import annotations

from pairflip.selection.curve import SizeCurve
from pairflip.selection.journal import JournalError, merge_journals
from pairflip.selection.run import run_shard, select_many, select_size
from pairflip.selection.settings import Selection

__all__ = ["JournalError", "Selection", "SizeCurve", "merge_journals", "run_shard", "select_many", "select_size"]
