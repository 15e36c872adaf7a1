"""The end of a selection: its files, then its answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairflip.crossval import SizeCurve
    from pairflip.tables import Table


def finish(
    curve: SizeCurve,
    table: Table,
    command: str,
    settings: dict[str, Any],
    folder: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Write the result folder, then print the result."""
    from pairflip.cli.result_files import Result, write_files
    from pairflip.cli.result_folder import new_folder
    from pairflip.cli.shown import print_curve, print_json, print_places

    result = Result(curve, table, command, settings)
    with new_folder(folder, force) as part:
        write_files(result, part)
    if as_json:
        print_json(result.to_json())
    else:
        print_curve(curve)
        print_places(folder)
