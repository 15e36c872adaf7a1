"""`pairflip prove`: the best sets, what is said of them, exit codes, bad input, Ctrl-C."""

import csv
import json
import os
import signal
from itertools import combinations

import numpy as np
import pytest

from _cli import assert_refused, invoke, planted, tree, write_csv
from pairflip import SubsetProblem
from pairflip import prove as prove_best
from pairflip.search import exhaustive

NAMES = tuple("abcdef")


def by_hand(k):
    """(energy, columns) of every set, the best first, by least squares on the columns."""
    y, X = planted()
    found = []
    for support in combinations(range(6), k):
        design = np.column_stack([np.ones(len(y)), X[:, support]])
        rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        found.append((0.5 * float(rest @ rest), [NAMES[j] for j in support]))
    return sorted(found)


def noise(path, rows, columns, **more):
    """A table in which nothing predicts anything, so that nothing can be ruled out early."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(columns)]
    return write_csv(path, ["y", *names], rng.normal(size=(rows, columns + 1)).round(4).tolist(), **more)


def test_the_best_sets_the_counts_and_the_sentence(folder):
    result = invoke("prove", "small.csv", "-t", "y", "--k", "2", "--n-best", "3", "--within", "100%,5000%")
    assert result.exit_code == 0, result.stderr
    known = by_hand(2)
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["rank", "energy", "R2", "worse", "by", "columns"]
    for at, (energy, columns) in enumerate(known[:3]):
        cells = lines[1 + at].split()
        assert cells[0] == str(at + 1)
        assert float(cells[1]) == pytest.approx(energy, rel=1e-3)
        assert lines[1 + at].endswith(f"  {', '.join(columns)}")
    best = known[0][0]
    near = [sum(energy <= (1 + distance) * best for energy, _ in known) for distance in (1, 50)]
    worse = f"{float(f'{100 * (known[1][0] / best - 1):.4g}'):.0f}"
    assert " ".join(lines[5:]) == (
        f"Of all 15 sets, the best one included, {near[0]} has an energy within 100 % of the lowest, {near[1]} within "
        f"5000 %. Proved: no other 2 columns of these 6 fit better; the next best set is {worse} % worse: "
        f"“{known[1][1][0]}” and “{known[1][1][1]}”."
    )


def test_json_has_everything(folder):
    arguments = ["prove", "small.csv", "-t", "y", "-k", "2", "--n-best", "4", "--within", "0.5", "--budget", "2min"]
    record = json.loads(invoke(*arguments, "--json").stdout)
    known = by_hand(2)
    assert set(record) == {
        "k", "proved", "columns", "energy", "lower_bound", "gap", "equals", "dependent", "best", "within", "candidates",
        "subsets", "looked", "method", "seconds", "budget", "note", "sentence", "target", "source",
    }  # fmt: skip
    assert record["proved"] is True
    assert (record["k"], record["candidates"], record["subsets"], record["budget"]) == (2, 6, 15, 120.0)
    assert (record["gap"], record["equals"], record["note"]) == (0.0, 1, "")
    assert (record["target"], record["source"]) == ("y", "small.csv")
    assert record["columns"] == record["best"][0]["columns"] == ["a", "d"]
    assert [each["columns"] for each in record["best"]] == [columns for _, columns in known[:4]]
    energies = [each["energy"] for each in record["best"]]
    np.testing.assert_allclose(energies, [energy for energy, _ in known[:4]], rtol=1e-9)
    np.testing.assert_allclose([e["excess"] for e in record["best"]], np.array(energies) / energies[0] - 1, atol=1e-12)
    y, _ = planted()
    total = np.sum((y - y.mean()) ** 2)
    np.testing.assert_allclose([e["r_squared"] for e in record["best"]], 1 - 2 * np.array(energies) / total)
    assert record["within"] == [{"distance": 0.5, "count": sum(e <= 1.5 * known[0][0] for e, _ in known)}]


def test_out_has_one_line_for_each_set_and_is_not_overwritten(folder):
    arguments = ["prove", "small.csv", "-t", "y", "--k", "2", "--n-best", "3", "--out", "best.csv"]
    assert invoke(*arguments).exit_code == 0
    with open("best.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["rank"] for row in rows] == ["1", "2", "3"]
    assert [json.loads(row["columns"]) for row in rows] == [columns for _, columns in by_hand(2)[:3]]
    assert list(rows[0]) == ["rank", "energy", "r_squared", "excess", "columns"]
    before = (folder / "best.csv").read_bytes()
    assert_refused(invoke(*arguments), "'best.csv' exists; add --force")
    assert invoke(*arguments, "--n-best", "1", "--force").exit_code == 0
    assert (folder / "best.csv").read_bytes() != before
    assert_refused(invoke(*arguments[:-1], "small.csv", "--force"), "the table")
    assert tree(folder) == ["best.csv", "small.csv"]


def test_forced_columns_and_weights_are_those_of_the_problem(folder):
    y, X = planted()
    arguments = ["prove", "small.csv", "-t", "y", "--k", "1", "--always", "d", "--weights", "f", "--json"]
    problem = SubsetProblem(X[:, :5], y, always=[3], sample_weight=np.abs(X[:, 5]))
    positive = np.column_stack([y, X[:, :5], np.abs(X[:, 5])])
    write_csv(folder / "small.csv", ["y", *NAMES], positive.tolist())
    record = json.loads(invoke(*arguments).stdout)
    assert record["candidates"] == 4
    assert record["energy"] == pytest.approx(prove_best(problem, 1).energy)


def test_without_enough_time_it_gives_a_bound_or_says_that_there_is_none(folder):
    noise(folder / "wide.csv", 30, 200)
    result = invoke("prove", "wide.csv", "-t", "y", "--k", "8", "--budget", "0.3s")
    assert result.exit_code == 0
    assert result.stdout.endswith(
        "\nNo proof within the budget of 0.3 s: better sets may exist, and no bound better\nthan zero can be given.\n"
    )
    assert "pairflip: looking at every one of 5.51e+13 sets takes about " in result.stderr
    assert result.stderr.endswith("more than the budget of 0.3 s; they can only be ruled out in groups.\n")
    noise(folder / "long.csv", 100, 60)
    result = invoke("prove", "long.csv", "-t", "y", "--k", "12", "--budget", "0.3s", "--n-best", "2", "--json", "-q")
    assert (result.exit_code, result.stderr) == (0, "")
    record = json.loads(result.stdout)
    assert (record["proved"], record["within"]) == (False, [])
    assert 0.0 < record["lower_bound"] < record["energy"]
    assert record["sentence"].startswith(
        "No proof within the budget of 0.3 s: a better set could have an energy up to "
    )


def test_names_reach_the_terminal_as_text(folder):
    y, X = planted()
    odd = ["\x1b[31mred", "[bold]b[/bold]", "c\nd", "d", "e", "\u202ef"]
    write_csv(folder / "odd.csv", ["y", *odd], np.column_stack([y, X]).tolist())
    result = invoke("prove", "odd.csv", "-t", "y", "--k", "2", "--n-best", "15")
    assert result.exit_code == 0, result.stderr
    for text in ("\\x1b[31mred", "[bold]b[/bold]", "c\\nd", "\\u202ef"):
        assert text in result.stdout
    assert not {"\x1b", "\u202e"} & set(result.stdout)
    record = json.loads(invoke("prove", "odd.csv", "-t", "y", "--k", "2", "--json").stdout)
    assert record["columns"] == ["\x1b[31mred", "d"]


@pytest.mark.alone
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process")
def test_ctrl_c_gives_what_is_known(folder, monkeypatch):
    """While threads are at work on the tree."""
    noise(folder / "long.csv", 100, 60)
    wait = exhaustive.wait

    def pressed(*work, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return wait(*work, **options)

    monkeypatch.setattr(exhaustive, "wait", pressed)
    result = invoke("prove", "long.csv", "-t", "y", "--k", "12", "--budget", "1h", "--quiet", "--out", "best.csv")
    assert result.exit_code == 130, result.stderr
    assert "interrupted; nothing" not in result.stderr
    assert "\nInterrupted after " in result.stdout
    assert ", before anything was proved: a better set could have an energy up to " in " ".join(result.stdout.split())
    assert (folder / "best.csv").exists()


@pytest.mark.parametrize("columns", [["a", "b"], ["a", "c", "d"]])
def test_columns_that_count_as_dependent_are_named_where_that_matters(folder, columns):
    rng = np.random.default_rng(0)
    names, X, little = list("abcdef"), rng.normal(size=(40, 6)), rng.normal(size=40)
    at = [names.index(name) for name in columns]
    X[:, at[0]] = X[:, at[1:]].sum(axis=1) + 1e-7 * little
    y = X[:, 4] + X[:, at[1:]] @ [1.0, 0.5][: len(at) - 1] + 0.1 * rng.normal(size=40)
    for target, size in ((y + 3 * little, len(columns) + 1), (y, len(columns))):
        write_csv("close.csv", [*names, "y"], np.column_stack([X, target]).tolist())
        arguments = ["prove", "close.csv", "-t", "y", "-k", str(size)]
        matters = size > len(columns)
        record = json.loads(invoke(*arguments, "--json").stdout)
        assert record["dependent"] == ([columns] if matters else [])
        given = ", ".join(f"“{name}”" for name in columns[:-1]) + f" and “{columns[-1]}”"
        says = f"Left out are sets with {given} together, which count as dependent; such a set fits better."
        assert (says in " ".join(invoke(*arguments).stdout.split())) == matters
