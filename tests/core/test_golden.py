"""These answers stay: supports, and numbers to 1e-9; `python tests/_golden.py` writes them anew."""

import json

import numpy as np
import pytest

from _cli import without_figures
from _golden import HOME, SHORT, on_the_command_line, record, tables
from pairflip import SizeCurve, SubsetProblem, select_size


def assert_same(found, written, where=""):
    """Equal texts and supports, numbers to 1e-9; of predictions, only a digest of the bits was written down."""
    if isinstance(written, dict):
        assert found.keys() == written.keys(), where
        for key in written.keys() - {"predictions", "chain_cv_error"}:
            assert_same(found[key], written[key], f"{where} {key}")
    elif isinstance(written, list):
        assert len(found) == len(written), where
        for one, other in zip(found, written, strict=True):
            assert_same(one, other, where)
    elif isinstance(written, str) and "0x" in written:
        assert float.fromhex(found) == pytest.approx(float.fromhex(written), rel=1e-9, abs=1e-12), where
    elif isinstance(written, float):
        assert found == pytest.approx(written, rel=1e-9, abs=1e-12), where
    else:
        assert found == written, where


@pytest.mark.parametrize("name", tables())
def test_the_numbers_are_those_written_down(name):
    written = json.loads((HOME / f"{name.replace(' ', '-')}.json").read_text())
    assert_same(json.loads(json.dumps(record(name))), written)


@pytest.mark.parametrize("name", tables())
def test_engines_agree(name):
    found = json.loads((HOME / f"{name.replace(' ', '-')}.json").read_text())["anneal"]
    for other in ("square", "table", "reference"):
        assert found[other]["supports"] == found["auto"]["supports"]
        assert found[other]["energies"] == found["auto"]["energies"]
        assert found[other]["accepted"] == found["auto"]["accepted"]


def test_a_journal_written_down_is_taken_up(tmp_path):
    """The journal in golden/journal is that of a run that was killed half way."""
    import shutil

    X, y, options, _ = tables()["planted"]
    problem = SubsetProblem(X, y, **options)
    settings = dict(sizes=[1, 2], cv=3, schedule=SHORT, chains=2, seed=5)
    shutil.copytree(HOME / "journal", tmp_path / "journal")
    resumed = select_size(problem, **settings, journal=tmp_path / "journal")
    assert resumed.notes == ()
    assert len(list((tmp_path / "journal").glob("tasks-*.jsonl"))) == 2  # the one written down, and ours
    np.testing.assert_array_equal(resumed.predictions, select_size(problem, **settings).predictions)


def test_a_file_written_down_is_read():
    """result.json of version 0.2."""
    assert SizeCurve.load(HOME / "result-2.json").sizes.tolist() == [0, 1, 2]


def test_the_command_line_gives_the_numbers_written_down(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    done = on_the_command_line(tmp_path)
    assert done.exit_code == 0, done.stderr
    found, written = json.loads(done.stdout), json.loads((HOME / "command-line.json").read_text())
    # The words of the answer may change, and numbers may join it; those that were written down stay.
    words, told = written.pop("verdict"), found.pop("verdict")
    assert_same({key: found[key] for key in written}, written)
    assert_same(*({key: each[key] for key in words if key != "details"} for each in (told, words)))
