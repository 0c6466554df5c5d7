"""Excel workbooks as tables, and the spreadsheets that are refused."""

from __future__ import annotations

import datetime
import gzip
import io
import sys
import zipfile

import pytest

from longleaf import DataError
from longleaf.io.tables import read_table

openpyxl = pytest.importorskip("openpyxl")


def workbook(path, rows, *others):
    """Write a workbook with a sheet of rows, and further sheets."""
    book = openpyxl.Workbook()
    for number, one in enumerate((rows, *others)):
        sheet = book.worksheets[0] if number == 0 else book.create_sheet()
        for row in one:
            sheet.append(row)
    book.save(path)
    return path


ROWS = [["PPN", "title", "text", "tags"], ["1", "Öl", "olive oil", "x; y"], ["2", "Brot", "bread", "z"]]


def read(source, **options):
    reader = read_table(source, **options)
    return [fields for _, fields in reader.rows()], reader


def test_the_first_sheet_of_a_workbook_is_a_table(tmp_path):
    path = workbook(tmp_path / "laws.xlsx", ROWS, [["title", "tags"], ["another sheet", "x"]])
    reader = read_table(path, id="PPN", needs_id=True)
    records = list(reader)
    assert [(record.id, record.text, record.tags) for record in records] == [
        ("1", "Öl olive oil", ["x", "y"]),
        ("2", "Brot bread", ["z"]),
    ]
    assert reader.layout.format == "xlsx"
    assert reader.layout.columns == ROWS[0]
    assert reader.report.problems == 0


def test_a_workbook_is_recognised_by_its_content_and_may_be_compressed_or_piped(tmp_path):
    path = workbook(tmp_path / "laws.xlsx", ROWS)
    content = path.read_bytes()
    (tmp_path / "laws").write_bytes(content)
    (tmp_path / "laws.csv").write_bytes(content)
    (tmp_path / "laws.xlsx.gz").write_bytes(gzip.compress(content))
    want = read(path)[0]
    assert len(want) == 2
    for source in (tmp_path / "laws", tmp_path / "laws.csv", tmp_path / "laws.xlsx.gz", io.BytesIO(content)):
        assert read(source)[0] == want


def test_numbers_and_dates_become_text_and_empty_cells_are_empty(tmp_path):
    rows = [
        ["title", "n", "share", "day", "at", "done", "tags"],
        [2001, 7.0, 0.5, datetime.date(2026, 3, 1), datetime.datetime(2026, 3, 1, 9, 30), True, "x"],
        ["oil", None, None, None, None, None, "y"],
    ]
    found, _ = read(workbook(tmp_path / "t.xlsx", rows))
    assert list(found[0].values()) == ["2001", "7", "0.5", "2026-03-01", "2026-03-01 09:30:00", "TRUE", "x"]
    assert list(found[1].values()) == ["oil", "", "", "", "", "", "y"]


def test_line_ends_in_cells_are_line_feeds(tmp_path):
    rows = [["title", "tags"], ["olive_x000D_\noil", "x"]]
    assert read(workbook(tmp_path / "t.xlsx", rows))[0][0]["title"] == "olive\noil"


def test_empty_rows_are_ignored_and_places_are_the_rows_of_the_sheet(tmp_path):
    rows = [[], ["title", "tags"], [], ["oil", "x"], [None, ""], ["", "y"], ["bread", "z", "a remark"]]
    found, reader = read(workbook(tmp_path / "t.xlsx", rows))
    assert [row["title"] for row in found] == ["oil"]
    assert reader.report.counts == {"no text": 1, "broken": 1}
    assert "row 6: must have text" in reader.report.first["no text"][0]
    (said,) = reader.report.first["broken"]
    assert "row 7: must have at most 2 cells, as the header has; got 3" in said


