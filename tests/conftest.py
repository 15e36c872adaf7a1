"""Options and fixtures that every test file may use."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

RELUCTANT = {"slow": "slow test: run with --slow", "gpu": "needs CuPy and a CUDA device: run with --gpu"}


def pytest_addoption(parser):
    for mark, reason in RELUCTANT.items():
        parser.addoption(f"--{mark}", action="store_true", help=f"also run tests marked '{mark}' ({reason})")


def pytest_collection_modifyitems(config, items):
    """Skip, with the reason, what is marked and was not asked for."""
    for mark, reason in RELUCTANT.items():
        if not config.getoption(f"--{mark}"):
            for item in items:
                if mark in item.keywords:
                    item.add_marker(pytest.mark.skip(reason=reason))


def pytest_sessionstart(session):
    """Where the whole suite runs in several processes, each compiles other kernels first; the rest is there then."""
    worker = getattr(session.config, "workerinput", None)
    if worker is not None and [Path(each).resolve() for each in session.config.args] == [ROOT / "tests"]:
        from _kernels import compile_part

        compile_part(int(worker["workerid"].removeprefix("gw")), worker["workercount"])


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real data sets: ../shared/data beside the checkout, or what PAIRFLIP_SHARED_DATA names."""
    folder = Path(os.environ.get("PAIRFLIP_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data sets at {folder}: set PAIRFLIP_SHARED_DATA to their folder")
    return folder


@pytest.fixture
def write(tmp_path):
    """Write a file and give its path."""

    def written(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written
