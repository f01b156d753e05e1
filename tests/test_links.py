"""Links in the sources of pages, as one reads them in the repository; `make docs` checks those of the built site."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parent.parent
OWN = [path for path in sorted(ROOT.glob("docs/**/*.md")) if "generated" not in path.parts]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("bench/*.md")), *OWN]
BUILT = ("commands", "errata", "fields", "figures", "measured")  # in docs/generated, once the site is


def prose(page):
    """Without code, in which brackets are something else."""
    without_blocks = re.sub(
        r"^(`{3,})[^`\n]*\n.*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return re.sub(r"`[^`\n]*`", "", without_blocks)


def links(page):
    return re.findall(r"\]\(([^()\s]+)\)", prose(page))


def places(page):
    """Headings as links name them: small letters, hyphens for blanks, nothing else."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", [pytest.param(p, id=p.relative_to(ROOT).as_posix()) for p in PAGES if links(p)])
def test_links_lead_to_files_and_headings(page):
    for link in links(page):
        to = urlsplit(link)
        if to.scheme:
            continue
        target = (page.parent / to.path).resolve() if to.path else page
        if target.parent == ROOT / "docs" / "generated":
            assert target.stem in BUILT, link
            continue
        assert target.exists(), link
        assert not to.fragment or to.fragment in places(target), link


def test_generated_pages_are_those_that_links_may_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import generate

    generate.write_all(tmp_path / "generated")
    assert sorted(path.stem for path in (tmp_path / "generated").iterdir()) == sorted(BUILT)


def test_links_to_elsewhere_are_few_and_well_formed():
    """Nothing elsewhere is asked for here: `make links` does, with a network."""
    found = {link for page in PAGES for link in links(page) if urlsplit(link).scheme}
    assert len(found) <= 5
    assert {link for link in found if not re.fullmatch(r"https://([\w-]+\.)+[a-z]{2,}(/[\w./-]*)?", link)} == set()


def test_a_link_of_the_site_that_leads_nowhere_is_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from links import broken

    good = ["b/two.html", "b/two.html#here", "#top", "three.png", "https://www.example.org/x", "data:,x"]
    bad = ["b/one.html", "b/two.html#there", "#bottom", "http://example.org", "file:///tmp/x"]
    anchors = "".join(f'<a href="{link}">x</a>' for link in good + bad)
    (tmp_path / "one.html").write_text(f'<h1 id="top">1</h1>{anchors}<img src="four.png">', encoding="utf-8")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.html").write_text('<p id="here">2</p><a href="../one.html#top">x</a>', encoding="utf-8")
    (tmp_path / "three.png").touch()
    assert list(broken(tmp_path)) == [f"one.html: {link}" for link in [*bad, "four.png"]]
