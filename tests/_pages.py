"""Running what the pages in docs/ show: Python blocks by themselves, console sessions in order in one folder."""

import doctest
import os
import re
import shlex
import subprocess
import sys

from _cli import invoke
from _markdown import Block, fenced_blocks
from conftest import ROOT

DOCS = ROOT / "docs"
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PRELUDE = 'set -uo pipefail\npairflip() { "$PAIRFLIP_PYTHON" -m pairflip "$@"; }\n'


def blocks(page: str) -> list[Block]:
    """The code of a page of docs/."""
    return fenced_blocks((DOCS / page).read_text(encoding="utf-8"))


def sessions(block: Block) -> list[tuple[str, str]]:
    """(command, what it should print) of a console block."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    return [(command, expected) for command, _, expected in (part.partition("\n") for part in parts)]


def output(command: str, folder) -> str:
    """What a command prints: in this process, to spare the imports, unless it needs a shell."""
    words = shlex.split(command)
    file = words[-1] if words[-2:-1] == [">"] else None
    words = words[:-2] if file else words
    if words[0] == "pairflip" and not {"|", "||", ">", "&&"} & set(words):
        result = invoke(*words[1:])
        code, out, err = result.exit_code, result.stdout, result.stderr
        if file:
            (folder / file).write_text(out, encoding="utf-8")
            out = ""
    else:
        done = subprocess.run(
            ["bash", "-c", PRELUDE + command],
            cwd=folder,
            env=os.environ | {"PAIRFLIP_PYTHON": sys.executable},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        code, out, err = done.returncode, done.stdout, ""
    assert code == 0, f"{command}\n{out}\n{err}"
    return out


def run_session(block: Block, folder) -> int:
    """Run the commands of a console block and compare what they print; how many there were."""
    said = sessions(block)
    for command, expected in said:
        got = output(command, folder)
        same = doctest.OutputChecker().check_output(expected, got, ALIKE)
        assert same, f"{command}\nexpected\n{expected}\ngot\n{got}"
    return len(said)


def run_from_top_to_bottom(page: str, folder) -> int:
    """Run all that a page shows, in this order, in one folder (the current one); the number of commands run."""
    ran = 0
    for block in blocks(page):
        if block.no_run is not None:
            continue
        if block.language == "python":
            exec(compile(block.text, page, "exec"), {"__name__": "__main__"})
        elif block.language == "console":
            ran += run_session(block, folder)
    return ran
