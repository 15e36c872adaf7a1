"""`pairflip theory`: numbers on standard output, JSON without NaN, plots whole or absent."""

import json

import pytest
from typer.testing import CliRunner

from pairflip import theory
from pairflip.cli import app


def invoke(*arguments):
    return CliRunner().invoke(app, ["theory", *arguments])


def test_table_has_the_at_point_and_temperature_zero():
    result = invoke("--rho", "0.1")
    assert result.exit_code == 0, result.stderr
    assert "0.119832" in result.stdout
    assert "0.223413" in result.stdout
    assert "formal value" in result.stdout
    assert "nan" not in result.stdout


def test_json_agrees_with_the_module():
    result = invoke("--rho", "0.1", "--rho", "0.15", "--beta", "10", "--beta", "inf", "--json")
    rows = json.loads(result.stdout, parse_constant=lambda word: pytest.fail(f"JSON has {word}"))
    assert [(row["rho"], row["beta"]) for row in rows] == [(0.1, 10), (0.1, None), (0.15, 10), (0.15, None)]
    assert rows[0]["epsilon_g"] == theory.solve(10.0, 0.1, theory.Planted()).epsilon_g
    assert rows[3]["zero_energy"]
    assert rows[3]["entropy"] is None


def test_what_does_not_exist_is_null_with_a_note():
    rows = json.loads(invoke("--rho", "0.3", "--json").stdout)
    assert rows[0]["where"] == "AT point"
    assert not rows[0]["exists"]
    assert rows[0]["epsilon"] is None
    assert "never meets" in rows[0]["note"]
    assert "nan" not in invoke("--rho", "0.6", "--beta", "1").stdout


@pytest.mark.parametrize("name", ["curve.svg", "curve.png"])
def test_plot(tmp_path, name):
    result = invoke("--rho", "0.1", "--plot", str(tmp_path / name))
    assert result.exit_code == 0, result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).stat().st_size > 5000
