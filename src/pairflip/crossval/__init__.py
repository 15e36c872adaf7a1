"""Choosing the number of columns by cross validation: folds, tasks, journal, and the curve that comes out."""

from __future__ import annotations

from pairflip.crossval.curve import SizeCurve
from pairflip.crossval.journal import JournalError, merge_journals
from pairflip.crossval.many import select_many
from pairflip.crossval.selection import run_shard, select_size

__all__ = ["JournalError", "SizeCurve", "merge_journals", "run_shard", "select_many", "select_size"]
