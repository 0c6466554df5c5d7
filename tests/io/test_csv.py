"""CSV as people and spreadsheets write it: quotes, line ends, separators and headers."""

from __future__ import annotations

import io

import pytest

from longleaf import DataError
from longleaf.io.tables import read_table


def read(content, **options):
    reader = read_table(io.BytesIO(content), **options)
    return list(reader), reader.report


def numbered(n_rows, *stray):
    """Give rows of an id, a text and a tag, with a quote before the text of those that are named."""
    rows = [f"{row},{chr(34) if row in stray else ''}text {row},x\n" for row in range(1, n_rows + 1)]
    return ("id,text,tags\n" + "".join(rows)).encode()


# ------------------------------------------------------------ quotes


def test_csv_fields_may_hold_line_ends_quotes_and_long_texts():
    text = 'He said ""no"",\nand left. ' + "word " * 100_000
    content = f'text,tags\n"{text}",x\nb,y\n'.encode()
    records, report = read(content)
    assert records[0].text == text.replace('""', '"')
    assert records[1].text == "b"
    assert report.problems == 0


def test_csv_rows_of_the_wrong_width_are_counted_with_their_line():
    records, report = read(b'text,tags\n"a\nb",x\nc\nd,y,z\n\ne,w\n')
    assert [record.text for record in records] == ["a\nb", "e"]
    assert report.counts == {"broken": 2}
    assert "line 4: must have 2 fields, as the header has; got 1" in report.first["broken"][0]
    assert "line 5" in report.first["broken"][1]


def test_a_quote_that_is_never_closed_is_an_error_that_names_its_line():
    with pytest.raises(DataError, match=r"<input>, line 7: a cell starts with a quote that is never closed"):
        read(numbered(300, 6))
    for end in (b"", b"\n", b"\nmore", b"\nmore\n"):
        with pytest.raises(DataError, match=r"line 4: a cell starts with a quote"):
            read(b'text,tags\n"two\nlines",x\nb,"y' + end)
    with pytest.raises(DataError, match=r"line 1: a cell starts with a quote"):
        read(b'text,"tags\na,b\n')


def test_rows_between_two_stray_quotes_are_not_lost_unseen():
    records, report = read(numbered(300, 6, 201))
    assert report.counts == {"broken": 1}
    (said,) = report.first["broken"]
    assert said.startswith("<input>, line 7: must close its quotes; a cell contains 194 lines that look")
    assert [record.id for record in records] == [str(n) for n in (*range(1, 6), *range(202, 301))]
    with pytest.raises(DataError, match="line 7: must close its quotes"):
        read(numbered(300, 6, 201), strict=True)


def test_a_long_text_in_one_cell_is_no_fault():
    prose = "\n".join("A line of a text, with a comma" if n % 2 else "and one without" for n in range(200))
    records, report = read(f'id,text,tags\n1,"{prose}",x\n'.encode())
    assert records[0].text == prose
    assert report.problems == 0
    poem = "\n".join(["a line"] * 100)  # in a table of one column every line looks like a row
    assert read(f'text\n"{poem}"\n'.encode(), tags=None)[0][0].text == poem


# ------------------------------------------------------------ line ends, separators, headers


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_lines_may_end_as_old_macs_wrote_them(encoding):
    content = 'id,text,tags\r1,"a\rb\nc",x\r2,Öl\r3,d,y\r'.encode(encoding)
    records, report = read(content, format="csv")
    assert [(record.id, record.text) for record in records] == [("1", "a\nb\nc"), ("3", "d")]
    assert "line 5: must have 3 fields" in report.first["broken"][0]
    jsonl = b'{"text": "a", "tags": ["x"]}\r{"text": "b", "tags": ["x"]}\r'
    assert [record.text for record in read(jsonl)[0]] == ["a", "b"]


def test_a_lone_carriage_return_in_a_header_is_a_data_error():
    with pytest.raises(DataError, match="line 2: must name the columns"):
        read(b"\ntext\r,tags\na,b\n")


@pytest.mark.parametrize("line", ["sep=|", "SEP=|", '"sep=|"'])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_the_line_by_which_excel_names_the_separator_is_no_header(line, newline):
    rows = [line, "text|tags", "a, b; c|x;y", "d"]
    records, report = read(newline.join([*rows, ""]).encode())
    assert [(record.text, record.tags) for record in records] == [("a, b; c", ["x", "y"])]
    assert "line 4" in report.first["broken"][0]


def test_a_column_that_is_named_twice_is_refused_and_columns_without_a_name_are_not():
    with pytest.raises(DataError, match="must name each column once; got 'text' twice"):
        read(b"text,tags, text\na,x,b\n")
    assert read(b"text,tags,,\na,x,,\n")[0][0].text == "a"
    (_, row) = next(read_table(io.BytesIO(b"text,,tags,\na,1,x,2\n")).rows())
    assert list(row.values()) == ["a", "1", "x", "2"], "no cell is lost"
