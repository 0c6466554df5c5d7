"""Files of names: what is read, and what is refused."""

from __future__ import annotations

import builtins
import bz2
import gzip
import io
import lzma

import pytest

import longleaf as ll
from longleaf import DataError
from longleaf.io.tag_names import Name
from tests.helpers.data import LAW_NAMES

TURTLE = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix x: <http://example.org/> .
x:1 a skos:Concept ; skos:prefLabel "Öl"@de, "oil"@en ; skos:altLabel "Fett"@de-AT ;
    skos:hiddenLabel "Oel"@de ; skos:narrower x:2 ; skos:related x:4, x:3, x:9 .
x:2 a skos:Concept ; skos:prefLabel "Olivenöl"@de ; skos:broader x:4, x:3 ; skos:notation "2" .
x:3 a skos:Concept ; skos:prefLabel "alt"@de ; owl:deprecated true .
x:4 skos:altLabel "fats" .
x:scheme a skos:ConceptScheme ; skos:prefLabel "Thesaurus"@de .
[] skos:prefLabel "nobody"@en .
"""


def read(content, *args, **kwargs):
    return ll.read_names(io.BytesIO(content.encode()), *args, **kwargs)


@pytest.mark.parametrize(
    "content",
    [
        '{"1": "olive oil", "2": "Öl, kaltgepresst"}',
        "1\tolive oil\n2\tÖl, kaltgepresst\n",
        '1,olive oil\n\n2,"Öl, kaltgepresst"\n',
        "Tag;Name\r\n1; olive oil\r\n2;Öl, kaltgepresst",
        "id,label\n1,olive oil\n2,'Öl, kaltgepresst'\n".replace("'", '"'),
        "label\tin words\n1\tolive oil\n2\tÖl, kaltgepresst\n",
        "NAME;Tag\nolive oil;1\nÖl, kaltgepresst;2\n",
        "id\tlabel\tchanged\n1\tolive oil\t2011\n2\tÖl, kaltgepresst\t\n",
    ],
)
def test_names_come_as_json_or_as_two_columns(content):
    assert read(content) == {"1": "olive oil", "2": "Öl, kaltgepresst"}


@pytest.mark.parametrize(
    "content",
    [
        '{"1": ["oil", "fat", "oil"]}',
        "1\toil\n1\tfat\n1\toil\n",
        "tag,type,name\n1,alt,fat\n1,pref,oil\n1,alt,oil\n",
    ],
)
def test_the_other_names_of_a_tag_are_alternatives(content):
    assert read(content).all_names("1") == (Name("oil"), Name("fat", preferred=False))


def test_the_first_name_in_a_language_is_preferred():
    names = read("name,Language,tag\noil,en,1\nÖl,DE,1\nFett,de,1\nUK oil,en_GB,1\nsth,,1\n\nwine,en,2\n")
    assert names.all_names("1") == (
        Name("oil", "en"),
        Name("Öl", "de"),
        Name("UK oil", "en-gb"),
        Name("sth"),
        Name("Fett", "de", preferred=False),
    )
    assert names.languages == ["", "de", "en", "en-gb"]
    assert dict(names) == {"1": "oil", "2": "wine"}


def test_names_are_displayed_in_the_languages_asked_for():
    content = "tag,lang,name\n1,en,oil\n1,de-AT,Öl\n1,fr,huile\n2,en,wine\n2,fr,vin\n3,es,pan\n"
    assert dict(read(content, ["de", "fr"])) == {"1": "Öl", "2": "vin", "3": "pan"}
    assert dict(read(content, ["DE"])) == {"1": "Öl", "2": "wine", "3": "pan"}
    assert len(read(content, ["de"]).all_names("1")) == 3, "the others stay"
    with pytest.raises(
        DataError, match=r"<input> must have names in it or d; got names in de-at, en, es, fr"
    ):
        read(content, ["it", "d"])
    with pytest.raises(DataError, match="must have names in de; got names without a language"):
        read('{"1": "oil"}', ["de"])
    with pytest.raises(TypeError, match=r"languages must be a list, such as .*; got a single str"):
        read(content, "de")
    with pytest.raises(TypeError, match=r"languages must be a list, such as .*; got a single int"):
        read(content, 5)
    with pytest.raises(TypeError, match="languages must hold strings; got int"):
        read(content, [5])


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress, bz2.compress])
@pytest.mark.parametrize(("suffix", "content"), [("tsv", "tag\tlang\tname\n1\ten\toil\n"), ("ttl", TURTLE)])
def test_files_may_be_compressed(compress, suffix, content, tmp_path):
    if suffix == "ttl":
        pytest.importorskip("rdflib")
    path = tmp_path / f"names.{suffix}.{compress.__module__}"
    path.write_bytes(compress(content.encode()))
    assert ll.read_names(path) == read(content)


def test_a_file_of_one_long_line_is_read_whole():
    names = {str(number): f"name {number} " + "x" * 1000 for number in range(9000)}
    content = "{" + ",".join(f'"{tag}":"{name}"' for tag, name in names.items()) + "}"
    assert len(content) > 1 << 23
    assert read(content) == names


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "<input> must name at least one tag"),
        ("tag,name\n", "must name at least one tag"),
        ("{}", "must name at least one tag"),
        ("1,a\n2,b,c\n", "<input>, line 2 must be a tag and its name; got 3 fields"),
        ("1,a,b\n", "line 1 must be a tag and its name, or name the columns, .*; got 3 fields"),
        ("tag\tlang\tname\ngnd:1\n", "<input>, line 2 must have 3 fields, as line 1 has; got 1 field"),
        ("\ntag\tlang\tname\n\n1\ten\ta\tb\n", "line 4 must have 3 fields, as line 2 has; got 4 fields"),
        ("tag\tlang\tname\n1\ten\toil\n1\tde\t \n", "line 3 must have a tag and a name; got an empty name"),
        ("1\toil\n \twine\n", "line 2 must have a tag and a name; got an empty tag"),
        ("tag,type,name\n1,best,oil\n", "line 2 must say pref or alt; got 'best'"),
        ("tag\tlang\n1\ten\n", "<input>, line 1 must name a column name; got tag, lang"),
        ("\nid;type\n1;alt\n", "<input>, line 2 must name a column name; got id, type"),
        ("lang,name\nen,oil\n", "<input>, line 1 must name a column tag; got lang, name"),
        ("tag,name,name\n1,oil,fat\n", "<input>, line 1 must name each column once; got 'name' twice"),
        ("tag,lang,name,Lang\n1,de,oil,en\n", "line 1 must name each column once; got 'lang' twice"),
        ('1,a\n2,"b\n3,c\n', "line 2 must close its quotes"),
        ("[1]", "must be a JSON object of names by tag; got list"),
        ('{"1": ', "must be a JSON object of names by tag"),
        ('{"1": 2}', "must hold a string for every tag, or a list of strings; '1' has int"),
        ('{"1": ["a", 2]}', "must hold strings; '1' has int"),
        ('{"1": ""}', "must hold no empty name; '1' has one"),
        ('{"1": []}', r"must hold a tag and its names; got '1' and \[\]"),
        ('{"1": "a",\n"2": "b",\n"1": "c"}', "<input>, line 3 must name each tag once; got '1' twice"),
        (r'{"\u0031": "a", "1": "b"}', "<input> must name each tag once; got '1' twice"),
        ('{" ": "a"}', "must hold a tag and its names; got ' ' and 'a'"),
    ],
)
def test_what_is_no_mapping_is_refused(content, says):
    with pytest.raises(DataError, match=says):
        read(content)


def test_a_workbook_is_not_read_as_names(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["tag", "name"])
    book.save(tmp_path / "names.xlsx")
    with pytest.raises(DataError, match=r"names\.xlsx must be a table .*; workbooks are not read as names"):
        ll.read_names(tmp_path / "names.xlsx")


def test_the_names_of_real_concepts_are_read():
    assert ll.read_names(LAW_NAMES)["1264"] == "olive oil"


def test_a_vocabulary_has_names_by_language_and_relations():
    pytest.importorskip("rdflib")
    names = read(TURTLE, ["en", "de"])
    one, two, four = (f"http://example.org/{number}" for number in (1, 2, 4))
    assert dict(names) == {one: "oil", two: "Olivenöl", four: "fats"}, "nothing deprecated, no scheme"
    assert names.all_names(one) == (
        Name("oil", "en"),
        Name("Öl", "de"),
        Name("Oel", "de", preferred=False),
        Name("Fett", "de-at", preferred=False),
    )
    assert dict(names.broader) == {two: (one, four)}
    assert dict(names.narrower) == {one: (two,), four: (two,)}
    assert dict(names.related) == {one: (four,), four: (one,)}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.filterwarnings("ignore:NTSerializer")
def test_a_vocabulary_is_the_same_in_every_syntax(named, tmp_path):
    rdflib = pytest.importorskip("rdflib")
    graph = rdflib.Graph().parse(data=TURTLE, format="turtle")
    for form, suffix in (("xml", "rdf"), ("nt", "nt"), ("turtle", "ttl"), ("xml", "xml")):
        path = tmp_path / (f"names.{suffix}" if named else form)
        graph.serialize(path, format=form)
        assert ll.read_names(path) == read(TURTLE) == ll.read_names(path, format=form)


@pytest.mark.parametrize(
    ("suffix", "content", "says"),
    [
        (
            "ttl",
            "@prefix a: <x> .\na:b a:c\n; ; ] .",
            "names.ttl, line 3 must be Turtle; objectList expected",
        ),
        ("ttl", "@prefix a: <x> .\n\nq:b a:c a:d.", 'line 3 must be Turtle; Prefix "q:" not bound'),
        ("rdf", "<rdf:RDF xmlns:rdf='x'>\n<b></c>", "names.rdf, line 2 must be RDF/XML; mismatched tag"),
        ("nt", "<a:b> <a:c> <a:d> .\nfoo\n", "names.nt, line 2 must be N-Triples; Invalid line"),
        ("ttl", "", "names.ttl must name at least one tag; got none"),
        ("ttl", TURTLE.replace('"oil"', '" "'), "must hold no empty name; <http://example.org/1> has one"),
    ],
)
def test_a_damaged_vocabulary_is_refused_with_its_line(suffix, content, says, tmp_path):
    pytest.importorskip("rdflib")
    path = tmp_path / f"names.{suffix}"
    path.write_text(content)
    with pytest.raises(DataError, match=says):
        ll.read_names(path)


def test_what_a_parser_thinks_of_other_properties_is_not_logged(caplog):
    pytest.importorskip("rdflib")
    date = '"soon"^^<http://www.w3.org/2001/XMLSchema#date>'
    assert len(read(TURTLE + f"x:2 skos:note {date} .")) == 3
    assert not caplog.records


def test_a_vocabulary_without_rdflib_names_the_extra(monkeypatch):
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "rdflib":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        DataError, match=r"<input> is Turtle, which needs the extra skos, .* 'longleaf\[skos\]'"
    ):
        read(TURTLE)
    assert read("1,oil") == {"1": "oil"}


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="format must be one of json, table, turtle, xml, nt; got 'skos'"):
        read("1,oil", format="skos")
