"""Choosing the number of columns by cross validation: folds, tasks, journal, and the curve that comes out."""

from __future__ import annotations

from pairflip.crossval.curve import SizeCurve
from pairflip.crossval.journal import JournalError, merge_journals
from pairflip.crossval.selection import run_shard, select_many, select_size
from pairflip.crossval.settings import Selection

__all__ = ["JournalError", "Selection", "SizeCurve", "merge_journals", "run_shard", "select_many", "select_size"]
