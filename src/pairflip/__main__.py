"""``python -m pairflip`` and the console script: Ctrl-C is one line from the first moment on."""

from pairflip.interrupt import leave


def main() -> None:
    """Run the command line; until a command begins, Ctrl-C ends the process."""
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it may also be ignored, in the background
            signal.signal(signal.SIGINT, leave)
        from pairflip.cli import app
    except KeyboardInterrupt:
        leave()
    try:
        app(prog_name="pairflip")
    finally:
        if signal.getsignal(signal.SIGINT) is leave:  # its words are not true any more
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
