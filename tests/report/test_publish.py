"""What is published predicts as the curve does, compiles and opens, whatever names the table has."""

import json
import re
import shutil
import subprocess
import warnings
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.preprocessing import QuantileTransformer

from _cli import invoke
from _combinations import LOSSES, problem_of
from _curves import ODD, make_curve
from pairflip import SizeCurve, SubsetProblem, losses, select_size
from pairflip.preprocessing import MSC, SNV
from pairflip.publish import left_out, publish
from pairflip.publish.figures import published_figures, shuffled, williams
from pairflip.publish.latex import escaped, math_number
from pairflip.publish.model import json_equation, model_of, onnx_model, python_function, text_equation
from pairflip.publish.words import methods, results
from pairflip.report.answer import answer_of, plain_paragraph
from pairflip.report.registry import FIGURES
from pairflip.text import clean

NEW = np.random.default_rng(7).normal(size=(6, 8))
FAR = 40.0 * NEW  # where exponentials would overflow
PDFLATEX = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
CASES = [(loss,) for loss in LOSSES] + [("squares", "always"), ("multinomial", "groups"), ("squares", "positive")]


@pytest.fixture(scope="module", autouse=True)
def no_loss_remains():
    """Tests elsewhere must not know the loss of our own."""
    before = dict(losses._OWN)
    yield
    losses._OWN.clear()
    losses._OWN.update(before)


def selected(*what):
    """A curve whose model has columns, found or not: names are odd, two of them the same."""
    problem = problem_of(*what)
    problem.names[:] = ODD[4:12]
    return select_size(problem, [1, 2, 3], 3, effort="quick")


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def curve(request):
    return selected(*request.param)


@pytest.fixture(scope="module")
def squares():
    return selected("squares", "always")


def quick(X, y, sizes, names=None, preprocess=None, **how):
    return select_size(SubsetProblem(X, y, names=names, preprocess=preprocess), sizes, 5, effort="quick", **how)


def normal(rows, columns, seed):
    return np.random.default_rng(seed).normal(size=(rows, columns))


@pytest.fixture
def unwritten(monkeypatch):
    """Files of figures are empty, for tests of everything else: writing them takes most of the time."""
    monkeypatch.setattr("pairflip.publish.figure_bytes", lambda figure, kind: b"")


