"""Bad usage, data, options and places: one sentence, exit code 2, no traceback, nothing half-written."""

import os
import resource
import shlex
import shutil
from typing import Literal, get_origin

import numpy as np
import pytest
from typer.main import get_command

from _cli import QUICK, assert_refused, invoke, planted, run, small_table, tree, without_figures, write_csv
from pairflip.cli import app
from pairflip.cli.errors import annotation, option_name

Y = "select small.csv -t y"
SELECT = "select mixed.csv --keep /^[a-f]$/ -q"
SURVIVAL = f"{SELECT} --time weeks --event"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """small.csv, and tables that cannot be used as they are."""
    folder = tmp_path_factory.mktemp("refusals")
    small_table(folder / "small.csv")
    y, X = planted()
    names = ["y", *"abcdef"]
    rng = np.random.default_rng(0)
    extra = {
        "sick": np.where(rng.random(24) < 0.5, "yes", "no"),
        "visits": rng.poisson(2.0, 24),
        "weeks": rng.exponential(size=24).round(3),
        "relapse": rng.integers(0, 2, 24),
        "red": ["red"] * 24,
        "void": [""] * 24,
    }
    columns = [*np.column_stack([y, X]).T.tolist(), *(list(each) for each in extra.values())]
    write_csv(folder / "mixed.csv", [*names, *extra], zip(*columns, strict=True))
    texts = {
        "one.csv": "y,a\n1,2\n",
        "commas.csv": "y;a\n1;1,499\n2;2,500\n",
        "grouped.csv": "y,a,b,g\n1,2,3,u\n2,,5,v\n3,1,4,\n4,4,1,w\n5,9,2,u\n",  # row 3 keeps its number
        "unknown.csv": "column,group\na,first\nzz,first\n",
        "long.csv": f"column,group\n{'a' * 140_000},first\n",
        "other.json": "{}",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "empty").mkdir()
    return folder


@pytest.fixture
def folder(home, monkeypatch):
    """The same folder, in which nothing may be left."""
    monkeypatch.chdir(home)
    without_figures(monkeypatch)
    before = tree(home)
    yield home
    assert tree(home) == before


