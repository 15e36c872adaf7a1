"""Are all links of the built site good, and does it need nothing from the network? ``python check_links.py SITE``.

Every relative address must be a file of the site, every fragment the id of something in it, and nothing that a page
loads (scripts, styles, pictures, fonts) may come from elsewhere. Links that a reader may click can lead anywhere.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("object", "data")}
NOT_PAGES = "_static"  # a template of the theme, and the report of the demonstration, whose ids a script makes


class Page(HTMLParser):
    """The ids of a page, where it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in one element."""
        values = dict(attrs)
        self.ids |= {value for name in ("id", "name") if (value := values.get(name))}
        for name, value in attrs:
            if not value:
                continue
            if (tag, name) in LOADED or (tag == "link" and name == "href" and values.get("rel") != "canonical"):
                self.loads.append(value)
            elif tag == "a" and name == "href":
                self.links.append(value)


def problems(site: Path) -> list[str]:
    """One line for each bad address in the site."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        if where.parts[0] == NOT_PAGES:
            continue
        for address in page.loads:
            if re.match(r"(\w+:)?//", address):
                found.append(f"{where} loads {address} from the network")
        for address in page.links + page.loads:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                found.append(f"{where} links to {address}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{where} links to {address}, but {target.name} has no such place")
    for style in sorted(site.rglob("*.css")):
        for address in re.findall(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)", style.read_text(encoding="utf-8")):
            found.append(f"{style.relative_to(site)} loads {address} from the network")
    return found


def main(site: Path) -> int:
    """Print what is wrong; the exit code."""
    found = problems(site)
    for line in found:
        print(line, file=sys.stderr)
    pages = len(list(site.rglob("*.html")))
    print(f"{pages} pages: " + (f"{len(found)} bad links" if found else "all internal links lead somewhere"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