def predicted(curve, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rows outside the range of the training rows
        return curve.predict(rows, predict_with="subset")


def used(curve, rows):
    """The columns of the model, by their labels."""
    model = model_of(curve, "y")
    dense = curve.coef(model.size).reshape(len(curve.names), -1)
    columns = np.unique([*np.flatnonzero(np.any(dense != 0, axis=1)), *curve.supports[curve.at(model.size)]])
    return rows[:, columns.astype(int)]


def test_the_python_function_predicts_the_same(curve):
    module = {}
    exec(python_function(model_of(curve, "y"), "1.0"), module)
    for rows in (NEW, FAR):
        of_model = used(curve, rows)
        by_order = [module["predict"](row) for row in of_model.tolist()]
        by_name = [module["predict"](dict(zip(module["COLUMNS"], row, strict=True))) for row in of_model.tolist()]
        assert by_order == by_name
        np.testing.assert_allclose(by_order, predicted(curve, rows), rtol=1e-9, atol=1.1e-12)
    with pytest.raises(ValueError, match="expected"):
        module["predict"]([1.0] * 20)


def test_onnx_predicts_the_same(curve):
    onnx = pytest.importorskip("onnx.reference", reason="onnx is not installed")
    model = model_of(curve, "y")
    contents = onnx_model(model, "1.0")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    for rows in (NEW, FAR):
        given = {"X": used(curve, rows)}
        for session in (onnx.ReferenceEvaluator(contents), runtime.InferenceSession(contents)):
            (prediction,) = session.run(None, given)
            np.testing.assert_allclose(prediction, predicted(curve, rows), rtol=1e-6, atol=1e-6)
    about = runtime.InferenceSession(contents).get_modelmeta().custom_metadata_map
    assert json.loads(about["columns"]) == model.columns


def test_the_sympy_string_evaluates_the_same(curve):
    sympy = pytest.importorskip("sympy", reason="sympy is not installed")
    record = json.loads(json_equation(model_of(curve, "y")))
    expected = predicted(curve, NEW).reshape(len(NEW), -1)
    for t, output in enumerate(record["outputs"]):
        expression = sympy.sympify(output["sympy"])
        for row, of_row in zip(used(curve, NEW), expected, strict=True):
            values = dict(zip(record["columns"], row, strict=True))
            assert float(expression.subs(values)) == pytest.approx(of_row[t], rel=1e-9)


def test_columns_that_are_always_in_and_constants_are_in_the_equation(squares):
    text = text_equation(model_of(squares, "y"))
    names = [squares.names[j] for j in (*squares.always, *squares.supports[squares.at(squares.answer.size)])]
    assert all(f"[{clean(name)}" in text for name in names)
    assert len(re.findall(r"\*\[", text)) == len(names)


def test_rounding_in_the_equation_is_harmless():
    X = 1e4 + normal(60, 5, 0)  # a constant that cancels columns times coefficients
    curve = quick(X, X @ [2.0, -1.0, 0.5, 0.0, 0.0] + 0.1 * normal(60, 1, 1)[:, 0], [1, 2, 3], list("abcde"))
    text = text_equation(model_of(curve, "y"))
    formula = re.sub(r"\[(\w)\]", r"\1", text.partition("=")[2])
    told = eval(formula, dict(zip("abcde", X.T, strict=True)))
    assert np.max(np.abs(told - curve.predict(X, predict_with="subset"))) < 0.01 * np.sqrt(2 * curve.cv_error.min())
    assert model_of(replace(curve, training_ranges=None), "y").digits == 17


def test_where_nothing_predicts_the_model_is_the_constant():
    table = normal(40, 7, 1)
    curve = quick(table[:, :6], table[:, 6], [1, 2])
    assert curve.answer.size == 0
    assert text_equation(model_of(curve, "y")).startswith("y = ")
    assert results(curve)[0].startswith("No set of columns predicts")


@pytest.mark.usefixtures("unwritten")
def test_preprocessing_is_told_everywhere(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    X = normal(40, 6, 4)
    y = X[:, 1] - 2 * X[:, 4] + 0.1 * normal(40, 1, 5)[:, 0]
    for transformer, how in ((SNV(), "each row by itself"), (MSC(), "without the held-out rows")):
        curve = quick(X, y, [1, 2], preprocess=transformer)
        words = curve.settings["preprocess"]
        curve.publish(tmp_path)
        files = ("methods.txt", "results.txt", "equation.txt", "equation.tex", "equation.json", "model.py")
        for name in (*files, "table_coefficients.tex", "table_sizes.tex"):
            assert words in " ".join((tmp_path / name).read_text().replace("'\n '", "").split()), name
        paper = (tmp_path / "paper.tex").read_text()
        assert paper.count(words) == paper.count(r"\caption{") > 3
        assert words in openpyxl.load_workbook(tmp_path / "tables.xlsx")["notes"]["A2"].value
        assert how in (tmp_path / "methods.txt").read_text()
    quick(X, y, [1], preprocess=QuantileTransformer(n_quantiles=9)).save(tmp_path / "a.json")
    assert how in methods(SizeCurve.load(tmp_path / "a.json"), "y")  # the file does not keep this transformer


def test_results_tell_what_to_doubt_and_rounding_is_no_constant(squares):
    answer = answer_of(squares)
    assert answer.cautions
    assert plain_paragraph(answer.bullets[-1]) in results(squares)
    assert not model_of(replace(squares, intercepts=squares.intercepts * 0 + 1e-13), "y").constants.any()


def test_the_paragraph_of_methods_has_what_repeats_the_run(squares):
    text = methods(squares, "melting point")
    assert "was searched (loss squares, method " in text
    assert "The error is the RMSE of these rows." in text
    parts = ["“melting point”", "8 candidate columns of 30 rows", f"pairflip {squares.version}", "seed 0", "3 folds"]
    assert all(part in text for part in (*parts, "arXiv:1603.01399", squares.data_hash[:16], "from 1 to 3"))
    assert "Every model contained" in text
    limits = {"hierarchy": True, "min_distance": 30, "signs": "positive"}
    text = methods(replace(squares, settings={**squares.settings, **limits}), "y")
    assert all(part in text for part in ("with its factors", "closer than 30", "Coefficients were kept"))


# Leverages and shuffled targets ---------------------------------------------------------------------------------------


def test_leverages_are_those_of_the_hat_matrix(squares):
    X = problem_of("squares", "always").X
    size = squares.answer.shown
    Z = np.column_stack([np.ones(30), X[:, [*squares.always, *squares.supports[squares.at(size)]]]])
    points = williams(squares)
    np.testing.assert_allclose(points.leverage, np.diag(Z @ np.linalg.pinv(Z)), rtol=1e-9)
    assert points.limit == pytest.approx(3 * Z.shape[1] / 30)
    assert np.sqrt(np.mean(points.residual**2)) == pytest.approx(1.0)


def test_leverages_are_saved_and_older_results_have_none(squares, tmp_path):
    squares.save(tmp_path / "a.json")
    loaded = SizeCurve.load(tmp_path / "a.json")
    np.testing.assert_array_equal(williams(loaded).leverage, williams(squares).leverage)
    record = json.loads((tmp_path / "a.json").read_text())
    for each in filter(None, record["training_ranges"]):
        del each["leverages"]
    (tmp_path / "old.json").write_text(json.dumps(record))
    old = SizeCurve.load(tmp_path / "old.json")
    assert "williams" not in published_figures(old, None)


def test_the_williams_plot_names_rows_beyond_the_limits():
    X = normal(40, 3, 2)
    X[5, 0] = 30.0
    y = X[:, 0] + 0.1 * normal(40, 1, 3)[:, 0]
    y[9] += 3.0
    points = williams(quick(X, y, [1]), [f"row {i}" for i in range(40)])
    assert {points.names[i] for i in points.outside} == {"row 5", "row 9"}


# Files ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(squares, tmp_path_factory):
    home = tmp_path_factory.mktemp("published") / "deep"
    publish(squares, home, "=cmd|' & 50 % _{^}\n$\\", [f"row {i} _&" for i in range(30)])
    return home


def compiled(folder, name):
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=120)
    assert done.returncode == 0, done.stdout[-1500:]
    return done.stdout


@PDFLATEX
def test_the_document_compiles(folder):
    assert "Output written on paper.pdf" in compiled(folder, "paper.tex")


@PDFLATEX
@pytest.mark.parametrize("loss", ["several targets", "multinomial", "cox"])
def test_the_document_of_other_losses_compiles(loss, tmp_path):
    selected(loss).publish(tmp_path)
    compiled(tmp_path, "paper.tex")


@PDFLATEX
def test_any_text_compiles(tmp_path):
    codes = (*range(32, 127), *range(0xA0, 0x250), *range(0x370, 0x400), *range(0x2010, 0x2070))
    texts = [*ODD, *map(chr, codes), "--", "²₂ Å 漢字 🌡️ ↵ ± ≤"]
    lines = "\n\n".join(f"x{escaped(clean(text))}" for text in texts)
    head = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{amsmath,textcomp}\begin{document}"
    (tmp_path / "a.tex").write_text(f"{head}\n{lines}\n\\end{{document}}\n", encoding="utf-8")
    compiled(tmp_path, "a.tex")


def test_letters_and_numbers_of_latex():
    assert escaped("a_b 50% \\x{}$") == r"a\_b 50\% \textbackslash{}x\{\}\$"
    assert escaped("^~#&") == r"\textasciicircum{}\textasciitilde{}\#\&"
    assert escaped("é α m² 漢") == r"é \ensuremath{\alpha} m\textsuperscript{2} \texttt{U+6F22}"
    assert [math_number(text) for text in ("-1.5e-05", "1,234")] == [r"-1.5 \times 10^{-5}", "1{,}234"]


def test_marks_of_a_byte_order_in_names_are_shown_in_figures(tmp_path, monkeypatch):
    monkeypatch.setattr("pairflip.publish.figures.figures_of", lambda curve: [FIGURES["selection_counts"]])
    with warnings.catch_warnings(action="error"):  # of letters that the font lacks
        make_curve(rows=20, columns=2, sizes=[2], planted=2, names=["a\ufeffb", "漢\uffff"], steps=2).publish(tmp_path)
    figure = ElementTree.parse(tmp_path / "figures" / "selection_counts_89mm.svg")
    assert {"a�b", "漢�"} <= set(figure.getroot().itertext())


@PDFLATEX
def test_every_figure_opens_at_its_width(folder):
    figures = sorted((folder / "figures").iterdir())
    assert {path.suffix for path in figures} == {".pdf", ".svg"}
    assert {"williams_89mm.pdf", "size_curve_183mm.svg"} <= {path.name for path in figures}
    for path in figures:
        millimetres = float(re.search(r"_(\d+)mm", path.name)[1])
        if path.suffix == ".svg":
            root = ElementTree.parse(path).getroot()
            points = float(root.get("width").removesuffix("pt"))
        else:
            contents = path.read_bytes()
            points = float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", contents)[1])
        assert points == pytest.approx(millimetres / 25.4 * 72, abs=0.1)
    shown = "\n\n".join(rf"\includegraphics{{figures/{p.name}}}" for p in figures if p.suffix == ".pdf")
    head = r"\documentclass{article}\usepackage{graphicx}\begin{document}"
    (folder / "open.tex").write_text(f"{head}\n{shown}\n\\end{{document}}\n")
    compiled(folder, "open.tex")


def assert_room(figure):
    """Legends and labels are within the figure."""
    figure.draw_without_rendering()
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    labels = [label for ax in figure.axes for label in (ax.xaxis.label, ax.yaxis.label)]
    assert all(artist.get_window_extent().x1 <= figure.bbox.x1 + 1 for artist in (*legends, *labels))


def test_long_legends_have_room_in_narrow_figures(squares, monkeypatch):
    """The recommended size and the one with the lowest error differ, so that the legend has all it may have."""
    monkeypatch.setattr("pairflip.publish.figures.figures_of", lambda curve: [FIGURES["size_curve"]])
    apart = replace(squares, cv_error=np.array([2.0, 1.0, 0.9, 0.89]), cv_error_se=np.full(4, 0.05))
    curve = replace(apart, settings={**squares.settings, "choose": "one_se"})
    assert (curve.answer.size, curve.best_size) == (2, 3)
    figure = published_figures(curve, None)["size_curve"][1]["89mm"]
    assert "forced columns alone" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert_room(figure)


def test_wide_names_have_room_in_narrow_figures(monkeypatch):
    monkeypatch.setattr(
        "pairflip.publish.figures.figures_of", lambda curve: [*map(FIGURES.get, ("paths", "selection_counts"))]
    )
    curve = make_curve(rows=20, columns=2, sizes=[1, 2], planted=2, names=[f"{j}{'W' * 40}" for j in range(2)], steps=2)
    for _, drawings in published_figures(curve, None).values():
        assert_room(drawings["89mm"])


def test_shuffled_targets_and_the_room_of_narrow_figures():
    table = normal(40, 7, 5)
    names = [f"{j} has a rather long name" for j in range(6)]
    curve = quick(table[:, :6], table[:, 0] + table[:, 6], [1, 2], names, stability=4, null=9)
    numbers = shuffled(curve)
    assert numbers.p_value == pytest.approx((1 + np.sum(curve.null.r2 >= numbers.observed)) / 10)
    figures = published_figures(curve, None)
    assert "permutation" in figures
    for name, (_, drawings) in figures.items():
        figure = drawings["89mm"]
        assert_room(figure)
        boxes = [tick.get_window_extent() for tick in figure.axes[0].get_xticklabels() if tick.get_text()]
        assert all(left.x1 <= right.x0 for left, right in pairwise(boxes)), name


@pytest.mark.usefixtures("unwritten")
def test_the_workbook_holds_texts_and_numbers_and_no_formula(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    names = ["=1+1", "@x", "+a", "#N/A", "bell\x07", "b"]
    X = normal(40, 6, 0)
    quick(X, X @ [1.0, 2.0, 3.0, 2.0, 2.0, 0.0], [4, 5], names).publish(tmp_path)
    book = openpyxl.load_workbook(tmp_path / "tables.xlsx")
    assert book.sheetnames == ["sizes", "selection_counts", "coefficients", "predictions"]
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} == {"s", "n", "b"}
    assert {clean(name) for name in names[:5]} <= {cell.value for cell in cells}
    assert len({row[0].value for row in book["predictions"].iter_rows(min_row=2)}) == 1


@pytest.mark.usefixtures("unwritten")
def test_without_optional_packages_the_rest_is_written(squares, tmp_path, monkeypatch):
    monkeypatch.setattr("pairflip.publish.find_spec", lambda name: None)
    written = {path.name for path in squares.publish(tmp_path)}
    assert not {"tables.xlsx", "model.onnx"} & written
    assert {"model.py", "equation.json", "paper.tex", "methods.txt"} <= written
    assert [sentence.split()[0] for sentence in left_out()] == ["tables.xlsx", "model.onnx"]


@pytest.mark.usefixtures("unwritten")
def test_a_folder_that_is_a_file_is_refused(squares, tmp_path):
    (tmp_path / "a").write_text("mine")
    with pytest.raises(OSError, match="name another one"):
        squares.publish(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "mine"


@pytest.mark.usefixtures("unwritten")
def test_command_line(squares, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    squares.save("saved.json")
    done = invoke("publish", "saved.json")
    assert done.exit_code == 0, done.output
    assert "saved-published" in done.stdout
    assert (tmp_path / "saved-published" / "model.py").exists()
    again = invoke("publish", "saved.json")
    assert again.exit_code == 2
    assert "--force" in again.output
    monkeypatch.setattr("pairflip.publish.find_spec", lambda name: None)
    quiet = [invoke("publish", "saved.json", "--force", *option) for option in ([], ["--quiet"], ["-q"])]
    assert [(each.exit_code, each.stderr == "") for each in quiet] == [(0, False), (0, True), (0, True)]
    (tmp_path / "saved-published" / "mine.txt").write_text("")
    assert invoke("publish", "saved.json", "--force").exit_code == 2
    assert invoke("publish", "absent.json", "--out", "b").exit_code == 2
    assert not (tmp_path / "b").exists()


@pytest.mark.usefixtures("unwritten")
def test_curves_of_other_versions_are_published(tmp_path):
    written = make_curve(names=[f"line {j}" for j in range(24)]).publish(tmp_path)
    assert "williams_89mm.pdf" not in {path.name for path in written}
