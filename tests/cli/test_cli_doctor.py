"""`pairflip doctor`: says what is here, and fails when the search does not find the optimum."""

import json
import sys
import types
from importlib import import_module

import numpy as np

from _cli import invoke

doctor = import_module("pairflip.cli.doctor")  # its name in the package is the command


def test_doctor_says_what_is_here():
    result = invoke("doctor")
    assert result.exit_code == 0, result.stderr
    for text in ("pairflip:", "numpy", "cores:", "GPU:", "cache:", "self-check: passed"):
        assert text in result.stdout
    record = json.loads(invoke("doctor", "--json").stdout)
    assert record["packages"]["numpy"] == np.__version__
    assert record["cores"] >= 1
    assert all(check["passed"] for check in record["self_check"])
    assert (record["gpu"] is None) != (record["no_gpu"] is None)


def test_a_wrong_search_fails(monkeypatch):
    monkeypatch.setattr(doctor, "enumerate_supports", lambda X, y, k: (1.0, list(range(k))))
    result = invoke("doctor")
    assert result.exit_code == 1
    assert "self-check: failed: " in result.stdout
    assert "self-check failed" in result.stderr


def test_without_the_gpu_engine(monkeypatch):
    monkeypatch.setitem(sys.modules, "pairflip.engines.cuda", None)
    assert doctor.gpu() == ("", "this version has no engine for it.")
    assert invoke("doctor").exit_code == 0


def test_a_gpu_is_named_and_a_broken_one_is_no_crash(monkeypatch):
    engine = types.SimpleNamespace(why_unavailable=lambda: None, device_name=lambda: "A fine card")
    monkeypatch.setitem(sys.modules, "pairflip.engines.cuda", engine)
    assert doctor.gpu() == ("A fine card", "")
    engine.why_unavailable = lambda: 1 / 0
    assert "ZeroDivisionError" in doctor.gpu()[1]
