"""Laws from data: what is generated, kept, chosen and told, against brute force in plain Python."""

import json
import math
import shlex
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from _cli import invoke
from pairflip.cli.law import law as law_command
from pairflip.features import Expression, Law, Unit, expand, find_law
from pairflip.features.expansion import MOST, build, distinct
from pairflip.features.expressions import DEFAULT, OPERATORS, read_operators
from pairflip.features.screening import Models, models_of, screen, search, unit_columns

PLANETS = pd.DataFrame(  # semi-major axes in AU, eccentricities, radii of the Earth, years: any textbook
    {
        "a": [0.387, 0.723, 1.0, 1.524, 5.203, 9.555, 19.22, 30.11],
        "e": [0.206, 0.007, 0.017, 0.093, 0.048, 0.056, 0.047, 0.009],
        "R": [0.383, 0.949, 1.0, 0.532, 11.21, 9.45, 4.01, 3.88],
        "T": [0.2408, 0.6152, 1.0, 1.8808, 11.862, 29.457, 84.02, 164.8],
    }
)


def table(n=40, columns="abc", seed=0, low=0.5):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.uniform(low, 3.0, n) for name in columns})


def column(name):
    return Expression(column=name)


def brute_force(X, operators, rungs):
    """Every combination as plain Python makes it, that is finite and varies, with values by text; equal ones too."""
    level = [(column(name), X[name].to_numpy()) for name in X]
    for _ in range(rungs):
        made = []
        for name in operators:
            operator = OPERATORS[name]
            if operator.arity == 1:
                made += [(Expression(name, (e,)), operator.compute(v)) for e, v in level]
                continue
            for (e, v), (f, w) in combinations(level, 2):
                made.append((Expression(name, (e, f)), operator.compute(v, w)))
                made.append((Expression(name, (f, e)), operator.compute(w, v)))
        level += [(e, v) for e, v in made if np.isfinite(v).all() and np.ptp(v) > 1e-9 * abs(v).max()]
    return level


def different(columns, centred=True, tolerance=1e-8):
    """How many columns differ by more than a factor (and a constant)."""
    kept = []
    for v in columns:
        v = v - v.mean() if centred else v
        v = v / np.linalg.norm(v)
        if not kept or np.max(abs(np.array(kept) @ v)) < 1 - tolerance:
            kept.append(v)
    return len(kept)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("operators", "rungs"), [("+ - |-| * / ^2 sqrt log exp", 1), ("+ - * / ^2 sqrt", 2)])
def test_expansion_is_what_brute_force_makes_without_equal_columns(operators, rungs):
    """Of a difference and its negative there is one, which takes nothing away as long as there are sums."""
    X = table(columns="ab")
    blocks = list(expand(X, operators, rungs, block=3))
    ours = unit_columns(np.column_stack([block.columns for block in blocks]).T.copy(), True)
    theirs = unit_columns(np.array([v for _, v in brute_force(X, operators.split(), rungs)]), True)
    assert np.min(np.max(abs(theirs @ ours.T), axis=1)) > 1 - 1e-9
    assert np.min(np.max(abs(ours @ theirs.T), axis=1)) > 1 - 1e-9
    assert len(ours) == different(theirs)
    assert len(blocks) > 2


def test_equal_columns_come_once_in_their_simplest_form():
    X = table(columns="ab")
    X["twice"] = -2.0 * X["a"]
    X["same"] = 7.0
    texts = [str(e) for block in expand(X, "* / ^2 sqrt", rungs=2) for e in block.expressions]
    assert len(set(texts)) == len(texts)
    assert not any("twice" in text or "same" in text for text in texts)
    assert "a" in texts
    assert "sqrt(a^2)" not in texts  # a itself
    assert texts.count("b^2/a") == 1
    marks = np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 2.0], [1.0, 5.0]])
    assert distinct(marks, np.array([3, 1, 2, 1])).tolist() == [1, 2, 3]
    assert distinct(marks, np.array([2, 1, 2, 1])).tolist() == [0, 1, 3]


