"""``python -m pairflip`` is the command line."""

from pairflip.cli import app

app(prog_name="pairflip")