BAD = [
    ("demo --size 3", "--size is not an option of this command; expected --sizes 3."),
    (f"{Y} --k 3", "--k is not an option of this command; expected --sizes 3."),
    ("fit small.csv -t y --sizes=2", "--sizes is not an option of this command; expected --k 2."),
    ("demo --sizes many", "--sizes is 'many'; expected"),
    ("demo --sizes 5-2", "--sizes is '5-2'; expected"),
    ("demo --seed=-1", "--seed is -1; expected a whole number, at least 0."),
    ("demo --sizes 1 --jobs 0", "--jobs is 0; expected"),
    ("fit small.csv", "--k is missing; expected a whole number, at least 1."),
    ("report", "SAVED is missing; expected a result folder, its result.json, or a file of"),
    ("reproduce", "WHAT is missing; expected fig1, fig2"),
    ("select small.csv -t gene 1", "'1' was not expected here; put names with spaces in quotes"),
    # the table
    ("select smal.csv -t y", "'smal.csv' does not exist; expected the file of a table: perhaps 'small.csv'"),
    ("select empty -t y", "is a folder"),
    ("select one.csv -t y", "1 row below the header; expected at least two"),
    (f"{Y}2", "--target 'y2' is not a column"),
    ("select commas.csv -t y", "1499 with --thousands , or as 1.499 with --decimal ,."),
    ("select mixed.csv -t y --keep void", "without any value: 'void'; expected numbers: leave them out with --missing"),
    ("prove mixed.csv -t y -k 1 --keep a,red", "'red' (row 1: 'red'); expected numbers: leave it out with --drop-text"),
    ("select mixed.csv -t y --keep red --drop-text", "No column of numbers is left"),
    (f"{Y} --sizes 1-7", "sizes (--sizes) holds 7, but the table has 6 candidate columns that vary; expected sizes"),
    (f"{Y} --thousands .", "--thousands and the decimal mark are both '.'"),
    (f"{Y} --always aa", "--always 'aa' is not a column to choose from; expected one of them: perhaps 'a'"),
    (f"{Y} --weights w", "--weights 'w'"),
    (f"{Y} --groups site", "--groups 'site' is not a column"),
    (f"{Y} --groups y", "--groups and --target"),
    (
        "select grouped.csv -t y --groups g --missing drop-rows",
        "--groups 'g' has no value in row '3'; expected a group",
    ),
    ("posterior mixed.csv -t sick --keep a", "select and fit take classes (--loss logistic or multinomial), other"),
    # the search and its journal
    (f"{Y} --cv many", "--cv is 'many'"),
    (f"{Y} --stability=-1", "--stability"),
    (f"{Y} --null 100000", "expected a whole number from 0 to 10,000"),
    (f"{Y} --stability-at some", "--stability-at is 'some'; expected"),
    (f"{Y} --shard 1/2", "--shard is given without a journal; expected --journal"),
    (f"{Y} --shard 3/2 --journal j", "3/2"),
    (f"{Y} --merge j", "--merge is given without a journal"),
    (f"{Y} --merge nothing --journal j", "'nothing' is not a journal"),
    (f"{Y} --journal o/j --out o", "result folder"),
    (f"{Y} --journal other.json", "journal 'other.json' is a file; expected a folder, or the name of a new one."),
    (f"{Y} --center left", "--center is 'left'; expected 'fold', 'global' or 'none'."),
    (f"{Y} --missing guess", "--missing is 'guess'; expected 'drop-rows' or 'drop-columns'."),
    # columns that belong together
    (f"{Y} --column-groups none.csv", "cannot be read"),
    (f"{Y} --column-groups long.csv", "cannot be read (it is not a text table in UTF-8)"),
    (f"{Y} --column-groups small.csv", "does not have the columns column and group"),
    (f"{Y} --column-groups unknown.csv", "'zz'"),
    (f"{Y} --min-distance=-1", "--min-distance"),
    (f"{Y} --positive a --negative all", "in --positive and in --negative"),
    (f"{SELECT} -t visits --positive all --loss poisson", "squared error"),
    # classes, counts, survival times
    (f"{SELECT} -t sick --loss multinomial", "expected more: --loss logistic takes two"),
    (f"{SELECT} -t a --offset b", "--loss poisson only"),
    (f"{Y} --loss poisson --offset time", "--offset 'time'"),
    (f"{SELECT} -t sick --null 3", "null (--null) is 3"),
    (f"{SELECT} --loss cox --time weeks", "expected --time NAME --event NAME"),
    (f"{SELECT} -t a --loss poisson --time weeks", "expected it with --loss cox only"),
    (f"{SURVIVAL} relapse -t a", "expected --time NAME and --event NAME"),
    (f"{SELECT} --time week --event relapse", "--time 'week' is not a column"),
    (f"{SURVIVAL} weeks", "two columns"),
    (f"{SURVIVAL} relapse --center none", "no constant anyway"),
    # other commands
    ("prove small.csv -t y -k 2 --budget soon", "--budget is 'soon'; expected a time such as 60 (seconds), 60s, 2min"),
    ("prove small.csv -t y -k 2 --n-best 0", "--n-best is 0; expected a whole number, at least 1."),
    ("prove small.csv -t y -k 2 --n-best 1000000", "n_best is 1000000; expected a whole number from 1 to"),
    ("prove small.csv -t y -k 2 --within abc", "--within is 'abc'; expected distances from the best such as 1%"),
    ("compare small.csv -t y --methods omp,lars", "'lars' is not a method (--methods); expected "),
    ("posterior small.csv -t y --out .", "--out"),
    ("sample small.csv -t y -k 2 --beta cold", "--beta is 'cold'; expected a number >= 0, or noise."),
    ("report none", "cannot be read"),
    ("report empty", "holds no result.json"),
    ("report other.json", "not a pairflip size curve"),
    ("theory", "--rho 0.1"),
    ("theory --rho 1.5", "rho is 1.5"),
    ("theory --rho 0.1 --betas 1:2", "FIRST:LAST:COUNT"),
    ("theory --rho 0.1 --plot curve.xls", ".svg, .png or .pdf"),
    ("theory --rho 0.1 --plot no/such/folder/a.svg", "does not exist"),
    ("theory --rho 0.1 --rho 0.2 --beta 1 --beta 2 --plot a.svg", "one of them"),
    ("reproduce table1 --out x", "--data"),
    ("reproduce fig1", "--out"),
    # places
    (f"{Y} --out small.csv/out", "cannot be written"),
    (f"{Y} --out small.csv", "is not a folder"),
    (f"{Y} --out .", "exists"),
    ("fit small.csv -t y -k 2 --out one.csv", "'one.csv' exists; add --force"),
    ("fit small.csv -t y -k 2 --out coef.xlsx", "expected a .csv, .tsv or"),
]


@pytest.mark.parametrize(("command", "sentence"), BAD, ids=[command[:60] for command, _ in BAD])
def test_refused(folder, monkeypatch, command, sentence):
    if "/out" in command:
        monkeypatch.setattr("pairflip.selection.select_size", None)  # it is found out before the work, not after
    result = invoke(*shlex.split(command))
    if (folder / "j").exists():
        shutil.rmtree(folder / "j")  # a journal may begin before its shard is looked at
    assert_refused(result, sentence)
    assert_own_words(result)


def assert_own_words(result):
    for phrase in ("Invalid value", "Value error", "Input should", "unable to parse", "<class", "valid path"):
        assert phrase not in result.stderr


COMMANDS = {
    **{command: ["small.csv", "-t", "y"] for command in ("select", "fit", "prove")},
    **{"theory": [], "demo": [], "reproduce": ["fig1", "--out", "results"]},
}


def wrong_values():
    """(command, option) for every option that takes a number or one of some words."""
    commands = get_command(app).commands
    for command in COMMANDS:
        for parameter in commands[command].params:
            kind, _ = annotation(commands[command], parameter)
            if parameter.name != "config" and (kind in (int, float) or get_origin(kind) is Literal):
                yield command, option_name(parameter)


