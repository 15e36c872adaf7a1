"""How the documentation site is built: `make docs` (docs/decisions/042-documentation-site.md)."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ["MPLBACKEND"] = "Agg"
os.environ.setdefault("COLUMNS", "100")

import pairflip  # noqa: E402

MADE_BY_HAND = {"Selection", "Schedule", "Planted"}

project = "pairflip"
author = "The pairflip authors"
copyright = "the pairflip authors, BSD 3-Clause"
version = release = pairflip.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "commands",  # the reference of the command line, from the app itself
    "executed",  # the report of `pairflip demo` beside the pages that speak of it; nothing is kept that old code made
    "mathml",  # formulas without scripts and without network
]
exclude_patterns = ["_build", "gallery", "pictures/*.md"]
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions

# Markdown: the pages read the same on a code host and here.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

smartquotes = False  # "--" in prose is an option

# Docstrings. `word` in them is a link where it is a name of ours, otherwise code.
default_role = "py:obj"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 3600,  # times would be those of compiling
    "show_memory": False,
    "copyfile_regex": r"",
    "abort_on_example_error": True,
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
    "write_computation_times": False,
}

templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "pairflip"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "pairflip"},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 8,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {page: [] for page in ("index", "start", "sharp-bits", "comparison")}  # they have no pages below
html_context = {"default_mode": "auto"}


def _skip(app: Any, kind: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn puts into every estimator, such as setters for the routing of metadata."""
    theirs = str(getattr(member, "__module__", "")).startswith("sklearn")
    return True if theirs or (name.startswith("set_") and name.endswith("_request")) else None


def _short(app: Any, kind: str, name: str, what: Any, options: Any, signature: str | None, returns: str | None) -> Any:
    """Arrays under a short name; nobody makes records by hand, so their many fields stand below only."""
    if kind == "class" and is_dataclass(what) and name.rsplit(".", 1)[-1] not in MADE_BY_HAND:
        return "", returns
    short = [text and re.sub(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]", r"NDArray[\1]", text)
             for text in (signature, returns)]  # fmt: skip
    return tuple(short)


def setup(app: Any) -> None:
    """What no setting can say."""
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _short)