@pytest.mark.parametrize("centred", [True, False])
def test_screening_streams_what_full_materialization_gives(centred):
    """The columns that gain most with any of several models, from a library whose last rung is never in memory."""
    X = table(30, "abc", seed=1)
    rng = np.random.default_rng(2)
    y = (X["a"] * X["b"] + rng.normal(size=30)).to_numpy()
    target = y - y.mean() if centred else y
    operators = read_operators("+ - |-| * / ^-1 ^2 ^3 sqrt log exp", 2)
    library = build(X.to_numpy(), list(X), None, operators, MOST)
    own = unit_columns(library.columns, centred)
    models = models_of(own, target, np.array([[0, 1], [3, 4], [2, 7]]))
    pool = screen(library, operators[-1], models, 50, centred)
    every = [library.combined(*pairs) for operator in operators[-1] for pairs in library.pairs(operator)]
    values = np.concatenate([library.columns, *every])
    with np.errstate(all="ignore"):
        spread = np.ptp(values, axis=1) if centred else np.linalg.norm(values, axis=1)
        values = values[np.isfinite(values).all(axis=1) & (spread > 1e-9 * abs(values).max(axis=1))]
    units, gained = unit_columns(values, centred), []
    for v in units:
        best = 0.0
        for residual, basis in zip(*models, strict=True):
            rest = v - basis.T @ (basis @ v)
            if rest @ rest > 1e-7:
                best = max(best, (rest @ residual) ** 2 / (rest @ rest))
        gained.append(best)
    order, top, seen = np.argsort(-np.array(gained), kind="stable"), [], []
    for at in order:
        if len(top) == 50:
            break
        if not seen or np.max(abs(np.array(seen) @ units[at])) < 1 - 1e-12:
            seen.append(units[at])
            top.append(gained[at])
    assert np.sort(pool.values[:, 0])[::-1] == pytest.approx(top, rel=1e-9)
    assert len(pool.pairs) == 50


@pytest.mark.parametrize("code", sorted(code for each in OPERATORS.values() for code in each.codes))
def test_kernels_compute_what_expressions_do(code):
    """The gain of the only combination there is, by the kernel and by NumPy."""
    from pairflip.features.expressions import BY_CODE

    operator = BY_CODE[code]
    X = table(25, "ab" if operator.arity == 2 else "a", seed=code)
    y = np.random.default_rng(1).normal(size=25)
    library = build(X.to_numpy(), list(X), None, [(operator,)], MOST)
    pool = screen(library, [operator], Models(y[None], np.zeros((1, 0, 25))), 100, False)
    ours = {(c, i, j): gain for (c, i, j), gain in zip(pool.pairs.tolist(), pool.values[:, 0], strict=True)}
    expression = library.expression(code, operator.arity - 1, 0)
    v = expression.evaluate(X)
    assert ours[code, operator.arity - 1, 0] == pytest.approx((v @ y) ** 2 / (v @ v), rel=1e-10)
    assert pool.columns(library)[[c for c, _, _ in pool.pairs.tolist()].index(code)] == pytest.approx(v, rel=1e-12)


