"""The directive ``command-options``: what every command takes, from the functions that are the commands.

Each command gets a section with its help and one table of options for each group of its help page. Everything comes
from the signatures (``Annotated[type, typer.Option(...)]``), from which typer makes the command line, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from typer.models import ArgumentInfo, OptionInfo

WORDS = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH"}


class Taken(NamedTuple):
    """Something that a command takes: its name, type, what was declared of it, and what holds if it is not given."""

    name: str
    kind: Any
    info: Any
    default: Any


def taken(command: Callable[..., Any]) -> list[Taken]:
    """All arguments and options of a command, in order."""
    hints = get_type_hints(command, include_extras=True)
    found = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind, *declared = get_args(hints[name]) if hasattr(hints[name], "__metadata__") else (hints[name],)
        infos = [info for info in declared if isinstance(info, ArgumentInfo | OptionInfo)]
        if infos and not infos[0].hidden:
            found.append(Taken(name, _inner(kind), infos[0], parameter.default))
    return found


def _inner(kind: Any) -> Any:
    """``str`` of ``str | None`` and of ``list[str] | None``."""
    if get_origin(kind) in (UnionType, Union):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    return get_args(kind)[0] if get_origin(kind) is list else kind


def _names(option: Taken) -> tuple[str, ...]:
    """``--out`` and ``-o``; where none was declared, what typer makes of the name.

    Inside ``Annotated`` the first name stands where a default would be otherwise.
    """
    first, plain = option.info.default, option.name.replace("_", "-")
    if isinstance(first, str):
        return (first, *option.info.param_decls)
    made = f"--{plain}/--no-{plain}" if option.kind is bool else f"--{plain}"
    return (made,)


def _flags(option: Taken) -> str:
    """``--polish/--no-polish``, or ``--out, -o DIR``, as code."""
    names = ", ".join(_names(option))
    if option.kind is bool:
        return f"`{names}`"
    if get_origin(option.kind) is Literal:
        return f"`{names} {'|'.join(map(str, get_args(option.kind)))}`"
    return f"`{names} {option.info.metavar or WORDS[option.kind]}`"


def _default(option: Taken) -> str:
    """What holds if the option is not given, as a sentence."""
    if option.default in (inspect.Parameter.empty, ...):
        return "Needed."
    if isinstance(option.info.show_default, str):
        return f"Default: {option.info.show_default}."
    if option.default is None or option.default is False:
        return ""
    given = _names(option)[0].split("/")[0] if option.default is True else option.default
    return f"Default: `{given}`."


def _table(rows: list[list[str]]) -> list[str]:
    head, *body = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return [*("| " + " | ".join(line) + " |" for line in lines), ""]


def command_markdown(command: Callable[..., Any]) -> str:
    """The section of one command, as Markdown."""
    name, given = command.__name__, taken(command)
    arguments = [each for each in given if isinstance(each.info, ArgumentInfo)]
    words = "".join(f" [{each.name.upper()}]" for each in arguments)
    lines = [f"## pairflip {name}", "", "```text", f"pairflip {name} [OPTIONS]{words}", "```", ""]
    lines += [inspect.getdoc(command) or "", ""]
    if arguments:
        lines += _table([["argument", "what it is"], *([f"`{a.name.upper()}`", a.info.help or ""] for a in arguments)])
    panels: dict[str, list[Taken]] = {}
    for option in given:
        if isinstance(option.info, OptionInfo):
            panels.setdefault(option.info.rich_help_panel or "Options", []).append(option)
    for panel, options in panels.items():
        if len(panels) > 1:
            lines += [f"**{panel}**", ""]
        rows = [[_flags(option), f"{option.info.help or ''} {_default(option)}".strip()] for option in options]
        lines += _table([["option", "what it does"], *rows])
    return "\n".join(lines)


class CommandOptions(SphinxDirective):
    """All commands of the app, in its order."""

    def run(self) -> list[nodes.Node]:
        """Sections, parsed as if they stood in the page."""
        from pairflip.cli import app

        commands = [info.callback for info in app.registered_commands if info.callback is not None]
        text = "\n\n".join(command_markdown(command) for command in commands)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Any) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command-options", CommandOptions)
    app.connect("env-get-outdated", lambda *_: ["reference/commands"])  # the app may have changed
    return {"version": typer.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
