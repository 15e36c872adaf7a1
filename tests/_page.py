"""How tests read a page."""

import json
import re
from html.parser import HTMLParser

VOID = {"meta", "input", "br"}


class Outline(HTMLParser):
    """Tags with attributes, text outside scripts, and whether every element that opens also closes."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.open, self.scripts = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        (self.scripts if inside in ("script", "style") else self.text).append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def words(html):
    """All text, as it stands."""
    return "".join(Outline(html).text)


def text_of(page):
    """What a reader of a page sees, in one line."""
    return " ".join(" ".join(Outline(page).text).split())


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
