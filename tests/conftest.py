"""Options and fixtures that every test file may use."""

import os
import signal
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as for what shells run in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

RELUCTANT = {"slow": "slow test: run with --slow", "gpu": "needs CuPy and a CUDA device: run with --gpu"}


def pytest_addoption(parser):
    for mark, reason in RELUCTANT.items():
        parser.addoption(f"--{mark}", action="store_true", help=f"also run tests marked '{mark}' ({reason})")


def pytest_collection_modifyitems(config, items):
    """Skip, with the reason, what is marked and was not asked for."""
    for mark, reason in RELUCTANT.items():
        if not config.getoption(f"--{mark}"):
            for item in items:
                if item.get_closest_marker(mark):
                    item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_configure_node(node):
    """Tell each process of a run where they note what they compile."""
    if not hasattr(node.config, "_claims"):
        node.config._claims = tempfile.TemporaryDirectory()
        node.config.add_cleanup(node.config._claims.cleanup)
    node.workerinput["claims"] = node.config._claims.name


def pytest_sessionstart(session):
    """Where the whole suite runs in several processes, each compiles other kernels first; the rest is there then."""
    worker, some = getattr(session.config, "workerinput", None), session.config.option.markexpr == "docs"
    if worker is not None and not some and [Path(each).resolve() for each in session.config.args] == [ROOT / "tests"]:
        from _kernels import compile_unclaimed

        compile_unclaimed(Path(worker["claims"]))


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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder in which commands run, with the table small.csv; nothing is drawn."""
    from _cli import small_table, without_figures

    monkeypatch.chdir(tmp_path)
    without_figures(monkeypatch)
    small_table(tmp_path / "small.csv")
    return tmp_path


@pytest.fixture
def undrawn(monkeypatch):
    """Pages with empty figures, for tests of their words: drawing takes most of the time of a page."""
    from _page_figures import without_drawings

    without_drawings(monkeypatch)


def pytest_ignore_collect(collection_path, config):
    """For the tests that run alone, or with the documentation, import the files that have some, not all."""
    if config.option.markexpr in ("alone", "docs") and collection_path.name.startswith("test_"):
        return f"mark.{config.option.markexpr}" not in collection_path.read_text(encoding="utf-8") or None
    return None


@pytest.fixture
def searched(monkeypatch):
    """Energies that are not quadratic are searched, however few supports there are."""
    monkeypatch.setattr("pairflip.search.portfolio.FEW_SUPPORTS", {})
