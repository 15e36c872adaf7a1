"""Options declared once become parameters of commands."""

import inspect
from dataclasses import dataclass
from typing import Annotated, get_args

import pytest
import typer
from typer.testing import CliRunner

from _cli import invoke, plain
from pairflip.cli import app
from pairflip.cli.options import Without, expanded


@dataclass(frozen=True)
class Fruit:
    name: Annotated[str, typer.Argument(help="Which.")] = "apple"
    colour: Annotated[str | None, typer.Option("--colour", "-c")] = None
    ripe: Annotated[bool, typer.Option("--ripe")] = False


def eat(context: typer.Context, *, fruit: Fruit, count: Annotated[int, typer.Option("--count", min=1)]) -> None:
    """Eat fruit."""
    typer.echo(f"{count} {fruit} {len(context.params)}")


def run(*words):
    app = typer.Typer()
    app.command()(expanded(eat))
    return CliRunner().invoke(app, words)


def test_a_dataclass_stands_for_its_fields():
    shown = expanded(eat)
    assert list(inspect.signature(shown).parameters) == ["context", "name", "colour", "ripe", "count"]
    assert (shown.__name__, shown.__doc__) == ("eat", "Eat fruit.")
    assert run("plum", "--count", "2", "-c", "blue").stdout == f"2 {Fruit('plum', 'blue')} 4\n"
    assert run("--count", "2").stdout == f"2 {Fruit()} 4\n"
    assert run("plum").exit_code == 2  # no count


def test_what_is_left_out_keeps_its_default():
    def look(*, fruit: Annotated[Fruit, Without("colour", "ripe")]) -> None:
        assert fruit == Fruit("plum")

    assert list(inspect.signature(expanded(look)).parameters) == ["name"]
    expanded(look)(name="plum")


def test_leaving_out_what_is_not_there_is_refused():
    def look(*, fruit: Annotated[Fruit, Without("color")]) -> None: ...

    with pytest.raises(TypeError, match="options \\['color'\\]"):
        expanded(look)


def test_an_option_whose_placeholder_is_its_name_in_capitals_is_named():
    """Typer 0.27 takes the placeholder for the name where none is given: there was no --sizes, but --SIZES."""
    options = [
        (command.callback.__name__, name, each)
        for command in app.registered_commands
        for name, parameter in inspect.signature(command.callback).parameters.items()
        for each in get_args(parameter.annotation)
        if isinstance(each, typer.models.OptionInfo)
    ]
    assert {"sizes", "cv"} <= {name for command, name, _ in options if command == "select"}
    # In an annotation the first name stands where a default would.
    unnamed = [each for each in options if not (each[2].param_decls or str(each[2].default).startswith("-"))]
    assert [(command, name) for command, name, each in unnamed if each.metavar == name.upper()] == []


@pytest.mark.parametrize("command", [[], ["select"], ["predict"]])
def test_flags_take_nothing_in_the_help(command):
    text = plain(invoke(*command, "--help").stdout)
    assert "--help" in text
    assert "bool" not in text.lower()
