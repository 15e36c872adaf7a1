"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(path: str | os.PathLike[str], data: bytes, what: str) -> Path:
    """Write `data` beside `path` under another name, then rename: a reader never sees half of it.

    `what` names the thing in the error message ("the report").
    """
    path = Path(path)
    part = path.with_name(f".pairflip-{secrets.token_hex(6)}.part")
    try:
        try:
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise type(error)(
            f"Cannot write {what} {str(path)!r}: {reason}; name a file in a folder that exists and can be written."
        ) from None
    return path
