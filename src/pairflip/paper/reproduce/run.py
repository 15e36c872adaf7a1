"""All parts in order, and the files of the result."""

from __future__ import annotations

import csv
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pairflip
from pairflip.engines import get_engine
from pairflip.engines.cuda import why_unavailable
from pairflip.jobs import local_threads
from pairflip.paper.reproduce import fig1, fig2, fig3, section3, supernova, typical
from pairflip.paper.reproduce.ahead import Ahead
from pairflip.paper.reproduce.levels import points_of
from pairflip.paper.reproduce.parts import TABLES
from pairflip.paper.reproduce.scales import (
    SHOWN,
    Cost,
    RunScale,
    get_ready,
    planted_cost,
    section3_cost,
    sizes_of,
    supernova_cost,
)
from pairflip.paper.reproduce.verdict import Claim
from pairflip.paper.reproduce.walks import MODEL, Drawn, Walks, cross_validate_all, draw_all, walk

Rows = Sequence[dict[str, Any]]
_FIGURES = ("fig1", "fig2", "fig3", "section3", "table1")


@dataclass(frozen=True)
class Settings:
    """What is computed, with what: everything but the place of the result.

    Attributes
    ----------
    parts
        Some of `PARTS`, in their order.
    data
        Supernova table, or None: no tables then.
    engine
        Name of an engine, or one.
    journal
        Folder in which finished cross validation is kept.
    """

    parts: tuple[str, ...]
    scale: RunScale
    data: Path | None = None
    engine: Any = "auto"
    seed: int = 0
    n_jobs: int | None = -1
    journal: Path | None = None
    command: str = ""


@dataclass
class Reproduction:
    """What a run found: rows of the CSV files, claims, what was left out, seconds of each stage and of all of them."""

    tables: dict[str, Rows] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    wall: float = 0.0

    @property
    def verdict(self) -> dict[str, Any]:
        """The content of verdict.json, apart from the settings."""
        return {"claims": [claim.to_json() for claim in self.claims], "skipped": self.skipped}


def cost(settings: Settings, problem: Any = None) -> Cost:
    """Expected cost of the run; `problem` is the supernova table, if there is one."""
    scale, parts, total = settings.scale, settings.parts, Cost()
    if "fig3" in parts:
        total += planted_cost(scale, folds=True)
    if ("fig1" in parts or "fig2" in parts) and not ("fig3" in parts and scale.annealed == scale.crossvalidated):
        total += planted_cost(scale, folds=False)
    if "section3" in parts:
        total += section3_cost(scale)
    if problem is not None and set(TABLES) & set(parts):
        total += supernova_cost(scale, problem.n_rows, problem.n_columns, list(supernova.SIZES))
    return total


