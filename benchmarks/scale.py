"""How far it goes: seconds and memory against rows and columns, beside LassoCV, abess and the roofline.

`python -m benchmarks scale`: the size among 1 to 8 by ten folds, on all cores; every point in a process of its own,
which says what memory it took at most; a curve ends where a point takes longer than PAIRFLIP_LIMIT (60) seconds. Tables
are normal numbers, five columns of which the target depends on. Rows: 50 columns in memory, and for "read in blocks" a
source that hands out the same block again and again with a new target, so that making numbers is not measured.
Columns: 200 rows in memory. The roofline is the time to read the table once from memory plus, against rows, its
inner products at the speed of a large matrix product, both measured in the same run. PAIRFLIP_MOST (1e8) rows and
PAIRFLIP_WIDEST (1e6) columns at most. Writes docs/results/scale.csv and
its figure, which `scale-figure` draws from that file.
"""

import csv
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks.common import DOCS, best_time, save_figure

LIMIT = float(os.environ.get("PAIRFLIP_LIMIT", 60))
MOST, WIDEST = (float(os.environ.get(name, most)) for name, most in (("PAIRFLIP_MOST", 1e8), ("PAIRFLIP_WIDEST", 1e6)))
LARGEST, FOLDS = 8, 10
ROWS, COLUMNS = 200, 50
BLOCK = 100_000
HEADS = ("against", "rows", "columns", "method", "seconds", "peak_gb", "said")


def table(n_rows, n_columns):
    """Five columns predict the target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    return X, X[:, :5].sum(axis=1) + rng.standard_normal(n_rows)


def blocks(n_rows, n_columns):
    """The same block of rows again and again, with targets of its own."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((min(n_rows, BLOCK), n_columns))
    for first in range(0, n_rows, BLOCK):
        rows = X[: min(BLOCK, n_rows - first)]
        yield rows, rows[:, :5].sum(axis=1) + rng.standard_normal(len(rows))


def selected(problem):
    from pairflip import select_size

    return int(select_size(problem, range(1, LARGEST + 1), FOLDS, effort="quick", n_jobs=-1, progress=False).best_size)


def in_memory(n_rows, n_columns):
    """pairflip, table in memory."""
    from pairflip import SubsetProblem

    X, y = table(n_rows, n_columns)
    return lambda: selected(SubsetProblem(X, y))


def in_blocks(n_rows, n_columns):
    """pairflip, read in blocks."""
    from pairflip import SubsetProblem

    return lambda: selected(SubsetProblem.from_blocks(blocks(n_rows, n_columns), in_memory=0, n_jobs=-1))


def lasso(n_rows, n_columns):
    """LassoCV."""
    from sklearn.linear_model import LassoCV

    X, y = table(n_rows, n_columns)
    return lambda: int(np.count_nonzero(LassoCV(cv=FOLDS, n_jobs=-1).fit(X, y).coef_))


def splicing(n_rows, n_columns):
    """abess."""
    from abess.linear import LinearRegression

    X, y = table(n_rows, n_columns)
    model = LinearRegression(support_size=range(LARGEST + 1), cv=FOLDS, thread=FOLDS)
    return lambda: int(np.count_nonzero(model.fit(X, y).coef_))


METHODS = {function.__doc__.rstrip("."): function for function in (in_memory, in_blocks, lasso, splicing)}


def measure(name, n_rows, n_columns):
    """Seconds of the clock, peak memory of the process in GB, and the size it found; compiled, and one try before."""
    METHODS[name](300, 60)()
    work = METHODS[name](n_rows, n_columns)
    began = time.perf_counter()
    said = work()
    seconds = time.perf_counter() - began
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, said


def alone(name, n_rows, n_columns):
    """`measure` in a process of its own; and why there is none."""
    return in_process(f"measure{name, n_rows, n_columns}")


