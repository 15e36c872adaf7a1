"""The report: one HTML page about a `SizeCurve` that a scientist can attach to a paper."""

from __future__ import annotations

from pairflip.present.page import write_report

__all__ = ["write_report"]
