"""All parts in order, and the files of the result."""

from __future__ import annotations

import csv
import json
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pairflip
from pairflip.paper.reproduce import fig1, over_size, section3, supernova
from pairflip.paper.reproduce.problems import MODEL, Annealed, Say, anneal_all, cross_validate, draw_all
from pairflip.paper.reproduce.scales import SHOWN, TABLES, RunScale, cost, sizes_of
from pairflip.paper.reproduce.verdict import Claim

Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Settings:
    """What is computed, with what: everything but the place of the result."""

    parts: tuple[str, ...]  # some of PARTS, in their order
    scale: RunScale
    data: Path | None = None  # supernova table; without it there are no tables
    engine: Any = "auto"  # the name of an engine, or one
    seed: int = 0
    n_jobs: int | None = -1
    journal: Path | None = None  # folder in which finished cross validation is kept
    command: str = ""


@dataclass
class Reproduction:
    """What a run found: rows of the CSV files, claims, what was left out, seconds of each stage and of all of them."""

    tables: dict[str, Rows] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> dict[str, Any]:
        """The content of verdict.json, apart from the settings."""
        return {"claims": [claim.to_json() for claim in self.claims], "skipped": self.skipped}

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Note the seconds of a stage."""
        began = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - began

    def add(self, part: str, rows: Rows, *claims: Claim) -> None:
        """Enter a part's rows and the verdicts on them."""
        self.tables[part] = rows
        self.claims += claims


def reproduce(settings: Settings, say: Say = lambda _: None) -> Reproduction:
    """Compute all parts."""
    outcome, wanted, began = Reproduction(), set(settings.parts), time.perf_counter()
    scale, seed, engine, n_jobs = settings.scale, settings.seed, settings.engine, settings.n_jobs
    if settings.data is None:
        for part in sorted(wanted & TABLES):
            outcome.skipped[part] = "the supernova table was not given (--data TABLE.csv)"
            say(f"{part} is left out: {outcome.skipped[part]}")
        wanted -= TABLES
    problem = supernova.read_problem(settings.data) if wanted & TABLES and settings.data is not None else None
    shape = None if problem is None else (problem.n_rows, problem.n_columns)
    say(f"scale {scale.name}: {cost(scale, settings.parts, shape)}")
    validated: list[Annealed] = []
    if "fig3" in wanted:
        with outcome.timed("cross_validation"):
            for N, count in scale.crossvalidated:
                problems, sizes = draw_all(N, count, seed), sizes_of(scale.loo_rhos, N)
                validated.append(cross_validate(problems, sizes, engine, n_jobs, settings.journal, say))
    if problem is not None:
        with outcome.timed("supernova"):
            runs = supernova.collect(problem, scale, seed, engine, n_jobs, settings.journal, say)
    if wanted & {"fig1", "fig2"}:
        with outcome.timed("annealing"):
            annealed = _annealed(settings, validated, say)
    if wanted & {"fig2", "fig3"}:
        with outcome.timed("theory"):
            outcome.add("theory", over_size.theory_table(MODEL.alpha))
    if "fig1" in wanted:
        with outcome.timed("fig1"):
            curves = fig1.collect(annealed, n_jobs)
            outcome.add("fig1", fig1.table(curves), fig1.agreement(curves))
    if "fig2" in wanted:
        with outcome.timed("fig2"):
            points = [over_size.points_of(each, "epsilon", n_jobs) for each in annealed]
            claims = [claim(points) for claim in over_size.FIG2_CLAIMS]
            outcome.add("fig2", over_size.fig2_table(points), *claims)
    if "fig3" in wanted:
        with outcome.timed("fig3"):
            points = [over_size.points_of(each, "epsilon_g", n_jobs) for each in validated]
            claims = [claim(points) for claim in over_size.FIG3_CLAIMS]
            outcome.add("fig3", over_size.fig3_table(points), *claims)
    if "table1" in wanted:
        outcome.add("table1", supernova.table1(runs), supernova.lowest_size(runs))
    if "table2" in wanted:
        outcome.add("table2", supernova.table2(runs), supernova.stable_columns(runs))
    if wanted & TABLES:
        outcome.claims += [supernova.depends_on_seed(runs), supernova.chains_remove_it(runs)]
    if "section3" in wanted:
        with outcome.timed("section3"):
            results = section3.collect(scale, seed, n_jobs)
            outcome.add("section3", section3.table(results), section3.no_clue(results))
    outcome.seconds["all"] = time.perf_counter() - began
    return outcome


def _annealed(settings: Settings, validated: Sequence[Annealed], say: Say) -> list[Annealed]:
    """The annealings of figures 1 and 2: those of the cross validation where it has them."""
    rhos = {*(settings.scale.rhos if "fig2" in settings.parts else ()), *(SHOWN if "fig1" in settings.parts else ())}
    results = []
    for N, count in settings.scale.annealed:
        sizes = sizes_of(sorted(rhos), N)
        part = next((each.part(sizes, count) for each in validated if each.N == N), None)
        if part is None:
            part = anneal_all(draw_all(N, count, settings.seed), sizes, settings.engine, settings.n_jobs)
            say(f"N = {N}: {count} problems annealed")
        results.append(part)
    return results


def write_outcome(outcome: Reproduction, settings: Settings, folder: Path) -> None:
    """Write CSV, SVG and PNG of every part, verdict.json and run.json.

    Times are in run.json only, so that equal runs give equal verdicts.
    """
    from pairflip.paper.reproduce.drawing import FIGURES, figure_of  # with matplotlib, which nothing else needs
    from pairflip.report.save import save_all

    theory = outcome.tables.get("theory", ())
    for part, rows in outcome.tables.items():
        write_csv(rows, folder / f"{part}.csv")
    drawn = {part: figure_of(part, outcome.tables[part], theory) for part in FIGURES if part in outcome.tables}
    save_all(drawn, folder)
    asked = {"scale": settings.scale.name, "seed": settings.seed, "parts": list(settings.parts)}
    packages = {name: version(name) for name in ("numpy", "scipy", "numba", "matplotlib")}
    seconds = {name: round(value, 2) for name, value in outcome.seconds.items()}
    run = {
        "command": settings.command,
        **asked,
        "engine": settings.engine if isinstance(settings.engine, str) else settings.engine.name,
        "versions": {"pairflip": pairflip.__version__, "python": platform.python_version(), **packages},
        "system": f"{platform.system()} {platform.machine()}",
        "data": None if settings.data is None else settings.data.name,
        "seconds": seconds,
        "wall_seconds": seconds.pop("all"),
    }
    for name, record in (("verdict.json", {**asked, **outcome.verdict}), ("run.json", run)):
        (folder / name).write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def write_csv(rows: Rows, path: Path) -> None:
    """Numbers with ten digits: the same on every machine up to the last ones."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return f"{value:.10g}" if isinstance(value, float) else str(value)

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows([text(value) for value in row.values()] for row in rows)