def test_wrong_values_of_options_in_our_own_words(folder):
    cases = list(wrong_values())
    assert len(cases) > 40
    for command, option in cases:
        result = invoke(command, *COMMANDS[command], option, "wrong")
        assert_refused(result, f"{option} is 'wrong'; expected ")
        assert_own_words(result)


BAD_CONFIG = [
    ('targt = "y"', "unknown key 'targt'; perhaps target"),
    ("qqqqqq = 1", "unknown key 'qqqqqq'; expected some of data, target"),
    ("target: y", "is not a TOML file"),
    ('[select]\ntarget = "y"', "unknown key 'select'"),
    ('drop-text = "yes"', 'drop-text = "yes"; expected true or false'),
    ("drop = 5", "drop = 5; expected a list of texts"),
    ("seed = true", "seed = true; expected a whole number, at least 0"),
    ('config = "other.toml"', "unknown key 'config'"),
    ('seed = "x"', "--seed is 'x' in 'c.toml'; expected a whole number, at least 0."),
    ("ridge = true", "has ridge = true; expected a text or a number."),
    ("missing = 3", "--missing is 3 in 'c.toml'; expected 'drop-rows' or 'drop-columns'."),
    ("journal = 3", "has journal = 3; expected the name of a file or folder in quotes."),
    ('sizes = [1, "x"]', 'has sizes = [1, "x"]; expected numbers of columns.'),
]


def test_bad_files_of_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_table(tmp_path / "small.csv")
    for text, expected in BAD_CONFIG:
        (tmp_path / "c.toml").write_text(text + "\n")
        result = invoke("select", "small.csv", "-t", "y", "--config", "c.toml")
        assert_refused(result, expected)
        assert_own_words(result)
    assert_refused(invoke("select", "small.csv", "--config", "none.toml"), "'none.toml' cannot be read")
    assert tree(tmp_path) == ["c.toml", "small.csv"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path):
    small_table(tmp_path / "small.csv")
    (tmp_path / "closed").mkdir(mode=0o500)
    result = invoke("select", tmp_path / "small.csv", "-t", "y", "--out", tmp_path / "closed/out")
    assert_refused(result, "Permission denied")


@pytest.mark.parametrize("limit", [*(pytest.param(limit, marks=pytest.mark.slow) for limit in (100, 3_000)), 40_000])
def test_a_full_disk_leaves_nothing_new_and_what_was_there(tmp_path, monkeypatch, limit):
    """Files may not grow beyond a limit, as on a disk that is full."""
    monkeypatch.chdir(tmp_path)
    without_figures(monkeypatch)
    small_table("small.csv")
    arguments = ["select", "small.csv", "-t", "y", "--sizes", "1-3", "--cv", "4", *QUICK, "--stability", "0", "--out"]
    assert invoke(*arguments, "deep/out").exit_code == 0
    before = {name: (tmp_path / name).read_bytes() for name in tree(tmp_path) if (tmp_path / name).is_file()}
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}
    for out, words in (("deep/er/out", ["too large"]), ("deep/out", [])):
        result = run(*arguments, out, "--force", "--seed", "2", folder=tmp_path, **full)
        assert_refused(result, f"{out!r} cannot be written", *words)
    assert {name: (tmp_path / name).read_bytes() for name in tree(tmp_path) if (tmp_path / name).is_file()} == before
    assert not (tmp_path / "deep" / "er").exists()


def run_out(error, cause):
    """Raise an error because of another one."""
    try:
        raise cause
    except type(cause):
        raise error  # noqa: B904  (as libraries do)


SHORTAGES = [
    (ImportError("a.so: failed to map segment from shared object"), MemoryError()),
    (AttributeError("'DummyProcess' object has no attribute 'terminate'"), RuntimeError("can't start new thread")),
    (OSError("Could not find 'libllvmlite.so'"), OSError("libllvmlite.so: cannot allocate memory")),
]


@pytest.mark.parametrize(("error", "cause"), SHORTAGES, ids=lambda error: type(error).__name__)
def test_too_little_memory_and_too_few_threads_are_no_bug(tmp_path, monkeypatch, error, cause):
    monkeypatch.setattr("pairflip.selection.select_size", lambda *given, **how: run_out(error, cause))
    result = invoke("select", small_table(tmp_path / "small.csv"), "-t", "y", "--out", tmp_path / "out")
    assert (result.exit_code, result.stderr.count("\n"), result.stdout) == (1, 1, "")
    assert result.stderr.startswith("pairflip: there is not enough memory, or too few threads are allowed")


def test_a_library_that_is_loaded_in_part_does_not_end_in_a_crash(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    little = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))}
    result = run("fit", small_table(tmp_path / "small.csv"), "-t", "y", "--k", "2", **little)
    assert result.returncode == 1, result.stderr  # by our sentence, or by that of the library that gives up
    assert not {"Traceback", "bug"} & set(result.stderr.split())


def test_names_reach_the_terminal_as_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_table("\x1b[31m.csv")
    result = invoke("select", "\x1b[31m.csv", "-t", "\x1b[31my\n\x07")
    assert_refused(result, "\\x1b[31my")
    assert not {"\x1b", "\x07"} & set(result.stderr)
