"""Ctrl-C and SIGTERM: one handler, and the sentence that is said, in one place.

The handler is set before anything else is loaded, hence only modules that Python itself has loaded are used here.
"""

import _signal  # type: ignore[import-not-found]
import _thread
import os
import sys

TYPE_CHECKING = False  # of typing, which takes longer to load than Python itself
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


SHORTAGE = (
    "there is not enough memory, or too few threads are allowed (ulimit -v, ulimit -u); try --jobs 1, fewer columns "
    "(--keep) or fewer chains."
)
"""The sentence where memory or threads are limited."""


def interrupted(journal: str | os.PathLike[str] | None = None, again: str | None = None) -> str:
    """The sentence: what is kept in the journal, and what to do to resume (None where no journal can be given)."""
    if journal is not None and os.path.isdir(journal):
        if _holds_work(journal):
            return f"interrupted; finished work is kept in {os.fspath(journal)!r}. Resume with: {again}"
        return f"interrupted; no work was finished yet, so {os.fspath(journal)!r} holds none. Start again with: {again}"
    hint = " (a journal keeps finished work)" if journal is None and again is not None else ""
    return f"interrupted; nothing was kept and nothing was written{hint}."


def _holds_work(journal: str | os.PathLike[str]) -> bool:
    """Whether a journal has more than the heads that say which run it belongs to, and files that were just begun."""
    return any(
        name != "manifest.json" and not name.startswith(".") and os.path.getsize(os.path.join(folder, name))
        for folder, _, names in os.walk(journal)
        for name in names
    )


sentence: "Callable[[], str]" = interrupted  # that of the command, from its beginning on
clean_up: "Callable[[], None] | None" = None  # removes what is half written
received = 0  # the signal that came last


def exit_code() -> int:
    """130 after Ctrl-C and 143 after SIGTERM, as shells count."""
    return 128 + int(received or _signal.SIGINT)


def listen() -> None:
    """Set the handler for both signals; those that are ignored, as in the background, stay so."""
    for number, usual in ((_signal.SIGINT, _signal.default_int_handler), (_signal.SIGTERM, _signal.SIG_DFL)):
        if _signal.getsignal(number) == usual:
            _signal.signal(number, _stop)
    sys.unraisablehook = _dropped


def stop_listening() -> None:
    """From now on a signal ends the process without a word: the sentence was said, or is not true any more."""
    for number in (_signal.SIGINT, _signal.SIGTERM):
        if _signal.getsignal(number) is _stop:
            _signal.signal(number, _signal.SIG_DFL)


def _stop(number: int, frame: "FrameType | None") -> None:
    """Raise KeyboardInterrupt; end the process in an import, which could catch it or keep a lock.

    The process also ends before a command has begun, and at the second signal.
    """
    global received
    at_once, received = received > 0 or sentence is interrupted, number
    while frame is not None and not at_once:
        at_once = frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    if at_once:
        _leave()
    raise KeyboardInterrupt


def _dropped(what: "sys.UnraisableHookArgs", show: "Callable[..., object]" = sys.unraisablehook) -> None:
    """Leave if Python dropped the KeyboardInterrupt, as it does where an object is freed."""
    if received and issubclass(what.exc_type, KeyboardInterrupt):
        _leave()
    show(what)


def _leave() -> None:
    """Say the sentence and end the process at once; OpenBLAS sends itself a Ctrl-C where it cannot start threads."""
    words, code = SHORTAGE, 1
    if received != _signal.SIGINT or threads_start():
        words, code = sentence(), exit_code()
    try:
        if clean_up is not None:
            clean_up()
        os.write(2, f"pairflip: {words}\n".encode(errors="backslashreplace"))
    finally:
        os._exit(code)


def threads_start() -> bool:
    """Whether this process may have one thread more."""
    try:
        _thread.start_new_thread(int, ())
    except RuntimeError:
        return False
    return True
