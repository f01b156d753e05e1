"""Links of the built site that lead nowhere: to pages, files and places within pages. None is followed to elsewhere."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """What a page links to, and the places that can be linked to."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken(site: Path) -> Iterator[str]:
    """`page: link` of every link to no file, to no place in a page, or out of the site but not by https."""
    pages = {path.resolve(): _Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            to = urlsplit(link)
            if to.scheme or to.netloc:
                found = to.scheme == "data" or (to.scheme == "https" and "." in to.netloc)
            else:
                target = (path.parent / unquote(to.path)).resolve() if to.path else path
                place = unquote(to.fragment)
                found = target.is_file() and (not place or target not in pages or place in pages[target].places)
            if not found:
                yield f"{path.relative_to(site.resolve())}: {link}"
