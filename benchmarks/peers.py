"""Ours beside other methods on the same folds: `make bench-peers`, or `python -m benchmarks peers`.

The planted model of the paper, neighbours correlated, and real tables (folder: PAIRFLIP_SHARED_DATA); one
thread, one run. Writes docs/results/peers.csv (a line for each table, method and size), docs/results/peers.svg, and the
tables of docs/comparison.md between their markers. PAIRFLIP_FOLDS (5) sets the number of folds, PAIRFLIP_DRAWS (1) how
often each simulated table is drawn, and PAIRFLIP_TABLES=planted,gasoline runs some of the tables and writes nothing.
Finished tables are kept in results/peers, so that the same command goes on where it was stopped; remove that folder to
measure anew. After Ctrl-C, what is finished is written.
"""

import csv
import json
import os
import platform
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import ElasticNetCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import DOCS, real_table, save_figure
from pairflip import SubsetProblem, compare, datasets
from pairflip.comparison import Comparison
from pairflip.comparison.peers import BUILT_IN
from pairflip.comparison.record import MethodResult
from pairflip.report.compared import energy_points, looks
from pairflip.text import number

FOLDS = int(os.environ.get("PAIRFLIP_FOLDS", 5))
DRAWS = int(os.environ.get("PAIRFLIP_DRAWS", 1))
ONLY = [name for name in os.environ.get("PAIRFLIP_TABLES", "").split(",") if name]
KEPT = Path(__file__).parents[1] / "results" / "peers"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
FEW = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
TABLES = {
    "diabetes": "diabetes/diabetes_64.csv",
    "prostate": "prostate/prostate.csv",
    "gasoline": "gasoline/gasoline.csv",
    "supernova": "supernova_bsnip/snia_101x276.csv",
    "eyedata": "eyedata/eyedata.csv",
    "solubility": "solubility/solubility_train.csv",
    "tecator": "tecator/tecator.csv",
    "riboflavin": "riboflavin/riboflavin.csv",
}
REFERENCE = "`pairflip, normal`"  # what the others are compared with
CLEAR = 2.0
HEADS = (
    "table", "rows", "columns", "method", "size", "cv_error", "cv_error_se", "energy_per_row", "energy", "seconds",
    "overlap", "chosen", "true_columns_found", "true_columns", "difference", "difference_se", "note",
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A table to compare methods on; `truth` are its true columns, where they are known."""

    name: str
    X: np.ndarray
    y: np.ndarray
    sizes: tuple[int, ...]
    center: str | None = "fold"
    truth: tuple[int, ...] | None = None
    without: tuple[str, ...] = ()


def tables():
    """The simulated tables, then the real ones; one that is absent is named."""
    for draw in range(DRAWS):
        for N in (100, 200, 400, 1000):
            planted = datasets.make_planted(N=N, seed=N + draw)
            sizes = tuple(round(rho * N) for rho in (0.025, 0.05, 0.075, 0.1, 0.125, 0.15))
            truth = tuple(planted.support.tolist())
            without = ("thorough",) if N > 400 else ()  # minutes with 150 columns
            yield Table(f"planted {N // 2} x {N}", planted.X, planted.y, sizes, None, truth, without)
        for snr in (1.0, 5.0):
            chain = datasets.make_correlated(M=200, N=1000, k=20, correlation=0.9, snr=snr, seed=1 + draw)
            truth = tuple(chain.support.tolist())
            yield Table(
                f"neighbours 200 x 1000, SNR {snr:g}", chain.X, chain.y, (1, 2, 5, 10, 15, 20, 25, 30), truth=truth
            )
    for name, path in TABLES.items():
        table = real_table(path)
        if table is not None:
            rows, columns = table[0].shape
            sizes = tuple(k for k in FEW if k < min(columns, 0.6 * rows))
            yield Table(f"{name} {rows} x {columns}", *table, sizes)


def run(table):
    """The comparison on one table, how busy the machine was when it began, and whether it was kept from before."""
    problem = SubsetProblem(table.X, table.y, center=table.center)
    kept = KEPT / f"{re.sub(r'[^a-z0-9]+', '-', table.name.lower())}-{FOLDS}-{problem.hash[:12]}.json"
    if kept.is_file():
        return Comparison.load(kept), json.loads(kept.read_text(encoding="utf-8")).get("load"), True
    load = os.getloadavg()[0]
    methods = [peer.name for peer in BUILT_IN if peer.name not in table.without]
    forest = RandomForestRegressor(200, max_features=1 / 3, random_state=0, n_jobs=1)
    net = make_pipeline(StandardScaler(), ElasticNetCV(l1_ratio=0.5, cv=10))
    peers = {"elastic net": net, "random forest": forest}  # the forest: what is not linear in the columns
    found = compare(problem, table.sizes, FOLDS, methods=methods, peers=peers, progress=False)
    if found.interrupted:
        raise KeyboardInterrupt
    left = [MethodResult(peer.name, peer.title, peer.about, note="left out") for peer in BUILT_IN]
    every = {method.name: method for method in (*left, *found.methods)}
    found = replace(found, methods=tuple(every.values()))
    KEPT.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({**found.to_json(), "load": load}) + "\n", encoding="utf-8")
    return found, load, False


def show(table, found):
    """The sentence and the lines of the methods."""
    text = str(found)
    print(f"\n{table.name}\n{text[: text.index('Columns: the size')]}", flush=True)


def report():
    """Run everything, print as it goes, and write the results at the end."""
    done: list[tuple[Table, Comparison]] = []
    loads, kept = [], 0
    with suppress(KeyboardInterrupt):
        for table in tables():
            if not ONLY or any(name in table.name for name in ONLY):
                found, load, was_kept = run(table)
                done.append((table, found))
                loads.append(load)
                kept += was_kept
                show(table, found)
    if ONLY or not done:
        return
    (DOCS / "results").mkdir(exist_ok=True)
    save(done, DOCS / "results" / "peers.csv")
    draw(done, DOCS / "results" / "peers.svg")
    put_into_page(done, machine(loads, kept), DOCS / "comparison.md")


def machine(loads, kept):
    """Where and how it ran."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    busy = "load not recorded"
    if loads and None not in loads:
        busy = f"load {min(loads):.1f} to {max(loads):.1f} when tables began (the one thread measured adds 1)"
    how = "one run" if not kept else f"one run of each table, {kept} of them kept from an earlier start of the command"
    return (
        f"{cpu}, {os.cpu_count()} cores, {busy}, Python {platform.python_version()}, {how}, one thread, "
        f"{FOLDS} folds, {DRAWS} draw{'s' * (DRAWS != 1)} of each simulated table"
    )


def save(done, path):
    """One line for each table, method and size; seconds to three digits."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(HEADS)
        for table, found in done:
            for method in found.methods:
                for row in method.rows or (None,):
                    lines.writerow([table.name, *table.X.shape, method.name, *_cells(table, method, row)])


def _cells(table, method, row):
    if row is None:
        return [""] * 12 + [method.note]
    hit = len(set(table.truth) & set(row.columns)) if table.truth is not None and row.columns else ""
    chosen = method.chosen == row.size
    beside = (method.difference, method.difference_se) if chosen else (np.nan, np.nan)
    numbers = (row.cv_error, row.cv_error_se, row.energy_per_row, row.energy, row.seconds, row.overlap)
    plain = ["" if np.isnan(v) else f"{v:.6g}" for v in numbers]
    size = "" if row.size is None else row.size
    true = "" if table.truth is None else len(table.truth)
    last = ["" if np.isnan(v) else f"{v:.4g}" for v in beside]
    return [size, *plain, int(chosen), hit, true, *last, row.note or method.note]


def draw(done, path):
    """Energy above the lowest against CPU seconds, a panel for each of four tables."""
    from matplotlib.figure import Figure

    wanted = ("planted 100 x 200", "neighbours 200 x 1000, SNR 5", "diabetes", "gasoline")
    shown = [(t, c) for t, c in done if t.name.startswith(wanted)][:4]
    names = list(dict.fromkeys(m.name for _, c in done for m in c.methods))
    titles = {m.name: m.title for _, c in done for m in c.methods}
    look = looks(names)
    figure = Figure(figsize=(3.2 * max(1, len(shown)), 3.4))
    axes = figure.subplots(1, max(1, len(shown)), squeeze=False)
    used = {}
    for ax, (table, found) in zip(axes[0], shown, strict=True):
        for point in energy_points(found):
            style = {key: value for key, value in look[point.name].items() if key != "linestyle"}
            face = style["color"] if point.name in ("quick", "normal", "thorough") else "none"
            (used[point.name],) = ax.plot([point.seconds], [point.excess + 0.01], ls="none", mfc=face, **style)
        ax.set(xscale="log", yscale="log", xlabel="CPU seconds")
        ax.set_title(table.name, fontsize=9)
    axes[0][0].set_ylabel("training energy above\nthe lowest found, % (+ 0.01)")
    order = [name for name in names if name in used]
    figure.legend([used[n] for n in order], [titles[n] for n in order], loc="lower center", ncols=5, fontsize=8)
    figure.tight_layout(rect=(0, 0.16, 1, 1))
    save_figure(figure, path)


def verdict(method):
    """-1, 0 or 1: clearly lower error than the reference, not clearly different, clearly higher."""
    if not np.isfinite(method.difference):
        return None
    beyond = abs(method.difference) > CLEAR * method.difference_se
    return int(np.sign(method.difference)) if beyond else 0


def method_lines(done):
    """For each method: how often its error is clearly lower or higher than the reference's, and its medians."""
    names = list(dict.fromkeys(m.name for _, c in done for m in c.methods))
    rows = []
    for name in names:
        both = [(c, c[name]) for _, c in done]
        got = [(c, m) for c, m in both if np.isfinite(m.cv_error)]
        counts = [sum(verdict(m) == sign for _, m in got) for sign in (-1, 0, 1)]
        ratio = [m.cv_error / c["normal"].cv_error for c, m in got]
        points = [p for c, _ in got for p in energy_points(c) if p.name == name]
        seconds = [m.seconds / c["normal"].seconds for c, m in got]
        rows.append(
            [
                both[0][1].title,
                *(["–"] * 3 if name == "normal" else [str(count) for count in counts]),
                str(len(both) - len(got)),
                f"{np.median(ratio):.3f}" if ratio else "–",
                number(float(np.median([p.excess for p in points])), 2) if points else "–",
                number(float(max(p.excess for p in points)), 2) if points else "–",
                number(float(np.median(seconds)), 2) if seconds else "–",
            ]
        )
    return rows


def case_lines(done, cell):
    """A line for each table, a column for each method."""
    names = list(dict.fromkeys(m.name for _, c in done for m in c.methods))
    return [[table.name, *(cell(table, found, found[name]) for name in names)] for table, found in done]


def error_cell(table, found, method):
    if not np.isfinite(method.cv_error):
        return "–"
    size = "" if method.chosen is None else f" ({method.chosen})"
    if method.name == found.reference:
        return f"{number(method.cv_error, 3)}{size}"
    sign = {-1: "**", 0: "", 1: "*"}[verdict(method)]
    return f"{sign}{method.cv_error / found[found.reference].cv_error:.2f}{sign}{size}"


def truth_cell(table, found, method):
    row = method.at(method.chosen) if method.chosen else None
    if row is None:
        return "–"
    return f"{len(set(table.truth) & set(row.columns))} of {len(row.columns)}"


def true_lines(done):
    """How many true columns each method chose, with how many there are."""
    lines = case_lines([(table, found) for table, found in done if table.truth is not None], truth_cell)
    counts = [len(table.truth) for table, _ in done if table.truth is not None]
    return [[f"{line[0]}, {count} true", *line[1:]] for line, count in zip(lines, counts, strict=True)]


def seconds_cell(table, found, method):
    return number(method.seconds, 2) if np.isfinite(method.seconds) else "–"


def markdown(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def measured(done, where):
    """The part of the page that this command writes."""
    titles = [done[0][1][m.name].title for m in done[0][1].methods]
    heads = ["method", "lower", "alike", "higher", "no result", f"error / {REFERENCE}", "energy above lowest, median %"]
    parts = [
        f"Measured by `make bench-peers` on {where}.",
        f"All {len(done)} tables. *Lower*, *alike*, *higher*: in how many tables the error on held-out rows is clearly "
        "(by more than two standard errors of the difference, row by row) lower than that of `pairflip, normal`, not "
        "clearly different, or clearly higher. Medians over tables; energies are training energies on all rows, on "
        "average over sizes, above the lowest that any method found.",
        markdown([*heads, "worst %", f"seconds / {REFERENCE}"], method_lines(done)),
        "Error on held-out rows: of `pairflip, normal` in the units of the table, of the others divided by that; in "
        "brackets the number of columns with the lowest error. **Bold**: clearly lower than that; *slanted*: clearly "
        "higher.",
        markdown(["table", *titles], case_lines(done, error_cell)),
        "\n".join(behind(done)),
        "CPU seconds of the search, all folds, all sizes, one thread:",
        markdown(["table", *titles], case_lines(done, seconds_cell)),
        "Of the columns chosen on all rows, how many are true ones (the smallest coefficients of the planted model are "
        "below the noise):",
        markdown(["table", *titles], true_lines(done)),
        "\n".join(["Without a result:", "", *without_result(done)]),
    ]
    return "\n\n".join(parts)


def behind(done):
    """Where the reference is clearly behind, and where the others are."""
    lines = {-1: [], 1: []}
    for table, found in done:
        for sign in lines:
            titles = [m.title for m in found.methods if verdict(m) == sign]
            if titles:
                lines[sign].append(f"- {table.name}: {'; '.join(titles)}")
    return [
        f"Clearly lower than {REFERENCE}:",
        "",
        *(lines[-1] or ["- none"]),
        "",
        f"Clearly higher than {REFERENCE}:",
        "",
        *(lines[1] or ["- none"]),
    ]


def without_result(done):
    """Why methods have no result, and on which tables."""
    reasons = {}
    for table, found in done:
        for method in found.methods:
            if method.note:
                why = method.note.split(": here are")[0].split(" (")[0]
                reasons.setdefault(f"- {method.title}: {why}", []).append(table.name)
    return [f"{why}: {'; '.join(names)}." for why, names in reasons.items()] or ["- none"]


def put_into_page(done, where, page):
    """Replace what stands between the markers."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{measured(done, where)}\n\n{END}{after}", encoding="utf-8")
    print(f"\nwritten: {page.name}, results/peers.csv, results/peers.svg")