def test_the_columns_of_a_workbook_are_checked_like_those_of_csv(tmp_path):
    with pytest.raises(DataError, match=r"must have a column 'PPN'; got title, tags"):
        list(
            read_table(
                workbook(tmp_path / "a.xlsx", [["title", "tags"], ["a", "x"]]), id="PPN", needs_id=True
            )
        )
    with pytest.raises(DataError, match="must name each column once; got 'title' twice"):
        list(read_table(workbook(tmp_path / "b.xlsx", [["title", "title"], ["a", "x"]])))
    with pytest.raises(DataError, match="must begin with a row that names its columns; got none"):
        list(read_table(workbook(tmp_path / "c.xlsx", [])))
    with pytest.raises(DataError, match="must have at least one row; got none"):
        list(read_table(workbook(tmp_path / "d.xlsx", [["title", "tags"]])))


@pytest.mark.parametrize(
    ("head", "must_say"),
    [
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1",
            r"is an Excel workbook of the old format \(.xls\), or a protected one; save",
        ),
        (
            b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
            r"is an OpenDocument spreadsheet \(.ods\); save its sheet as .xlsx or CSV",
        ),
        (b"PK\x03\x04\x14\x00", "cannot be read as an Excel workbook: File is not a zip file"),
        (b"title,tags\n", "must be an Excel workbook; got other content"),
    ],
)
def test_what_is_no_workbook_of_today_is_refused_by_name(tmp_path, head, must_say):
    path = tmp_path / "laws.xlsx"
    path.write_bytes(head + bytes(range(256)))
    with pytest.raises(DataError, match=rf"laws.xlsx {must_say}"):
        list(read_table(path, text="title"))


def test_another_archive_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("t.csv", "title,tags\na,x\n")
    with pytest.raises(DataError, match=r"t.zip must be a table or an Excel workbook; got another archive"):
        list(read_table(tmp_path / "t.zip", text="title"))


def damaged(path, name, content):
    """Replace a file inside a workbook."""
    whole = io.BytesIO(path.read_bytes())
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.namelist():
            new.writestr(entry, content if entry == name else old.read(entry))
    return path


SHEET = "xl/worksheets/sheet1.xml"
NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (SHEET, "<worksheet"),
        (
            SHEET,
            f'<worksheet {NAMESPACE}><sheetData><row r="1"><c r="A1" t="s"><v>99</v></c></row></sheetData>',
        ),
        (SHEET, f'<worksheet {NAMESPACE}><sheetData><row r="x"/></sheetData></worksheet>'),
        ("xl/workbook.xml", ""),
        ("[Content_Types].xml", "<a/>"),
    ],
)
def test_a_damaged_workbook_is_an_error_of_one_sentence(tmp_path, name, content):
    path = damaged(workbook(tmp_path / "t.xlsx", ROWS), name, content)
    with pytest.raises(
        DataError, match=r"t.xlsx (cannot be read as an Excel|must begin with a row)"
    ) as error:
        list(read_table(path))
    assert "\n" not in str(error.value)


def test_a_row_with_a_foolish_number_does_not_take_forever(tmp_path):
    cell = '<row r="9999999999"><c r="A9999999999" t="inlineStr"><is><t>a</t></is></c></row>'
    path = damaged(
        workbook(tmp_path / "t.xlsx", ROWS),
        SHEET,
        f"<worksheet {NAMESPACE}><sheetData>{cell}</sheetData></worksheet>",
    )
    with pytest.raises(DataError, match="must have at most 1048576 rows; got more"):
        list(read_table(path))


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("longleaf.io._workbook.MOST_UNPACKED", 2000)
    with pytest.raises(DataError, match=r"must unpack to at most 2000 bytes; got .*save its sheet as CSV"):
        list(read_table(workbook(tmp_path / "t.xlsx", ROWS)))


def test_without_openpyxl_a_workbook_is_refused_by_name(tmp_path, monkeypatch):
    path = workbook(tmp_path / "t.xlsx", ROWS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r"t.xlsx is an Excel workbook, which needs openpyxl.*extra 'excel'"):
        list(read_table(path))