@pytest.mark.parametrize("keep", [60, 5000])
def test_no_exchange_with_any_generated_column_lowers_the_error(keep):
    """Whatever was kept; where everything was kept, the pair is the best of all pairs."""
    X = table(25, "ab", seed=3)
    rng = np.random.default_rng(3)
    y = (X["a"] ** 2 / X["b"] + 2 * np.sqrt(X["b"]) + 0.3 * rng.normal(size=25)).to_numpy()
    operators = read_operators("+ - * / ^2 sqrt log", 2)
    library = build(X.to_numpy(), list(X), None, operators, MOST)
    law = search(library, y, operators[-1], largest=2, keep=keep, models=5, intercept=True, effort="normal", seed=0)[1]
    Z = unit_columns(np.column_stack([block.columns for block in expand(X, "+ - * / ^2 sqrt log")]).T.copy(), True)
    target = y - y.mean()
    G, b = Z @ Z.T, Z @ target
    with np.errstate(all="ignore"):
        explained = (b[:, None] ** 2 + b**2 - 2 * G * b[:, None] * b) / (1 - G**2)
    explained[1 - G**2 < 1e-6] = 0.0
    pair = unit_columns(np.array([each.evaluate(X) for each in law.expressions]), True)
    places = np.argmax(abs(Z @ pair.T), axis=0)
    assert np.max(abs(Z @ pair.T), axis=0) == pytest.approx(1.0, abs=1e-9)
    reached = explained[places[0], places[1]]
    assert reached >= explained[places].max() * (1 - 1e-9)
    if keep > len(Z):
        assert reached >= explained.max() * (1 - 1e-9)
    left = y - law.predict(X)
    assert left @ left == pytest.approx(target @ target - reached)
    assert 60 < len(Z) < 5000


def test_keplers_third_law_with_its_unit():
    law = find_law(PLANETS, "T", units="a=AU, e=1, R=m, T=yr", intercept=False, sizes=[1, 2])
    assert law.size == 1
    assert str(law.expressions[0]) == "a^(3/2)"
    assert law.coef[0] == pytest.approx(1.0, abs=0.01)
    assert str(law.at().units[0]) == "yr/AU^(3/2)"
    assert law.text.startswith("T = 0.99")
    assert "[yr/AU^(3/2)]*a^(3/2)" in law.text
    assert r"\mathrm{AU}^{-3/2}" in law.latex
    assert law.at().agreement == 1.0
    assert law.folds == "loo"
    assert law.at().r2 > 0.999


def test_units_decide_what_is_made():
    X, units = table(columns="abn"), {"a": "m/s", "b": "m s^-1", "n": "1"}
    by_name = {name: Unit.parse(text) for name, text in units.items()}
    made = []
    for rungs in (1, 2):
        texts = {}
        for block in expand(X, rungs=rungs, units=units if rungs == 2 else "a=m/s, b=m s^-1, n=1"):
            assert [str(e.unit(by_name)) for e in block.expressions] == block.units
            texts |= dict(zip(map(str, block.expressions), block.units, strict=True))
        made.append(texts)
    told = {"b + a": "m/s", "log(n)": "1", "a^2": "m^2/s^2", "sqrt(a)": "m^(1/2)/s^(1/2)"}
    assert told.items() <= made[0].items()
    assert not any("log(a)" in text or "exp(b)" in text or "n + a" in text for text in made[0])
    assert any("log(a)" in str(e) for block in expand(X, rungs=1) for e in block.expressions)
    assert {"log(b/a)", "log(a/b)"} & made[1].keys()


@pytest.mark.parametrize(
    ("text", "powers", "shown"),
    [
        ("kg m^2/s^2", {"kg": 1, "m": 2, "s": -2}, "kg m^2/s^2"),
        ("kg*m2 s-2", {"kg": 1, "m": 2, "s": -2}, "kg m^2/s^2"),
        ("m^(1/2)", {"m": Fraction(1, 2)}, "m^(1/2)"),
        ("1/s", {"s": -1}, "1/s"),
        ("1", {}, "1"),
        ("J/K/mol", {"J": 1, "K": -1, "mol": -1}, "J/K/mol"),
        ("m/m", {}, "1"),
    ],
)
def test_units_are_read_and_written(text, powers, shown):
    unit = Unit.parse(text)
    assert dict(unit.powers) == powers
    assert str(unit) == shown
    assert Unit.parse(str(unit)) == unit


