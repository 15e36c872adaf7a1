"""`pairflip doctor`: is everything here that is needed, and does it compute the right thing?"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import say
from pairflip.cli.printing import print_json

_NEEDED = [
    "numpy", "scipy", "numba", "scikit-learn", "pandas", "matplotlib", "contourpy", "joblib", "jinja2", "typer", "rich",
    "tomli-w",
]  # fmt: skip
_EXTRAS = {
    "pyarrow": "Parquet, Feather, Arrow", "openpyxl": "Excel", "cupy": "GPU", "dask": "clusters", "xarray": "DataTree",
}  # fmt: skip


def doctor(as_json: o.AsJson = False) -> None:
    """Check the installation: versions, cores, GPU, cache, and a comparison with brute force."""
    import platform

    from joblib import cpu_count

    import pairflip
    from pairflip.engines import auto_rule

    device, why_not = gpu()
    record: dict[str, Any] = {
        "pairflip": pairflip.__version__, "python": platform.python_version(), "platform": platform.platform(),
        "packages": {name: _version(name) for name in _NEEDED},
        "extras": {name: _version(name) for name in _EXTRAS}, "cores": int(cpu_count()), "gpu": device or None,
        "gpu_rule": auto_rule() if device else None, "no_gpu": why_not or None, "cache": _cache(),
    }  # fmt: skip
    engines = ["numba", "cuda"] if record["gpu"] else ["numba"]
    record["self_check"] = [check for engine in engines for check in self_check(engine)]
    if as_json:
        print_json(record)
    else:
        _print(record)
    if not all(check["passed"] for check in record["self_check"]):
        raise typer.Exit(1)


def _version(name: str) -> str | None:
    from importlib import metadata

    if name == "cupy":  # its distributions carry the version of CUDA in their names
        return next((d.version for d in metadata.distributions() if (d.name or "").lower().startswith("cupy")), None)
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def gpu() -> tuple[str, str]:
    """(name of the device, why it is not used); one of them is empty."""
    from importlib import import_module

    try:
        engine = import_module("pairflip.engines.cuda")
        why_not = engine.why_unavailable()
        return ("", str(why_not)) if why_not is not None else (str(engine.device_name()), "")
    except (ImportError, AttributeError):
        return "", "this version has no engine for it."
    except Exception as error:  # a broken driver must not keep the rest from being shown
        return "", f"{type(error).__name__}: {error}"


def _cache() -> str:
    """Where compiled code is kept."""
    import os

    from pairflip.engines.numba.annealing import walk

    folder = walk.stats.cache_path
    if not folder:
        return "none: every process compiles for itself (NUMBA_CACHE_DIR names a folder that can be written)"
    writable = not os.path.exists(folder) or os.access(folder, os.W_OK)
    return f"{folder}{'' if writable else ' (not writable)'}"


def self_check(engine: str) -> list[dict[str, Any]]:
    """Small random problems: does a search find what looking at every support finds?

    A device walks annealing chains, and the CPU would do the rest of a search: there nothing but these is asked for.
    """
    import numpy as np

    from pairflip.problem import SubsetProblem
    from pairflip.search.best_subset import best_subset

    how: dict[str, Any] = {} if engine == "numba" else {"method": "anneal", "polish": False}
    checks = []
    for seed, (rows, columns, k) in enumerate([(12, 6, 2), (20, 9, 3), (16, 8, 4), (30, 12, 3)]):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(rows, columns))
        y = X[:, :k].sum(axis=1) + rng.normal(size=rows)
        energy, support = enumerate_supports(X, y, k)
        trace = best_subset(SubsetProblem(X, y), k, seed=seed, engine=engine, **how)
        passed = trace.best_support.tolist() == support and abs(trace.best_energy - energy) <= 1e-9 * energy
        passed = passed and not (how and trace.note)  # a device that failed has a note
        asked = {"rows": rows, "columns": columns, "k": k, "engine": trace.engine}
        checks.append(asked | {"passed": bool(passed), "note": trace.note})
    return checks


def enumerate_supports(X: Any, y: Any, k: int) -> tuple[float, list[int]]:
    """The best of all supports of k columns, by plain least squares with an intercept.

    Deliberately shares no code with the engines, which are checked against it.
    """
    import numpy as np

    X, y = X - X.mean(axis=0), y - y.mean()
    energies = []
    for support in combinations(range(X.shape[1]), k):
        chosen = X[:, support]
        rest = y - chosen @ np.linalg.lstsq(chosen, y, rcond=None)[0]
        energies.append((float(rest @ rest) / 2.0, list(support)))
    return min(energies)


def _print(record: dict[str, Any]) -> None:
    packages = ", ".join(f"{name} {version or 'missing'}" for name, version in record["packages"].items())
    extras = ", ".join(
        f"{name} {version or 'not installed'} ({_EXTRAS[name]})" for name, version in record["extras"].items()
    )
    failed = [check for check in record["self_check"] if not check["passed"]]
    count = len(record["self_check"])
    lines = {
        "pairflip": f"{record['pairflip']}, Python {record['python']}, {record['platform']}",
        "packages": packages,
        "extras": extras,
        "cores": record["cores"],
        "GPU": f"{record['gpu']}; {record['gpu_rule']}" if record["gpu"] else f"not used: {record['no_gpu']}",
        "cache": record["cache"],
        "self-check": f"failed: {len(failed)} of {count} small problems were not solved exactly"
        if failed
        else f"passed: {count} small problems solved as by looking at every support",
    }
    for name, value in lines.items():
        typer.echo(f"{name + ':':<12}{value}")
    if failed:
        say(f"the self-check failed: {failed[0]}")
