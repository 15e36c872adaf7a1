"""Choosing the number of columns by cross validation: folds, tasks, journal, and the curve that comes out."""

from __future__ import annotations

from pairflip.journal_file import JournalError
from pairflip.selection.after_selection import with_posterior
from pairflip.selection.curve import SizeCurve
from pairflip.selection.journal import merge_journals
from pairflip.selection.run import run_shard, select_many, select_size
from pairflip.selection.settings import Selection
from pairflip.selection.stability import Stability
from pairflip.selection.subsampling import half_sample_stability

__all__ = [
    "JournalError",
    "Selection",
    "SizeCurve",
    "Stability",
    "half_sample_stability",
    "merge_journals",
    "run_shard",
    "select_many",
    "select_size",
    "with_posterior",
]
