"""What the tests need to know of Markdown: its code."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """A fenced code block: its language, text, first line of text (from 1), and why not to run it."""

    language: str
    text: str
    line: int
    no_run: str | None = None


def fenced_blocks(markdown: str) -> list[Block]:
    """All fenced blocks; `<!-- no-run: reason -->` as the last thing before a fence sets `no_run`."""
    blocks: list[Block] = []
    fence, language, start, body = "", "", 0, []
    before = ""  # the last line that was not blank
    for number, line in enumerate(markdown.splitlines(), start=1):
        stripped = line.strip()
        if fence:
            if stripped == fence:
                no_run = re.fullmatch(r"<!--\s*no-run:\s*(.*?)\s*-->", before)
                text = "\n".join(body) + "\n"
                blocks.append(Block(language, text, start, no_run and no_run[1]))
                fence, before = "", ""
            else:
                body.append(line)
        elif opening := re.fullmatch(r"(`{3,}|~{3,})\s*(\w*).*", stripped):
            fence, language, start, body = opening[1], opening[2], number + 1, []
        elif stripped:
            before = stripped
    return blocks


def code(markdown: str) -> str:
    """Everything set as code, in fences or in spans, and nothing else."""
    in_fences = [block.text for block in fenced_blocks(markdown)]
    prose = re.sub(r"^\s*(`{3,}|~{3,}).*?^\s*\1\s*$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    return "\n".join(in_fences + re.findall(r"`([^`]+)`", prose))