def in_process(call):
    """What a function of this module returns in a process of its own, and why it returned nothing."""
    code = f"import json; from benchmarks.scale import measure, speeds; print(json.dumps({call}))"
    try:
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=2.5 * LIMIT
        )
    except subprocess.TimeoutExpired:
        return None, f"not within {2.5 * LIMIT:g} s"
    if ended.returncode:
        return None, (ended.stderr.strip().splitlines() or [f"exit {ended.returncode}"])[-1][:100]
    return json.loads(ended.stdout.splitlines()[-1]), ""


def speeds():
    """Bytes read and floating point operations in a second, on all cores."""
    values = np.random.default_rng(0).standard_normal((4096, 65536))
    seconds, _ = best_time(lambda: values @ np.ones(65536))
    square = values[:, :4096].copy()
    product, _ = best_time(lambda: square @ square, 3)
    return values.nbytes / seconds, 2 * 4096**3 / product


def report():
    """All points, a line as each is done; then the figure."""
    (reading, computing), _ = in_process("speeds()")
    print(f"roofline: {reading / 1e9:.0f} GB/s read, {computing / 1e9:.0f} GFLOP/s")
    rows = [(int(n), COLUMNS) for n in 10.0 ** np.arange(2, 9) if n <= MOST]
    columns = [(ROWS, int(n)) for n in 10.0 ** np.arange(1, 7) if n <= WIDEST]
    path = DOCS / "results" / "scale.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(HEADS)
        for against, cases in (("rows", rows), ("columns", columns)):
            for n_rows, n_columns in cases:
                once = 8.0 * n_rows * n_columns / reading
                once += 2.0 * n_rows * n_columns**2 / computing if against == "rows" else 0.0
                lines.writerow((against, n_rows, n_columns, "roofline", f"{once:.3g}", "", ""))
            for name in METHODS:
                if name.endswith("blocks") and against == "columns":
                    continue
                for case in cases:
                    measured, why = alone(name, *case)
                    seconds, peak, said = measured or ("", "", why)
                    told = (f"{seconds:.3g}", f"{peak:.3g}") if measured else ("", "")
                    lines.writerow((against, *case, name, *told, said))
                    file.flush()
                    print(
                        f"{case[0]:>11,} x {case[1]:<9,} {name:28} {told[0]:>8} s {told[1]:>7} GB  {said}", flush=True
                    )
                    if not measured or seconds > LIMIT:
                        break
    figure(path)


def figure(path=DOCS / "results" / "scale.csv"):
    """Seconds and memory against rows and columns, from the file."""
    from matplotlib.figure import Figure

    with path.open(encoding="utf-8") as file:
        lines = [line for line in csv.DictReader(file) if line["seconds"]]
    figure = Figure(figsize=(9.5, 6.0))
    axes = figure.subplots(2, 2, sharex="col", sharey="row")
    names = list(dict.fromkeys(line["method"] for line in lines))
    for column, against in enumerate(("rows", "columns")):
        for row, (what, label) in enumerate((("seconds", "seconds"), ("peak_gb", "peak memory, GB"))):
            ax = axes[row][column]
            for at, name in enumerate(names):
                shown = [line for line in lines if (line["against"], line["method"]) == (against, name) and line[what]]
                look = (
                    {"ls": ":", "color": "0.4"} if name == "roofline" else {"marker": "o", "ms": 4, "color": f"C{at}"}
                )
                look["lw"] = 2 if name.startswith("pairflip") else 1
                ax.plot([int(x[against]) for x in shown], [float(x[what]) for x in shown], label=name, **look)
            ax.set(xscale="log", yscale="log")
            ax.grid(alpha=0.3)
            if row:
                ax.set_xlabel(f"{against} ({f'{COLUMNS} columns' if against == 'rows' else f'{ROWS} rows'})")
            if not column:
                ax.set_ylabel(label)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=5, fontsize=9)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    save_figure(figure, path.with_suffix(".svg"))
