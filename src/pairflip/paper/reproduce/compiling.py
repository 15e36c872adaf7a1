"""What is needed beside a device, compiled by other processes from the first moment on: what weighs, and what walks.

After an installation that takes half a minute, and in threads much longer: those who compile, feed the device and judge
its answers would all wait for one interpreter. Compiled code is kept on disk, where this process finds it.
"""

from __future__ import annotations

import atexit
import subprocess
import sys

_begun: list[subprocess.Popen[bytes]] = []


def begin() -> None:
    """Have everything compiled, unless that was begun."""
    if _begun or not sys.executable:
        return
    atexit.register(end)
    nowhere = subprocess.DEVNULL
    for what in ("weighing", "walking"):
        command = [sys.executable, "-m", __name__, what]
        try:
            _begun.append(subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere))
        except OSError:  # no more processes, perhaps: it is compiled here then
            return
    from pairflip.engines.numba import elsewhere

    elsewhere.append(_begun[-1])


def end() -> None:
    """Leave no process behind."""
    for process in _begun:
        process.kill()
        process.wait()


def compile_weighing() -> None:
    """Weigh a support without a row."""
    import numpy as np

    from pairflip.losses.held_out import without_one_row
    from pairflip.paper.reproduce.walks import draw

    without_one_row(draw(20, 0, 0).problem, np.array([[0, 1]]), np.array([0]))


def compile_walking() -> None:
    """Walk a chain."""
    from pairflip.paper.reproduce.walks import SCHEDULE, draw
    from pairflip.search.annealing import anneal

    anneal(draw(20, 0, 0).problem, 2, SCHEDULE, chains=1, engine="numba", polish=False)


if __name__ == "__main__":
    {"weighing": compile_weighing, "walking": compile_walking}[sys.argv[1]]()