def test_a_folds_law_knows_its_training_rows_only(monkeypatch):
    """Held-out rows are replaced by garbage, of which logarithms and squares are not finite."""
    t = table(30, "abc", seed=6)
    y = (t["a"] * t["b"] + np.sqrt(t["c"]) + 0.05 * np.random.default_rng(6).normal(size=30)).to_numpy()
    held_out = np.arange(5, 12)
    splits = [(np.setdiff1d(np.arange(30), held_out), held_out), (np.arange(15), np.arange(15, 30))]
    garbage, z = t.copy(), y.copy()
    garbage.loc[held_out] = np.random.default_rng(7).normal(size=(7, 3)) * 10.0 ** np.arange(-120, 150, 39)[:7, None]
    z[held_out] = -1e6
    built, found = [], []

    def counted(X, *args):
        built.append(len(X))
        return build(X, *args)

    def remembered(library, y, *args, **kwargs):
        laws = search(library, y, *args, **kwargs)
        if y.size == 23:
            found.append([(list(map(str, law.expressions)), law.coef.tolist(), law.intercept) for law in laws])
        return laws

    monkeypatch.setattr("pairflip.features.law.build", counted)
    monkeypatch.setattr("pairflip.features.law.search", remembered)
    first, second = (find_law(*data, cv=splits, sizes=[1, 2], keep=200) for data in ((t, y), (garbage, z)))
    assert built == [30, 23, 15] * 2  # which columns exist is known from the training rows, too
    assert found[0] == found[1]
    assert first.at(1).rmse != second.at(1).rmse


def test_prediction_equals_the_generated_column_and_survives_files():
    t = table(40, "abc", seed=8)
    y = 3.0 * t["a"] / t["b"] ** 2 + 2.0 * np.exp(-t["c"]) + 0.01 * np.random.default_rng(8).normal(size=40)
    law = find_law(t, y.rename("y"), cv=4, sizes=range(1, 4), operators=[*DEFAULT, "exp-"], seed=3)
    again = Law.from_dict(json.loads(json.dumps(law.to_dict())))
    new = table(7, "cba", seed=9).assign(other=1.0)
    for size in [each.size for each in law.equations]:
        at = law.at(size)
        by_hand = at.intercept + sum(b * e.evaluate(new) for b, e in zip(at.coef, at.expressions, strict=True))
        assert law.predict(new, size) == pytest.approx(by_hand, rel=1e-14)
        assert np.array_equal(again.predict(new, size), law.predict(new, size))
    assert again.text == law.text
    assert again.latex == law.latex
    assert again.to_dict() == law.to_dict()
    assert str(again) == str(law)
    assert law.predict({name: 1.5 for name in "abc"}).shape == (1,)
    assert law.predict(new[["a", "b", "c"]].to_numpy()) == pytest.approx(law.predict(new))
    assert any("b" in each.columns for each in law.expressions)
    assert np.isnan(law.predict(new.assign(b=0.0))).all()


def test_terms_that_held_out_rows_do_not_have_are_counted():
    x = np.linspace(1.0, 4.0, 40)
    t = pd.DataFrame({"x": x, "z": np.cos(7 * x)})
    splits = [(np.arange(20, 40), np.arange(20)), (np.arange(20), np.arange(20, 40))]
    t.loc[:4, "x"] = -1.0 - 0.01 * np.arange(5)
    y = np.log(np.abs(x))
    law = find_law(t, y, cv=splits, sizes=[1], operators="log", rungs=1)
    assert law.at(1).undefined == 5
    assert math.isfinite(law.at(1).rmse)


def test_threads_and_seeds():
    t = table(40, "abc", seed=10)
    y = t["a"] * t["b"] + 0.1 * np.random.default_rng(10).normal(size=40)
    options = {"cv": 4, "keep": 300, "operators": "+ * / sqrt", "effort": "quick"}
    one, two = (find_law(t, y, n_jobs=jobs, **options).to_dict() for jobs in (1, 2))
    one["seconds"] = two["seconds"] = 0.0
    assert one == two
    assert find_law(t, y, seed=1, **options).at(1).rmse != one["equations"][0]["rmse"]


