from __future__ import annotations

import io

import pytest

from longleaf import DataError
from longleaf.io.names import read_names
from tests.helpers.data import LAW_NAMES


@pytest.mark.parametrize(
    "content",
    [
        '{"1": "olive oil", "2": "Öl, kaltgepresst"}',
        "1\tolive oil\n2\tÖl, kaltgepresst\n",
        '1,olive oil\n\n2,"Öl, kaltgepresst"\n2,again\n',
        "Tag;Name\r\n1; olive oil\r\n2;Öl, kaltgepresst",
    ],
)
def test_names_come_as_json_or_as_two_columns(content):
    assert read_names(io.BytesIO(content.encode())) == {"1": "olive oil", "2": "Öl, kaltgepresst"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "<input> must name at least one tag"),
        ("tag,name\n", "must name at least one tag"),
        ("1,a\n2,b,c\n", "<input>, line 2 must be a tag and its name; got 3 fields"),
        ("[1]", "must be a JSON object of names by tag; got list"),
        ('{"1": ', "must be a JSON object of names by tag"),
        ('{"1": 2}', "must hold a string for every tag; '1' has int"),
    ],
)
def test_what_is_no_mapping_is_refused(content, says):
    with pytest.raises(DataError, match=says):
        read_names(io.BytesIO(content.encode()))


def test_the_names_of_real_concepts_are_read():
    assert read_names(LAW_NAMES)["1264"] == "olive oil"
