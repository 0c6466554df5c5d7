"""What tags are worth is read from files and rows, and what is wrong in them is named with its line."""

import gzip
import io
import json
from typing import Any

import numpy as np
import pytest

import longleaf as ll

TAGS = ["cod", "fish", "oil", "wine"]
ROWS: list[dict[str, Any]] = [
    {"tag": "*", "b": -0.25},
    {"tag": "oil", "a": 5, "b": -1, "group": "food", "quota": 2},
    {"tag": "cod", "group": "food"},
    {"tag": "wine", "a": 0.5, "allowed": False, "group": "drink"},
]
TABLE = "tag,a,b,allowed,group,quota\n*,,-0.25,,,\noil,5,-1,yes,food,2\ncod,,,,food,\nwine,.5,,no,drink,\n"


def read(text: str | bytes) -> ll.Utility:
    return ll.read_utility(io.BytesIO(text.encode() if isinstance(text, str) else text), TAGS)


def by_tag(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {row["tag"]: {name: value for name, value in row.items() if name != "tag"} for row in rows}


@pytest.mark.parametrize(
    "source",
    [
        TABLE,
        TABLE.replace(",", ";"),
        TABLE.replace(",", "\t"),
        TABLE.replace(",", ";").replace(".", ","),
        "\ufeff" + TABLE.replace("\n", "\r\n").replace("tag", "Label", 1),
        gzip.compress(TABLE.encode()),
        "\n".join(json.dumps(row) + "\n" for row in ROWS),
        json.dumps(ROWS, indent=1),
        json.dumps(by_tag(ROWS), indent=1),
        json.dumps(by_tag(ROWS)),
        json.dumps([*ROWS[1:], ROWS[0]]),
    ],
    ids=[
        "csv",
        "semicolons",
        "tsv",
        "decimal commas",
        "excel",
        "gzip",
        "jsonl",
        "array",
        "object",
        "one line",
        "star last",
    ],
)
def test_all_formats_say_the_same(source: str | bytes) -> None:
    found = read(source)
    np.testing.assert_array_equal(found.a, np.float32([1, 1, 5, 0.5]))
    np.testing.assert_array_equal(found.b, np.float32([-0.25, -0.25, -1, -0.25]))
    assert found.mask is not None
    assert found.mask.tolist() == [True, True, True, False]
    assert found.quotas is not None
    groups, quota = found.quotas
    assert groups[0] == groups[2] != groups[3]
    assert groups[1] == -1
    assert quota[[groups[2], groups[3]]].tolist() == [2, 1]


def test_rows_in_memory_are_read_like_a_file() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"tag": ["oil", "cod"], "a": [5, 2]})
    for rows in (by_tag(ROWS), ROWS, iter(ROWS)):
        assert repr(ll.read_utility(rows, TAGS)) == repr(read(TABLE))
    assert ll.read_utility(frame, TAGS).a.tolist() == [2, 1, 5, 1]


def test_tags_without_a_row_are_worth_their_probability() -> None:
    found = read("tag,a\noil,3\n")
    assert (found.a.tolist(), found.b.tolist()) == ([1, 1, 3, 1], [0, 0, 0, 0])
    assert found.mask is None
    assert found.quotas is None


def test_only_some_tags_are_allowed_if_the_star_forbids_the_others() -> None:
    found = ll.read_utility({"*": {"allowed": False}, "cod": {"allowed": True}}, TAGS)
    assert found.mask is not None
    assert found.mask.tolist() == [True, False, False, False]


def test_labels_without_names_are_called_by_their_numbers() -> None:
    rows = [{"tag": 2, "a": 3}, {"tag": "0", "a": 4}]
    assert ll.read_utility(rows, map(str, range(3))).a.tolist() == [4, 1, 3]


def test_the_quota_of_the_star_is_that_of_groups_without_one() -> None:
    rows = {"*": {"quota": 3}, "cod": {"group": "x"}, "oil": {"group": "y", "quota": 0}}
    found = ll.read_utility(rows, TAGS).quotas
    assert found is not None
    assert found[1][found[0][[0, 2]]].tolist() == [3, 0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "<input> must name at least one tag; got none."),
        ("tag,a\n", "<input> must name at least one tag; got none."),
        ("PK\x03\x04", "<input> must be CSV, TSV or JSON; it is a workbook or an archive: save it as CSV."),
        ("tag,a\noil,\"1,5\"\n", "a of 'oil' must be a finite number; got '1,5'."),
        ("oil,5\n", "<input>, line 1 must name columns among tag, a, b, allowed, group and quota"),
        ("tag,a,a\noil,5,5\n", "<input>, line 1 must name columns among"),
        ("tag,a\n\noil,nan\n", "<input>, line 3: a of 'oil' must be a finite number; got nan."),
        ("tag,b\noil,cheap\n", "<input>, line 2: b of 'oil' must be a finite number; got 'cheap'."),
        ("tag,a\noil,1e31\n", "a of 'oil' must be at least -1e+30 and at most 1e+30; got 1e+31."),
        ("tag,a\noil,1,2\n", "<input>, line 2 must have 2 fields, as line 1 has; got 3 fields."),
        ("tag,a\n,1\n", "<input>, line 2 must name a tag; got ''."),
        ("tag,a\noil,1\ncod,1\noil,2\n", ", line 4 must name a tag that has no row yet; got 'oil' again."),
        ("tag,a\nbeer,1\n", "<input>, line 2 must name tags of the model; 'beer' is none."),
        ("tag,allowed\noil,maybe\n", "<input>, line 2: allowed of 'oil' must be true or false; got 'maybe'."),
        ("tag,quota\noil,2\n", "<input>, line 2: a quota needs a group; got 2 without one."),
        ("tag,group,quota\noil,x,half\n", "line 2: quota of 'oil' must be a whole number; got 'half'."),
        ("tag,group,quota\noil,x,-1\n", "line 2: quota of 'oil' must be at least 0; got -1."),
        ("tag,group,quota\noil,x,2\ncod,x,1\n", "line 3: a group must have one quota; 'x' has 2 and 1."),
        ('{"tag": "oil", "a": 1}\n{"tag": "cod"', "<input>, line 2 must be a JSON object; "),
        ('{"tag": "oil"}\n\n{"tag": "cod", "cost": 1}', "<input>, line 3 must have fields among tag, a, b, "),
        ('{"tag": "oil", "a": "5"}', "<input>, line 1: a of 'oil' must be a finite number; got '5'."),
        ('[{"tag": "oil"}, {"tag": 1.5}]', "<input>, row 2 must name a tag; got 1.5."),
        ('{"oil": 5}', "allowed, group and quota by name for every tag; 'oil' has 5."),
        ('{"oil": {}, "oil": {}}', "<input>, line 1 must name each tag once; got 'oil' twice."),
        ('{"oil": {"a": NaN}}', "<input>: a of 'oil' must be a finite number; got nan."),
        ('{"oil": {"group": ["x"]}}', "<input>: group of 'oil' must be a string; got ['x']."),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_said_in_one_sentence(text: str, says: str) -> None:
    with pytest.raises(ll.DataError) as refused:
        read(text)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (5, "utility must be a longleaf.Utility, or rows by tag; got int."),
        (["oil"], "utility[0] must have tag, a, b, allowed, group and quota by name; got 'oil'."),
        ([{"a": 1}], "utility[0] must name a tag; got None."),
        ({"oil": {"a": True}}, "utility: a of 'oil' must be a finite number; got True."),
    ],
)
def test_what_are_no_rows_is_refused(rows: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        ll.read_utility(rows, TAGS)
    assert str(refused.value) == says
