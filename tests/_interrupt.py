"""Processes that get Ctrl-C."""

import signal
import subprocess
import sys
import time

LIMIT = 1.0  # seconds from the signal to the end of the process, where no other process is at work


def delay():
    """How many times longer than its processor time a loop takes, since other processes are at work."""
    began, busy = time.perf_counter(), time.process_time()
    while time.process_time() - busy < 0.1:
        pass
    return (time.perf_counter() - began) / (time.process_time() - busy)


def interrupt(code, *arguments, after=0.3, number=signal.SIGINT, folder=None, ready=None):
    """Start code, wait until it is ready and a little longer, send a signal: (exit code, out, err, seconds).

    It is ready when it prints so, or when `ready()` says so. The seconds are those of a machine that does nothing else.
    """
    others = max(delay(), 1.0)
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        # A shell that runs the tests in the background has SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        if ready is None:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            time.sleep(after)
        while ready is not None and not ready():
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        assert process.poll() is None, "it was done before it could be interrupted"
        began = time.perf_counter()
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err, (time.perf_counter() - began) / others
    finally:
        process.kill()
        process.wait()