def reproduce(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Reproduction:
    """Compute all parts."""
    outcome, began = Reproduction(), time.perf_counter()
    wanted = set(settings.parts)
    if wanted & set(TABLES) and settings.data is None:
        for part in sorted(wanted & set(TABLES)):
            outcome.skipped[part] = "the supernova table was not given (--data TABLE.csv)"
            say(f"{part} is left out: {outcome.skipped[part]}")
        wanted -= set(TABLES)
    device = _on_device(settings.engine)
    if device and "fig3" in wanted:
        get_ready(get_engine("cuda"), settings.scale)
    with Ahead(local_threads(settings.n_jobs) if device else 0) as ahead:
        drawn = _drawn(settings) if "fig3" in wanted else []
        problem = supernova.read_problem(settings.data) if wanted & set(TABLES) and settings.data is not None else None
        say(f"scale {settings.scale.name}: {cost(settings, problem)}")
        how = settings.scale, settings.seed, settings.n_jobs
        section = ahead.call(section3.collect, *how) if "section3" in wanted else None
        for problems, sizes in drawn:
            ahead.solve_theory(problems, sizes, sizes_of(SHOWN, problems[0].drawn.x0.size) if "fig1" in wanted else [])
        if drawn:
            ahead.solve_curves()
        validated = _stage(outcome, "cross_validation", _validated, settings, drawn, say) if drawn else {}
        runs = [] if problem is None else _stage(outcome, "supernova", _supernova, settings, problem, say)
        if wanted & {"fig1", "fig2"}:
            annealed = _stage(outcome, "annealing", _annealed, settings, validated, say)
        _stage(outcome, "theory_of_problems", ahead.know_theory)
        if wanted & {"fig2", "fig3"}:
            outcome.tables["theory"] = _stage(outcome, "theory", typical.table, MODEL.alpha)
        if "fig1" in wanted:
            _stage(outcome, "fig1", _fig1, outcome, annealed, settings.n_jobs)
        if "fig2" in wanted:
            _stage(outcome, "fig2", _fig2, outcome, annealed, settings.n_jobs)
        if "fig3" in wanted:
            _stage(outcome, "fig3", _fig3, outcome, list(validated.values()), settings.n_jobs)
        if runs:
            _tables(outcome, runs, wanted)
        if section is not None:
            _section3(outcome, _stage(outcome, "section3", section))
    outcome.wall = time.perf_counter() - began
    return outcome


def _on_device(engine: Any) -> bool:
    """Whether a device walks: with "auto" it does, for there are enough chains on any scale."""
    return bool(engine == "cuda" or (engine == "auto" and why_unavailable() is None))


def _stage(outcome: Reproduction, name: str, do: Callable[..., Any], *arguments: Any) -> Any:
    began = time.perf_counter()
    found = do(*arguments)
    outcome.seconds[name] = time.perf_counter() - began
    return found


def _drawn(settings: Settings) -> list[Drawn]:
    """The problems of figure 3, and their sizes."""
    scale, seed = settings.scale, settings.seed
    return [
        (draw_all(N, count, seed, n_jobs=settings.n_jobs), sizes_of(scale.loo_rhos, N))
        for N, count in scale.crossvalidated
    ]


def _validated(settings: Settings, drawn: Sequence[Drawn], say: Callable[[str], None]) -> dict[int, Walks]:
    """Figure 3's cross validation, by the number of columns."""
    found = cross_validate_all(drawn, settings.engine, settings.n_jobs, settings.journal, say)
    return {walks.N: walks for walks in found}


def _annealed(settings: Settings, validated: dict[int, Walks], say: Callable[[str], None]) -> list[Walks]:
    """The annealings of figures 1 and 2: those of the cross validation where it has them."""
    scale, found = settings.scale, []
    rhos = scale.rhos if "fig2" in settings.parts else SHOWN
    for N, count in scale.annealed:
        sizes = sorted({*sizes_of(rhos, N), *(sizes_of(SHOWN, N) if "fig1" in settings.parts else [])})
        if N in validated and validated[N].covers(sizes, count):
            found.append(validated[N].part(sizes, count))
            continue
        found.append(walk(draw_all(N, count, settings.seed), sizes, settings.engine, settings.n_jobs))
        say(f"N = {N}: {count} problems annealed")
    return found


def _fig1(outcome: Reproduction, annealed: Sequence[Walks], n_jobs: int | None) -> None:
    curves = fig1.collect(annealed, n_jobs)
    outcome.tables["fig1"] = fig1.table(curves)
    outcome.claims.append(fig1.agreement(curves))


def _fig2(outcome: Reproduction, annealed: Sequence[Walks], n_jobs: int | None) -> None:
    points = [points_of(walks, "epsilon", n_jobs) for walks in annealed]
    outcome.tables["fig2"] = fig2.table(points)
    outcome.claims += [fig2.above_bound(points), fig2.close_to_bound(points)]


def _fig3(outcome: Reproduction, validated: Sequence[Walks], n_jobs: int | None) -> None:
    points = [points_of(walks, "epsilon_g", n_jobs) for walks in validated]
    whole = [[typical.levels(k / walks.N, walks.M / walks.N) for k in walks.sizes] for walks in validated]
    outcome.tables["fig3"] = fig3.table(points, whole)
    outcome.claims += [
        fig3.lowest_near_rho_star(points),
        fig3.follows_at_point(points),
        fig3.no_worse_than_zero_temperature(points),
    ]


def _supernova(settings: Settings, problem: Any, say: Callable[[str], None]) -> list[supernova.Runs]:
    how = settings.scale, settings.seed, settings.engine, settings.n_jobs, settings.journal
    return supernova.collect(problem, *how, say)


def _tables(outcome: Reproduction, runs: Sequence[supernova.Runs], wanted: set[str]) -> None:
    if "table1" in wanted:
        outcome.tables["table1"] = supernova.table1(runs)
        outcome.claims.append(supernova.lowest_size(runs))
    if "table2" in wanted:
        outcome.tables["table2"] = supernova.table2(runs)
        outcome.claims.append(supernova.stable_columns(runs))
    outcome.claims += [supernova.depends_on_seed(runs), supernova.chains_remove_it(runs)]


def _section3(outcome: Reproduction, results: Sequence[section3.FixedSupport]) -> None:
    outcome.tables["section3"] = section3.table(results)
    outcome.claims.append(section3.no_clue(results))


def write_outcome(outcome: Reproduction, settings: Settings, folder: Path) -> None:
    """Write CSV, SVG and PNG of every part, verdict.json and run.json.

    Times are in run.json only, so that equal runs give equal verdicts.
    """
    from pairflip.paper.reproduce import drawing  # with matplotlib, which nothing else needs

    for part, rows in outcome.tables.items():
        write_csv(rows, folder / f"{part}.csv")
        if part in _FIGURES:
            for kind in ("svg", "png"):
                drawn = drawing.image(part, kind, rows, outcome.tables.get("theory", ()))
                (folder / f"{part}.{kind}").write_bytes(drawn)
    engine = settings.engine if isinstance(settings.engine, str) else settings.engine.name
    asked = {"scale": settings.scale.name, "seed": settings.seed, "parts": list(settings.parts)}
    _write_json({**asked, **outcome.verdict}, folder / "verdict.json")
    packages = {name: version(name) for name in ("numpy", "scipy", "numba", "matplotlib")}
    _write_json(
        {
            "command": settings.command,
            **asked,
            "engine": engine,
            "versions": {"pairflip": pairflip.__version__, "python": platform.python_version(), **packages},
            "system": f"{platform.system()} {platform.machine()}",
            "data": None if settings.data is None else settings.data.name,
            "seconds": {name: round(value, 2) for name, value in outcome.seconds.items()},
            "wall_seconds": round(outcome.wall, 2),
        },
        folder / "run.json",
    )


def write_csv(rows: Rows, path: Path) -> None:
    """Numbers with ten digits: the same on every machine up to the last ones."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows([_text(value) for value in row.values()] for row in rows)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _write_json(record: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
