"""What is computed while the site is built: kept while the code stays the same, made anew when it changes.

The gallery keeps its examples by the content of each script; that the package has changed it would not notice. So its
folder is emptied then. The report of `pairflip demo` is made here, and put beside the pages that speak of it. Output is
shown without what compiling says, and long lines of it are marked, so that they can be wrapped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pairflip

REPORT = "demo-report.html"
PROSE = re.compile('<span class="go">(?=[^<]{130})')


def code_hash() -> str:
    """Of all source files of the package."""
    digest = sha256()
    for path in sorted(Path(pairflip.__file__).parent.rglob("*")):
        if path.suffix in (".py", ".j2", ".css", ".js"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def forget_old(app: Any, config: Any) -> None:
    """Empty the gallery if another version of the code filled it."""
    stamp = Path(app.confdir) / "_build" / "code"
    if not stamp.exists() or stamp.read_text() != code_hash():
        shutil.rmtree(Path(app.confdir) / config.sphinx_gallery_conf["gallery_dirs"], ignore_errors=True)
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(code_hash())


def make_report(app: Any, exception: Exception | None) -> None:
    """Run the demonstration unless its report is there already."""
    if exception is not None or app.builder.format != "html":
        return
    kept = Path(app.confdir) / "_build" / "demo" / code_hash()
    if not (kept / "report.html").exists():
        shutil.rmtree(kept.parent, ignore_errors=True)
        kept.parent.mkdir(parents=True)
        command = [sys.executable, "-m", "pairflip", "demo", "--quiet", "--out", str(kept)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.copyfile(kept / "report.html", Path(app.outdir) / "_static" / REPORT)


def drop_messages(app: Any, name: str, source: list[str]) -> None:
    """Leave out of the examples what is said while kernels are compiled."""
    if name.startswith("examples/"):
        source[0] = re.sub(r"^ *pairflip: compiling .*\n", "", source[0], flags=re.MULTILINE)


def mark_long_lines(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Lines of output that are prose can be wrapped, those of tables cannot: their length tells them apart."""
    if "body" in context:
        context["body"] = PROSE.sub('<span class="go long">', context["body"])


def setup(app: Any) -> dict[str, Any]:
    """Before the gallery is filled, and once the pages are written."""
    app.connect("config-inited", forget_old, priority=1)
    app.connect("source-read", drop_messages)
    app.connect("html-page-context", mark_long_lines)
    app.connect("build-finished", make_report)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
