"""How hard the code is to read, in numbers: what the main job walks through, and what the source is made of.

The walk: every function of the package in the order in which `pairflip select` first calls it on a small made-up table.
A reader who follows it meets so many functions in so many files, and changes the file so many times. What runs only
because a module is imported is not part of it.
"""

import ast
import inspect
import io
import signal
import sys
import tempfile
import threading
import tokenize
from contextlib import chdir, redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path

import numpy as np

import pairflip

HOME = Path(pairflip.__file__).parent
SMALL = 50


def write_table(path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 12))
    y = 2.0 * X[:, 1] - X[:, 4] + 0.5 * rng.normal(size=40)
    names = ",".join([*(f"x{j}" for j in range(12)), "y"])
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=names, comments="", fmt="%.6g")


def is_import(frame):
    """Whether a module of ours is being imported: it is on the way to this frame."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and Path(frame.f_code.co_filename).is_relative_to(HOME):
            return frame.f_code.co_filename != str(HOME / "__main__.py")
        frame = frame.f_back
    return False


def walk(command, *arguments):
    """Functions (file, name) in the order of their first calls; own code only, in every thread."""
    from pairflip.__main__ import main

    home, met = f"{HOME}/", {}

    def heard(frame, event, _):
        code = frame.f_code
        if event != "call" or code in met or not code.co_filename.startswith(home):
            return
        # Bodies of modules and classes are no functions; comprehensions and lambdas belong to theirs.
        if code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<") and not is_import(frame):
            met[code] = code.co_filename.removeprefix(home), code.co_qualname

    before, argv, shown = signal.getsignal(signal.SIGINT), sys.argv, io.StringIO()
    sys.argv = ["pairflip", command, *arguments]
    threading.setprofile(heard)
    sys.setprofile(heard)
    try:
        with redirect_stdout(shown), redirect_stderr(shown):
            main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"pairflip {command} failed:\n{shown.getvalue()}") from None
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        sys.argv = argv
        signal.signal(signal.SIGINT, before)
    return list(met.values())


def docstring_lines(text):
    """Lines of texts that stand alone: docstrings, and those below constants and fields."""
    lines = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines |= set(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def comment_lines(text):
    """Lines that hold a comment and nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(one.type == tokenize.COMMENT and one.line.lstrip().startswith("#") for one in tokens)


def report():
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_table(Path("table.csv"))
        # One thread, so that the order does not depend on which of them is first.
        met = walk("select", "table.csv", "--target", "y", "--jobs", "1")
    files = [file for file, _ in met]
    changes = sum(a != b for a, b in pairwise(files))
    print("\nThermometers: what the main job walks through (pairflip select, 40 x 12)")
    print(f"{len(met)} functions in {len(set(files))} files, {changes} changes of file")
    by_room = {}
    for file in files:
        room = file.split("/")[0] if "/" in file else "(root)"
        by_room[room] = by_room.get(room, 0) + 1
    print(", ".join(f"{room} {count}" for room, count in by_room.items()))
    texts = [path.read_text(encoding="utf-8") for path in sorted(HOME.rglob("*.py"))]
    lengths = [len(text.splitlines()) for text in texts]
    total, docs, comments = sum(lengths), sum(map(docstring_lines, texts)), sum(map(comment_lines, texts))
    small = sum(length <= SMALL for length in lengths)
    print("Source (Python files of src/pairflip)")
    print(f"{total} lines in {len(texts)} files; median {int(np.median(lengths))}, largest {max(lengths)}")
    print(f"{100 * docs / total:.1f} % docstring lines, {100 * comments / total:.1f} % comment lines")
    print(f"{small} files of {SMALL} lines or less", flush=True)
