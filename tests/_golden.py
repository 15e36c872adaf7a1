"""Six small tables and what every engine finds on them, in numbers that must not change by a bit.

`python tests/_golden.py` writes tests/golden/*.json anew; do that only where a change of results is meant, and say so.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from _cli import QUICK, invoke
from pairflip import Schedule, SubsetProblem, anneal, select_size
from pairflip.engines.numba import NumbaEngine
from pairflip.engines.reference import ReferenceEngine

HOME = Path(__file__).parent / "golden"
SHORT = Schedule.geometric(1.0, 1e5, steps=15, sweeps=2, unit="greedy")
ENGINES = {
    "auto": NumbaEngine(),
    "square": NumbaEngine("square"),
    "table": NumbaEngine("table"),
    "reference": ReferenceEngine(),
}


def tables():
    """(X, y, options of the problem, groups) by name."""
    rng = np.random.default_rng(20)
    X = rng.normal(size=(24, 10))
    y = X[:, 1] - X[:, 4] + 0.5 * rng.normal(size=24)
    twins = X.copy()
    twins[:, 7] = twins[:, 1]
    twins[:, 8] = twins[:, 4] + 1e-3 * rng.normal(size=24)
    spectra = np.cumsum(rng.normal(size=(28, 30)), axis=1) / 5
    whole = rng.integers(0, 4, size=(24, 8)).astype(float)
    return {
        "planted": (X, y, {}, None),
        "twins": (twins, y, {}, None),
        "everything": (X, y, {"always": [2], "ridge": 0.3, "sample_weight": np.linspace(0.2, 2, 24)}, None),
        "spectra": (spectra, spectra[:, 7] - spectra[:, 19] + 0.1 * rng.normal(size=28), {"center": "global"}, None),
        "columns": (X, y, {"memory_budget": 0, "center": None}, None),
        "whole numbers": (whole, whole @ [1, 0, 0, 2, 0, 0, -1, 0] + rng.normal(size=24), {}, np.arange(24) // 3),
    }


def bits(values) -> list[str]:
    """Numbers as texts that keep every bit."""
    return [float(v).hex() for v in np.ravel(values)]


def digest(array) -> str:
    """Short hash of an array, bit for bit."""
    array = np.ascontiguousarray(array)
    return hashlib.sha256(str((array.dtype.str, array.shape)).encode() + array.tobytes()).hexdigest()[:16]


def of_anneal(problem, engine) -> dict:
    trace = anneal(problem, 3, SHORT, chains=4, seed=3, engine=engine)
    return {
        "supports": trace.supports.tolist(),
        "energies": bits(trace.energies),
        "best": trace.best_support.tolist(),
        "coef": bits(trace.best_coef),
        "intercept": bits(trace.best_intercept),
        "accepted": digest(np.round(trace.acceptance * trace.flips).astype(np.int64)),
    }


def of_curve(curve) -> dict:
    return {
        "sizes": curve.sizes.tolist(),
        "cv_error": bits(curve.cv_error),
        "cv_error_se": bits(curve.cv_error_se),
        "supports": [s.tolist() for s in curve.supports],
        "energies": bits(curve.energies),
        "agreement": bits(curve.agreement),
        "folds": digest(np.concatenate([s.ravel() for s in curve.fold_supports])),
        "predictions": digest(curve.predictions),
        "chain_cv_error": digest(curve.chain_cv_error),
        "facts": curve.facts,
    }


def selections(problem, groups) -> dict:
    """Curves of several kinds of cross validation."""
    common = {"sizes": [1, 2, 4], "seed": 5}
    found = {
        "folds": select_size(problem, cv=4, chains=2, **common),
        "repeats": select_size(problem, cv="2x3", schedule=SHORT, chains=2, **common),
        "paper": select_size(problem, cv="loo", schedule="paper", chains=1, polish=False, **common),
    }
    if groups is not None:
        found["groups"] = select_size(problem, cv="loo", chains=2, groups=groups, **common)
    return found


def record(name: str) -> dict:
    X, y, options, groups = tables()[name]
    problem = SubsetProblem(X, y, **options)
    return {
        "anneal": {key: of_anneal(problem, engine) for key, engine in ENGINES.items()},
        "select": {key: of_curve(curve) for key, curve in selections(problem, groups).items()},
    }


def on_the_command_line(folder: Path):
    """`pairflip select` of the planted table, without half-samples."""
    X, y, _, _ = tables()["planted"]
    header = ",".join(["y", *(f"x{j}" for j in range(X.shape[1]))])
    np.savetxt(folder / "t.csv", np.column_stack([y, X]), delimiter=",", header=header, comments="", fmt="%.17g")
    options = ("--target", "y", "--sizes", "1-2", *QUICK, "--stability", "0", "--json", "--out", folder / "o")
    return invoke("select", folder / "t.csv", *options)


def write_files() -> None:
    """A journal cut off half way, a saved curve, and what the command line prints."""
    import shutil
    from tempfile import TemporaryDirectory

    X, y, options, _ = tables()["planted"]
    problem = SubsetProblem(X, y, **options)
    shutil.rmtree(HOME / "journal", ignore_errors=True)
    curve = select_size(problem, [1, 2], cv=3, schedule=SHORT, chains=2, seed=5, journal=HOME / "journal")
    curve.save(HOME / "result-2.json")
    for path in (HOME / "journal").glob("tasks-*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: len(lines) // 2]))
        path.rename(path.with_name("tasks-killed.jsonl"))
    with TemporaryDirectory() as folder:
        done = on_the_command_line(Path(folder))
    kept = ("sizes", "cv_error", "cv_error_se", "supports", "coefs", "intercepts", "energies", "facts", "verdict")
    found = json.loads(done.stdout)
    (HOME / "command-line.json").write_text(json.dumps({key: found[key] for key in kept}) + "\n")


if __name__ == "__main__":
    HOME.mkdir(exist_ok=True)
    write_files()
    for name in tables():
        text = json.dumps(record(name), indent=0)
        (HOME / f"{name.replace(' ', '-')}.json").write_text(text + "\n", encoding="utf-8")
