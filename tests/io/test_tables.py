from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
import tracemalloc

import pytest

from longleaf import DataError
from longleaf.io.tables import Record, read_table, table_format
from tests.helpers.data import LAWS

ROWS = [
    {"id": "a", "title": "Olive oil", "text": "from Crete", "tags": ["oil", "fruit"]},
    {"id": "b", "title": "Wheat", "text": "und Öl", "tags": ["cereals"]},
]
RECORDS = [
    Record("a", {"title": "Olive oil", "text": "from Crete"}, ["oil", "fruit"], 0),
    Record("b", {"title": "Wheat", "text": "und Öl"}, ["cereals"], 1),
]


def jsonl(*rows):
    return "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows).encode()


def as_csv(delimiter, newline="\n"):
    lines = [["id", "title", "text", "tags"]]
    lines += [[r["id"], r["title"], r["text"], f'"{"; ".join(r["tags"])}"'] for r in ROWS]
    return "".join(delimiter.join(line) + newline for line in lines).encode()


def read(content, **options):
    reader = read_table(io.BytesIO(content), **options)
    return list(reader), reader.report


def write_parquet(path, rows):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress, bz2.compress])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_text_format_gives_the_same_records_from_a_pipe(compress, newline):
    as_json = jsonl(*ROWS).replace(b"\n", newline.encode())
    for content in (as_json, as_csv(",", newline), as_csv(";", newline), as_csv("\t", newline)):
        records, report = read(compress(content))
        assert records == RECORDS
        assert report.problems == 0
        assert report.summary() == ""


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson.gz", "a.json.xz", "a.csv.bz2", "a.TSV", "a.parquet"])
def test_a_file_is_read_by_its_suffix(tmp_path, name):
    path = tmp_path / name
    if name.endswith("parquet"):
        write_parquet(path, ROWS)
    else:
        text = {"jsonl": jsonl(*ROWS), "csv": as_csv(","), "tsv": as_csv("\t")}[table_format(path)]
        suffix = path.suffix
        pack = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}.get(suffix, bytes)
        path.write_bytes(pack(text))
    assert list(read_table(path)) == RECORDS


def test_parquet_comes_from_a_pipe_and_compressed_too(tmp_path):
    content = write_parquet(tmp_path / "a.parquet", ROWS * 2000).read_bytes()
    for data in (content, gzip.compress(content)):
        records, report = read(data)
        assert len(records) == 4000
        assert records[:2] == RECORDS
        assert report.counts == {"duplicate id": 3998}
    (tmp_path / "b.parquet.gz").write_bytes(gzip.compress(content))
    assert len(list(read_table(tmp_path / "b.parquet.gz"))) == 4000


def test_a_damaged_parquet_file_is_a_data_error(tmp_path):
    content = write_parquet(tmp_path / "a.parquet", ROWS).read_bytes()
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read(content[:-20])


def test_without_pyarrow_parquet_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match="extra 'tables'"):
        read(b"PAR1....")


def test_the_named_fields_are_joined_in_the_order_named():
    records, _ = read(jsonl(*ROWS), text=["text", "title"])
    assert [record.text for record in records] == ["from Crete Olive oil", "und Öl Wheat"]
    assert [record.text for record in read(jsonl(*ROWS), text="title")[0]] == ["Olive oil", "Wheat"]


def test_default_fields_are_those_of_title_abstract_and_text_that_the_first_row_has():
    rows = [{"abstract": "b", "title": "a", "tags": ["x"]}, {"title": "c", "text": "d", "tags": ["x"]}]
    reader = read_table(io.BytesIO(jsonl(*rows)))
    assert [record.text for record in reader] == ["a b", "c"]
    assert reader.fields == {"text": ["title", "abstract"], "tags": "tags", "id": "id", "separator": None}
    assert reader.report.counts == {"missing field": 1}
    with pytest.raises(DataError, match="name a text field: body, tags"):
        read(jsonl({"body": "a", "tags": ["x"]}))


def test_tags_are_lists_or_strings_with_a_separator():
    rows = [{"text": "a", "tags": t} for t in (["x", " y ", "x", ""], "x, y", 7, ["1", 2, None])]
    plain = [record.tags for record in read(jsonl(*rows))[0]]
    assert plain == [["x", "y"], ["x, y"], ["7"], ["1", "2"]]
    assert read(jsonl(*rows), separator=",")[0][1].tags == ["x", "y"]
    table = b"text,tags\na,x|y\nb,x;y\n"
    assert [record.tags for record in read(table)[0]] == [["x|y"], ["x", "y"]]
    assert [record.tags for record in read(table, separator="|")[0]] == [["x", "y"], ["x;y"]]


