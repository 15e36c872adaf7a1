"""The directive ``command-options``: what every command takes, from the app that runs it.

Each command gets a section with its usage line, its help and one table of options for each group of its help page.
"""

from __future__ import annotations

from typing import Any

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def _flags(option: Any) -> str:
    """``--polish / --no-polish``, ``--out, -o DIR``, all as code."""
    names = ", ".join(option.opts)
    if option.secondary_opts:
        names += " / " + ", ".join(option.secondary_opts)
    if getattr(option, "is_flag", False):
        return f"`{names}`"
    metavar = option.metavar or ("|".join(option.type.choices) if hasattr(option.type, "choices") else option.type.name)
    return f"`{names} {metavar}`"


def _default(option: Any) -> str:
    """What holds if the option is not given."""
    shown = option.show_default
    if isinstance(shown, str):
        return shown
    value = option.default
    if value is None or value == () or callable(value) or getattr(option, "is_flag", False) and value is False:
        return ""
    if getattr(option, "is_flag", False):
        return f"`{option.opts[0]}`"
    return f"`{getattr(value, 'value', value)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _table(options: list[Any]) -> list[str]:
    lines = ["| option | what it does | by default |", "|---|---|---|"]
    lines += [f"| {_cell(_flags(o))} | {_cell(o.help or '')} | {_cell(_default(o))} |" for o in options]
    return [*lines, ""]


def command_markdown(name: str, command: Any) -> str:
    """The section of one command, as Markdown."""
    context = command.context_class(command, info_name=f"pairflip {name}")
    lines = [f"## pairflip {name}", "", "```text", command.get_usage(context), "```", "", (command.help or "").strip(), ""]
    shown = [p for p in command.params if not getattr(p, "hidden", False)]
    arguments = [p for p in shown if p.param_type_name == "argument"]
    if arguments:
        lines += ["| argument | what it is |", "|---|---|"]
        lines += [f"| `{(a.metavar or a.name).upper()}` | {_cell(getattr(a, 'help', None) or '')} |" for a in arguments]
        lines.append("")
    panels: dict[str, list[Any]] = {}
    for option in shown:
        if option.param_type_name == "option":
            panels.setdefault(getattr(option, "rich_help_panel", None) or "Options", []).append(option)
    for panel, options in panels.items():
        if len(panels) > 1:
            lines += [f"**{panel}**", ""]
        lines += _table(options)
    return "\n".join(lines)


class CommandOptions(SphinxDirective):
    """All commands of the app, in its order."""

    def run(self) -> list[nodes.Node]:
        """Sections, parsed as if they stood in the page."""
        from pairflip.cli import app

        group = typer.main.get_command(app)
        text = "\n\n".join(command_markdown(name, command) for name, command in group.commands.items())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Any) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command-options", CommandOptions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