def test_one_standard_error_prefers_fewer_terms():
    t = table(60, "ab", seed=14)
    y = t["a"] * t["b"] + 0.3 * np.random.default_rng(14).normal(size=60)
    options = {"cv": 5, "keep": 300, "sizes": range(1, 4), "operators": "+ * / sqrt", "effort": "quick"}
    few, lowest = (find_law(t, y, choose=choose, **options) for choose in ("one_se", "best"))
    assert few.size == 1
    assert lowest.size == int(np.argmin([each.rmse for each in lowest.equations])) + 1 == 2


def test_errors_of_held_out_rows_are_those_of_a_loop_by_hand():
    """Of the straight line, in blocks of rows, which vary together."""
    t, rng = table(31, "a", seed=12), np.random.default_rng(12)
    y, folds = (t["a"] + rng.normal(size=31)).rename("y"), np.array_split(np.arange(31), 4)
    law = find_law(t, y, rungs=0, sizes=1, cv="blocks:4")
    lines = [np.polyfit(t["a"].drop(rows), y.drop(rows), 1) for rows in folds]
    squares = [np.square(y[rows] - np.polyval(line, t["a"][rows])) for rows, line in zip(folds, lines, strict=True)]
    mean = np.concatenate(squares).mean()
    spread = np.sqrt(sum(rows.size * (rows.mean() - mean) ** 2 for rows in squares) / 31 / 3)
    assert law.at().rmse == pytest.approx(np.sqrt(mean))
    assert law.at().rmse_error == pytest.approx(spread / (2 * np.sqrt(mean)))
    assert law.at().r2 == pytest.approx(1 - mean / np.var(y))


@pytest.mark.parametrize(
    ("expression", "text", "latex"),
    [
        (["sqrt", ["/", ["^3", "a"], "b"]], "sqrt(a^3/b)", r"\sqrt{\frac{a^{3}}{b}}"),
        (["^3", ["sqrt", "a"]], "a^(3/2)", "a^{3/2}"),
        (["/", ["-", "a", ["-", "b", "a"]], ["^2", ["+", "a", "b"]]], "(a - (b - a))/(a + b)^2", None),
        (["exp-", ["+", "a", "b"]], "exp(-(a + b))", r"\exp\left(-\left(a + b\right)\right)"),
        (["sqrt", ["^2", "a"]], "sqrt(a^2)", r"\sqrt{a^{2}}"),
        (["|-|", ["log", "a"], ["+", "a", "two words"]], "|log(a) - (a + [two words])|", None),
        (["^-1", ["*", "a", "b"]], "1/a/b", r"\frac{1}{a\,b}"),
    ],
)
def test_expressions_are_written(expression, text, latex):
    tree = Expression.from_list(expression)
    assert str(tree) == text
    assert latex in (None, tree.latex)
    assert tree.to_list() == expression


def test_written_expressions_mean_what_they_are():
    """SymPy computes from the text what the tree evaluates to."""
    sympy = pytest.importorskip("sympy")
    X = table(5, "ab", low=1.5)
    names = {name: sympy.Symbol(name, positive=True) for name in "ab"} | {"cbrt": sympy.cbrt}
    for block in expand(X, "- / * ^2 ^3 sqrt cbrt ^-1 log", rungs=2):
        for at in range(0, len(block.expressions), 7):
            formula = sympy.sympify(str(block.expressions[at]).replace("^", "**"), locals=names)
            value = float(formula.subs({names["a"]: X["a"][0], names["b"]: X["b"][0]}))
            assert abs(value) == pytest.approx(abs(block.columns[0, at]), rel=1e-9)