def test_tags_that_are_not_wanted_are_not_missed():
    untagged = jsonl({"text": "a"}, {"text": "b", "tags": []})
    assert [r.tags for r in read(untagged, tags=None)[0]] == [[], []]
    assert [r.tags for r in read(untagged, keep_untagged=True)[0]] == [[], []]
    assert read(b"text\na\n", tags=None)[0] == [Record(None, {"text": "a"}, [], 0)]


FAULTS = [
    ("broken", '{"text": "a", "tags"\n', "line 2: must be a JSON object"),
    ("broken", "[1]\n", "line 2: must be a JSON object; got list"),
    ("no text", {"id": "x", "tags": ["y"]}, "line 2: must have text in text; it has id, tags"),
    ("no text", {"text": " ", "tags": ["y"]}, "line 2: must have text in text; it is empty"),
    ("no tags", {"text": "a", "topics": ["x"]}, "line 2: must have tags in 'tags'; it has text, topics"),
    ("no tags", {"text": "a", "tags": []}, "line 2: must have tags in 'tags'; it is empty"),
    (
        "wrong type",
        {"text": "a", "tags": {"id": 7}},
        "line 2: must have a string, or a list of strings, in 'tags'; got an object.",
    ),
    ("wrong type", {"text": "a", "tags": [{"id": 7}]}, "in 'tags'; got a list with an object."),
    ("wrong type", {"text": "a", "tags": [["x"]]}, "in 'tags'; got a list with a list."),
    ("wrong type", {"text": "a", "tags": True}, "in 'tags'; got true or false."),
    ("wrong type", {"text": False, "tags": ["x"]}, "in 'text'; got true or false."),
    ("wrong type", {"text": {"en": "a"}, "tags": ["x"]}, "in 'text'; got an object."),
    ("wrong type", {"text": ["a", ["b"]], "tags": ["x"]}, "in 'text'; got a list with a list."),
    ("too long", {"text": "a" * 3000, "tags": ["x"]}, "line 2: must have at most 2000 bytes"),
    ("duplicate id", {"id": "1", "text": "a", "tags": ["x"]}, "line 2: must have a unique id; got '1' again"),
]


@pytest.mark.parametrize(("kind", "row", "says"), FAULTS)
def test_a_fault_is_counted_and_named_and_with_strict_an_error(kind, row, says):
    good = {"id": "1", "text": "good", "tags": ["x"]}
    content = jsonl(good, row, good | {"id": "2"})
    records, report = read(content, longest_line=2000)
    assert [r.row for r in records] == ([0, 1, 2] if kind == "duplicate id" else [0, 2])
    assert report.counts == {kind: 1}
    assert (report.rows, report.records) == (3, len(records))
    assert says in report.first[kind][0]
    assert says in report.summary()
    with pytest.raises(DataError, match=r"<input>, line 2"):
        read(content, longest_line=2000, strict=True)


def test_only_the_first_offenders_are_named():
    content = jsonl({"text": "a", "tags": ["x"]}, *["{\n"] * 100)
    _, report = read(content)
    assert report.counts == {"broken": 100}
    assert [sentence[:15] for sentence in report.first["broken"]] == [
        "<input>, line 2",
        "<input>, line 3",
        "<input>, line 4",
    ]


def test_bytes_that_are_not_utf8_are_read_as_windows_1252_and_counted():
    content = jsonl(ROWS[0]) + '{"text": "Öl – gut", "tags": ["x"]}\n'.encode("cp1252")
    records, report = read(content, text="text")
    assert records[1].text == "Öl – gut"
    assert report.counts == {"encoding": 1}
    with pytest.raises(DataError, match="line 2: must be UTF-8"):
        read(content, strict=True)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_says_the_encoding(encoding):
    for content in (jsonl(*ROWS), as_csv(";")):
        marked = content.decode().encode(encoding)
        assert read(marked, format="jsonl" if content[:1] == b"{" else "csv")[0] == RECORDS


