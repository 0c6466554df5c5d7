"""Every link between pages leads somewhere, and every page that code mentions exists."""

import re
from pathlib import Path

import pytest

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted(
    path
    for folder in ("src", "benchmarks", "tests", "native", "examples")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".pyi", ".h", ".cpp", ".ipynb") and path != Path(__file__).resolve()
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
MENTION = re.compile(r"(?<![\w/.-])docs/[\w./-]*\w")
FILE = re.compile(r"(?<![\w/.-])(?:src|native|tests|benchmarks|tools)/[\w/.-]*\.(?:pyi?|cpp|h)\b")
FENCED = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def links(page: Path) -> list[str]:
    """Return the targets of a page's links to files and to headings, those in code left aside."""
    found = LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    return [target for target in found if not re.match(r"\w+:", target)]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    headings = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in headings}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_pages_are_found_and_have_links() -> None:
    assert len(PAGES) > 20
    assert sum(map(len, map(links, PAGES))) > 100


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name(page)}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{name(page)}: {target}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=name)
def test_every_page_is_on_the_map(page: Path) -> None:
    index = ROOT / "docs" / "index.md"
    mapped = {(index.parent / target).resolve() for target in links(index)}
    assert page == index or page in mapped


def test_every_page_that_is_mentioned_exists() -> None:
    for source in [*PAGES, *SOURCES]:
        for mention in MENTION.findall(source.read_text(encoding="utf-8")):
            assert (ROOT / mention).exists(), f"{name(source)}: {mention}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_source_file_that_a_page_names_exists(page: Path) -> None:
    for source in FILE.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / source).exists(), f"{name(page)}: {source}"
