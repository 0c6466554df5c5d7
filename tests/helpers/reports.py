"""Pages of ``longleaf report`` as the tests read them, and models to report on."""

from html.parser import HTMLParser
from pathlib import Path

from tests.helpers.commands import fill, run_well
from tests.helpers.tables import FIELDS, table, write_jsonl

FAST = ("--samples", 20, "--threads", 1)
NAMES = [f"<b>label {number} & more</b>" for number in range(9)]


class Page(HTMLParser):
    """The tables of a page by id, its sections, attributes and visible text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.links: list[str] = []
        self.ids: list[str] = []
        self.marks: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self._inside = tag
        self.links += [found[name] or "" for name in ("href", "src", "xlink:href", "action") if name in found]
        if found.get("id"):
            self.ids.append(found["id"] or "")
        if tag == "table":
            name = (found["id"] or "").removeprefix("table-")
            self.tables[name] = []
            self._open = [name]
        elif tag == "tr":
            self.tables[self._open[0]].append([])
        elif tag in ("td", "th"):
            self.tables[self._open[0]][-1].append("")
            self._open = [*self._open[:1], "cell"]
        elif tag == "mark":
            self.marks.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""
        if tag in ("td", "th"):
            self._open = self._open[:1]

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            return
        self.text += data
        if self._inside == "mark":
            self.marks[-1] += data
        if len(self._open) == 2:
            self.tables[self._open[0]][-1][-1] += data

    def cells(self, name: str) -> dict[str, list[str]]:
        """Give the rows of a table by their first cell, the heading left out."""
        return {row[0]: row[1:] for row in self.tables[name][1:]}


def fill_models(folder: Path) -> Path:
    """Write models of features (label trees; one per label) and of texts, and rows to judge them by."""
    fill(folder)
    options = ("--threads", 1)
    run_well("train", folder / "train.txt", "-o", folder / "br.ll", "--model", "br", *options)
    write_jsonl(folder / "train.jsonl", table(80))
    write_jsonl(folder / "test.jsonl", table(30, new_tag=True))
    trained = ("train", folder / "train.jsonl", *FIELDS, "--trees", 1, "--max-leaf", 2, *options)
    run_well(*trained, "--keep-records", "-o", folder / "tagger.ll")
    fewer = [row for row in table(80) if "law" not in row["subjects"]]
    write_jsonl(folder / "fewer.jsonl", fewer)
    run_well("train", folder / "fewer.jsonl", *FIELDS, "--trees", 1, *options, "-o", folder / "fewer.ll")
    (folder / "names.tsv").write_text("".join(f"{label}\t{name}\n" for label, name in enumerate(NAMES)))
    return folder