def test_a_missing_column_is_an_error_that_lists_the_columns(tmp_path):
    with pytest.raises(DataError, match="must have a column 'abstract'; got text, tags"):
        read(b"text,tags\na,b\n", text=["text", "abstract"])
    path = write_parquet(tmp_path / "a.parquet", ROWS)
    with pytest.raises(DataError, match="must have a column 'subjects'; got id, title, text, tags"):
        list(read_table(path, tags="subjects"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "must begin with a line that names its columns"),
        (b"text,tags\n", "must have at least one row"),
        (b'{"text": "a"}\n', "None of the 1 rows could be used. <input>, line 1: must have tags"),
        (b'[{"text": "a"}]', "must hold one JSON object per line; got an array"),
    ],
)
def test_a_table_of_nothing_is_an_error(content, says):
    with pytest.raises(DataError, match=says):
        read(content)


def test_a_missing_or_unknown_file_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        list(read_table(tmp_path / "no.jsonl"))
    with pytest.raises(ValueError, match="format must be one of"):
        read_table(tmp_path / "no.xls", format="xls")


def test_memory_does_not_grow_with_the_text():
    row = jsonl({"text": "word " * 20_000, "tags": ["x"]})

    def peak(rows):
        tracemalloc.start()
        for _ in read_table(_Repeated(row, rows)):
            pass
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(400) < peak(40) + 2_000_000  # 40 MB of text against 4 MB


def test_a_line_without_end_is_read_over_in_bounded_memory():
    tracemalloc.start()
    with pytest.raises(DataError, match="at most 8388608 bytes"):
        list(read_table(_Repeated(b"{" * 100_000, 1000)))
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


class _Repeated(io.RawIOBase):
    """A stream of the same bytes over and over, made as they are read."""

    def __init__(self, piece, times):
        self._piece, self._times, self._rest = piece, times, b""

    def readable(self):
        return True

    def read(self, size=-1):
        if not self._rest and self._times:
            self._rest, self._times = self._piece, self._times - 1
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece


def test_real_laws_are_read_without_a_fault():
    reader = read_table(LAWS, strict=True)
    records = list(reader)
    assert len(records) == reader.report.records == 1000
    assert records[0].id == "31965L0277"
    assert reader.text_fields == ["title", "text"]


# ------------------------------------------------------------ ids, and rows without text


def test_a_wanted_id_must_be_a_column_and_rows_without_one_are_counted():
    content = b"PPN;title;tags\n1;oil;x\n;bread;y\n"
    reader = read_table(io.BytesIO(content), id="PPN", needs_id=True)
    assert [record.id for record in reader] == ["1", None]
    assert reader.fields["id"] == "PPN"
    assert reader.report.counts == {"no id": 1}
    assert "line 3: must have an id in 'PPN'; it is empty" in reader.report.first["no id"][0]
    with pytest.raises(DataError, match="must have a column 'ppn'; got PPN, title, tags"):
        list(read_table(io.BytesIO(content), id="ppn", needs_id=True))
    assert [record.id for record in read_table(io.BytesIO(content), id="ppn")] == [None, None]


def test_json_rows_without_the_wanted_id_are_counted_or_refused():
    content = b'{"title": "oil", "tags": ["x"], "PPN": 7}\n{"title": "cod", "tags": ["x"]}\n'
    reader = read_table(io.BytesIO(content), id="PPN", needs_id=True)
    assert [record.id for record in reader] == ["7", None]
    assert "1 of 2 rows had no id (kept)" in reader.report.summary()
    with pytest.raises(DataError, match="line 2: must have an id in 'PPN'; it has title, tags"):
        list(read_table(io.BytesIO(content), id="PPN", needs_id=True, strict=True))


def test_rows_without_text_may_be_kept():
    content = b"id,title,tags\n1,oil,x\n2,,\n3, ,x\n"
    reader = read_table(io.BytesIO(content), tags=None, keep_textless=True)
    assert [(record.id, record.text.strip(), record.row) for record in reader] == [
        ("1", "oil", 0),
        ("2", "", 1),
        ("3", "", 2),
    ]
    assert (reader.report.rows, reader.report.records) == (3, 1)
    assert "2 of 3 rows had no text, and get no suggestions (kept)" in reader.report.summary()
    with pytest.raises(DataError, match="None of the 1 rows could be used"):
        list(read_table(io.BytesIO(b"id,title\n1,\n"), tags=None, keep_textless=True))
