"""Where a device loses time in figure 3 of the paper: the work of every two seconds, in seconds of kernels alone.

`python -m benchmarks gpu-pace`. A pace of 1 is a device on which kernels run one after the other, and nothing else;
where it falls, the threads that feed the device are waiting for something.
"""

import threading
import time

import numpy as np

from benchmarks.gpu import kernel_spans
from pairflip.engines import cuda
from pairflip.engines.cuda.batch import size_class
from pairflip.paper.reproduce.scales import PAPER, sizes_of
from pairflip.paper.reproduce.walks import cross_validate_all, draw_all

ALONE = {100: 50, 200: 25, 400: 13}
"""Problems of each N that tell how long a chain takes: they fill a device several times."""
WINDOW = 2.0


def report(scale=PAPER, alone=ALONE):
    """The kernels alone, then all problems."""
    reason = cuda.why_unavailable()
    if reason is not None:
        print(f"the pace of a device: not measured, {reason}")
        return
    sets = [(draw_all(N, count, 2016), sizes_of(scale.loo_rhos, N)) for N, count in scale.crossvalidated]
    each = {}
    for (N, _), (problems, sizes) in zip(scale.crossvalidated, sets, strict=True):
        spans = _timed(lambda some=(problems[: alone[N]], sizes): _in_one_lane(some))
        for tiles in {group.tiles for group, _, _ in spans}:
            own = [(group.chains(), last - first) for group, first, last in spans if group.tiles == tiles]
            each[N, tiles] = sum(seconds for _, seconds in own) / sum(chains for chains, _ in own)
    began = time.perf_counter()
    spans = _timed(lambda: cross_validate_all(sets, "cuda", -1))
    whole = time.perf_counter() - began
    work = [sum(group.chains(N) * each.get((N, group.tiles), 0.0) for N in alone) for group, _, _ in spans]
    print(f"figure 3 on {cuda.device_name()}: {whole:.1f} s, kernels alone {sum(work):.1f} s; ", end="")
    first, last = min(begin for _, begin, _ in spans) - began, max(end for _, _, end in spans) - began
    print(f"first launch after {first:.1f} s, last ends at {last:.1f} s")
    edges = np.arange(0.0, whole + WINDOW, WINDOW)
    done = np.zeros(edges.size)
    for (_, first, last), seconds in zip(spans, work, strict=True):
        done += seconds * np.clip((edges + began - first) / (last - first), 0.0, 1.0)
    print("pace: " + " ".join(f"{at:.0f}:{pace:.2f}" for at, pace in zip(edges, np.diff(done) / WINDOW, strict=False)))


def _in_one_lane(some):
    """Without a second lane kernels follow each other; judging takes none of their time."""
    lanes, cuda.LANES = cuda.LANES, 1
    try:
        cross_validate_all([some], "cuda", -1)
    finally:
        cuda.LANES = lanes


class _Walked:
    """What a group of walks was."""

    def __init__(self, packed):
        self.tiles = size_class(int(packed.k.max())).tiles
        self._columns = packed.table["N"][packed.tasks[:, 0]]

    def chains(self, n_columns=None):
        """Of problems with so many columns, or of all."""
        return int(np.sum(self._columns == n_columns)) if n_columns else self._columns.size


def _timed(run):
    """(group, begin, end) of all kernels of a run."""
    here, run_group = threading.local(), cuda.run_group

    def told(packed, *others):
        here.group = _Walked(packed)
        return run_group(packed, *others)

    cuda.run_group = told
    try:
        return kernel_spans(run, lambda: here.group)
    finally:
        cuda.run_group = run_group
