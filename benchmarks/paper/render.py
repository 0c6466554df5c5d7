"""Tables as Markdown and LaTeX."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Cell:
    """A text, and whether it is the best of its column: of all rows, of the sub-linear ones, or both."""

    text: str
    mark: str = ""

    PLAIN: ClassVar[str] = ""
    BEST: ClassVar[str] = "best"
    SECOND: ClassVar[str] = "best of the sub-linear"
    BOTH: ClassVar[str] = "both"


@dataclass(frozen=True)
class Table:
    """A title, the heads of the columns, and lines of cells."""

    title: str
    header: list[str]
    rows: list[list[Cell]]


MARKDOWN = {Cell.PLAIN: "{}", Cell.BEST: "**{}**", Cell.SECOND: "_{}_", Cell.BOTH: "**_{}_**"}
LATEX = {
    Cell.PLAIN: "{}",
    Cell.BEST: r"\textbf{{{}}}",
    Cell.SECOND: r"\underline{{{}}}",
    Cell.BOTH: r"\underline{{\textbf{{{}}}}}",
}


def markdown(table: Table) -> str:
    """Return a heading and a table; bold is the best of a column, italic the best sub-linear one."""
    lines = [f"### {table.title}", "", _line(table.header), _line(_rule(table))]
    for row in table.rows:
        lines.append(_line([MARKDOWN[cell.mark].format(cell.text.replace("*", r"\*")) for cell in row]))
    return "\n".join([*lines, ""])


def latex(table: Table) -> str:
    """Return a ``table*`` for booktabs; bold is the best of a column, underlined the best sub-linear one."""
    columns = "ll" + "r" * (len(table.header) - 2)
    lines = [
        r"\begin{table*}",
        rf"\caption{{{_escape(table.title)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(map(_escape, table.header)) + r" \\",
        r"\midrule",
        *(
            " & ".join(LATEX[cell.mark].format(_escape(cell.text)) for cell in row) + r" \\"
            for row in table.rows
        ),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table*}",
    ]
    return "\n".join([*lines, ""])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _rule(table: Table) -> list[str]:
    return ["---", "---", *("---:" for _ in table.header[2:])]


def _escape(text: str) -> str:
    for character in "&%#_":
        text = text.replace(character, "\\" + character)
    return text.replace("±", r"$\pm$").replace("*", r"$^*$")
