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

    from pairflip.losses.held_out import HeldOutErrors
    from pairflip.paper.reproduce.walks import draw
    from pairflip.selection.folds import as_folds

    problem = draw(20, 0, 0).problem
    HeldOutErrors(problem, as_folds("loo", problem)).energies(np.array([0]), np.array([[0, 1]]))


def compile_walking() -> None:
    """Walk a chain, and one on columns so nearly dependent that the Gram matrix cannot decide about flips."""
    import numpy as np

    from pairflip.paper.reproduce.walks import SCHEDULE, draw
    from pairflip.problem import SubsetProblem
    from pairflip.search.annealing import anneal

    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 6))
    X[:, 1] = X[:, 0] + 1e-4 * rng.normal(size=12)
    for problem, k in ((draw(20, 0, 0).problem, 2), (SubsetProblem(X, rng.normal(size=12)), 5)):
        anneal(problem, k, SCHEDULE, chains=1, engine="numba", polish=False)


if __name__ == "__main__":
    {"weighing": compile_weighing, "walking": compile_walking}[sys.argv[1]]()