T = table()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"units": "a=m"}, r"units lack 'b', 'c'; expected a unit for every column"),
        ({"units": "a=m, b=m, c=m, z=m"}, "units name 'z', which the table does not have"),
        ({"units": "a=m, b=m, c=m^^2"}, "the unit 'm\\^\\^2' cannot be read; expected base units with powers"),
        ({"units": "a=m, b, c=m"}, "units have 'b'; expected name=unit"),
        ({"operators": "+ plus"}, "operators have 'plus'; expected some of"),
        ({"operators": [["+"], ["*"], ["/"]]}, "operators are given for 3 rungs; expected 2"),
        ({"rungs": 5}, "rungs is 5; expected how often operators are applied, a whole number from 0 to 4"),
        ({"sizes": [0]}, "sizes is \\[0\\]; expected numbers of terms from 1 to 8"),
        ({"choose": "bic"}, "choose is 'bic'; expected 'one_se' or 'best'"),
        ({"keep": 0}, "keep is 0; expected a whole number above 0"),
        ({"rungs": 4}, "4 rungs of 11 operators would combine .* expected at most"),
        ({"most": 100}, "2 rungs of 11 operators would combine .* expected at most 1e\\+02"),
        ({"cv": 41}, "cv is 41 folds; expected 2 to 40"),
    ],
)
def test_bad_input_gets_a_sentence(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        find_law(T, T["a"] * T["b"] + 1, **given)


@cache
def ratio():
    return find_law(T, (T["a"] / T["b"]).rename("y"), cv=3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: find_law(T, "q"), "the table has no column 'q'"),
        (lambda: find_law(T.to_numpy(), "y"), "target is 'y', but the table is no data frame"),
        (lambda: find_law(T.assign(b=np.nan), T["a"]), "NaN or infinity in column"),
        (lambda: find_law(T, T["a"]), "several columns are called 'a'"),  # the target has the name of a column
        (lambda: ratio().at(5), "size is 5; expected one of"),
        (lambda: ratio().predict(T[["a"]]), "X lacks the column 'b'"),
        (lambda: ratio().predict({"a": 1.0}), "the table lacks 'b'"),
    ],
)
def test_bad_tables_get_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_damaged_records_are_refused():
    record = ratio().to_dict()
    for change in ({"kind": "law"}, {"names": ["a"]}, {"equations": [{}]}, {"size": 7}, {"equations": None}):
        with pytest.raises(ValueError, match=r"the record of a law is damaged|size is 7"):
            Law.from_dict(record | change)
    record["equations"][0]["expressions"] = [["__import__", "os"]]
    with pytest.raises(ValueError, match="an expression reads"):
        Law.from_dict(record)


def test_the_command(write, tmp_path):
    data, out = write(PLANETS.to_csv(index=False)), tmp_path / "law.json"
    how = ["--target", "T", "--no-intercept", "--sizes", "1", "--operators", "* ^3 sqrt;* / sqrt"]
    done = invoke("law", str(data), *how, "--units", "a=AU,e=1,R=m,T=yr", "--out", str(out))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("T = 0.99")
    law = Law.from_dict(json.loads(out.read_text()))
    assert law.predict(PLANETS) == pytest.approx(PLANETS["T"], rel=0.01)
    again = invoke("law", str(data), *how, "--out", str(out))
    assert again.exit_code == 2
    assert "exists; add --force" in again.stderr
    bad = invoke("law", str(data), *how, "--units", "a=AU")
    assert bad.exit_code == 2
    assert "units lack 'e', 'R'" in bad.stderr
    shown = invoke("law", str(data), *how, "--json")
    assert json.loads(shown.stdout)["kind"] == "pairflip law"


def test_the_example_of_the_help_runs_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    m, v = np.random.default_rng(0).uniform(1, 5, size=(2, 30))
    pd.DataFrame({"m": m, "v": v, "y": m * v**2 / 2}).to_csv("data.csv", index=False)
    _, example = law_command.__doc__.strip().split("Example: pairflip ")
    done = invoke(*shlex.split(example), "--operators", "* ^2", "--sizes", "1", "--cv", "3", "--quiet")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("y = 0.5*m*v^2")
