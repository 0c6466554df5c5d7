"""Fields, names, languages and as many tags as are likely, on the command line."""

import csv
import json

import pytest

import longleaf as ll
from longleaf.suggest import Suggester
from tests.fusion.test_tagger import NAMES, make_records
from tests.helpers.commands import complaint, run, run_well


def write(path, records, tags=None, **more):
    lines = [
        {"id": f"r{row}", **record, **({} if tags is None else {"tags": tags[row]}), **more}
        for row, record in enumerate(records)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def tags_of(line):
    return [one["tag"] for one in line["labels"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    write(folder / "train.jsonl", *make_records(600))
    write(folder / "dev.jsonl", *make_records(60, seed=2))
    (folder / "names.tsv").write_text(
        "tag\tlang\tname\n" + "".join(f"{tag}\ten\t{name}\n" for tag, name in NAMES.items()), "utf-8"
    )
    run_well(
        *(
            "train",
            folder / "train.jsonl",
            "--text",
            "title",
            "--text",
            "text",
            "--names",
            folder / "names.tsv",
        ),
        *("--trees", 2, "--max-leaf", 3, "--threads", 1, "-o", folder / "m.ll"),
    )
    return folder


def test_train_gives_the_tagger_that_python_gives(folder):
    records, tags = make_records(600)
    plt = ll.PLT(n_trees=2, max_leaf=3, random_state=1, n_jobs=1)
    tagger = ll.Tagger(plt, None, ll.read_names(folder / "names.tsv")).fit(records, tags)
    fresh, _ = make_records(20, seed=9)
    loaded = ll.load(folder / "m.ll")
    assert loaded.suggest(fresh, 4, tail=0.5) == tagger.suggest(fresh, 4, tail=0.5)
    assert loaded.fields_["text"] == ["title", "text"]


def test_a_weight_for_a_field_is_that_of_the_vectorizer(folder, tmp_path):
    run_well(
        *("train", folder / "train.jsonl", "--field", "title=2", "--text", "title", "--text", "text"),
        *("--trees", 1, "-o", tmp_path / "w.ll"),
    )
    assert ll.load(tmp_path / "w.ll").vectorizer_.field_weights_ == {"title": 2.0, "text": 1.0}


@pytest.mark.parametrize("command", ["train", "convert"])
def test_fields_without_a_weight_of_their_own_stay_and_weigh_1(folder, tmp_path, command):
    out = tmp_path / "w"
    run_well(command, folder / "train.jsonl", "--field", "title=2", "-o", out)
    if command == "convert":
        run_well("train", out, "--trees", 1, "-o", tmp_path / "w.ll")
        out = tmp_path / "w.ll"
    assert ll.load(out).vectorizer_.field_weights_ == {"title": 2.0, "text": 1.0}
    assert ll.load(out).fields_["text"] == ["title", "text"]


def test_a_weight_changes_no_record_that_is_read_from_standard_input(folder, tmp_path):
    data = (folder / "train.jsonl").read_bytes()
    run_well("train", "-", "--field", "title=0", "--trees", 1, "-o", tmp_path / "w.ll", stdin=data)
    trained = ll.load(tmp_path / "w.ll")
    assert trained.vectorizer_.field_weights_ == {"title": 0.0, "text": 1.0}
    assert trained.origin_["rows"] == 600


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--field", "title"],
            "--field must be a field and its weight from 0 to 1e+06, as in title=1.0; got 'title'",
        ),
        (["--field", "title=heavy"], "--field must be a field and its weight"),
        (["--field", "title=-1"], "--field must be a field and its weight"),
        (
            ["--field", "nope=1", "--text", "title"],
            "--field must name fields of the text (title); got 'nope'",
        ),
        (["--field", "nope=1"], "--field must name fields of the text (title, text); got 'nope'"),
        (
            ["--field", "title=1", "--field", "title=2"],
            "--field must name each field once; got 'title' twice",
        ),
        (["--text", "title", "--text", "title"], "--text must name each field once; got 'title' twice"),
        (
            ["--text", "title", "--field", "title=0"],
            "--field must give some field of the text a weight above",
        ),
        (["--text", "nope"], "None of the 600 rows could be used"),
        (["--stem", "klingon"], "--stem must list languages of arabic"),
        (
            ["--chars", "5,5000"],
            "--chars must be two integers, 1 <= shortest <= longest <= 20; got (5, 5000)",
        ),
        (["--chars", "x"], "--chars must be two whole numbers"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_written(folder, tmp_path, options, message):
    said = run("train", folder / "train.jsonl", *options, "-o", tmp_path / "bad.ll")
    assert said.status == 2
    assert message in said.stderr
    assert "Traceback" not in said.stderr
    assert not (tmp_path / "bad.ll").exists()


def test_predict_k_auto_writes_as_many_tags_as_are_likely(folder, tmp_path):
    records = [*make_records(60, seed=2)[0], {"title": "trade", "text": "aid"}, {"title": "cod", "text": ""}]
    data = write(tmp_path / "data.jsonl", records)
    run_well("predict", folder / "m.ll", data, "-k", "auto", "-o", tmp_path / "a.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == [f"r{row}" for row in range(62)]
    expected = ll.load(folder / "m.ll").suggest(records, "auto")
    assert [tags_of(line) for line in lines] == [[one.tag for one in own] for own in expected]
    assert len({len(own) for own in expected}) > 1
    run_well("predict", folder / "m.ll", data, "-k", "auto", "--max-k", 1, "-o", tmp_path / "a.csv")
    rows = list(csv.reader((tmp_path / "a.csv").read_text("utf-8-sig").splitlines()))
    assert len(rows) == 63
    assert "tag_1" in rows[0]
    assert "tag_2" not in rows[0]


def test_the_largest_k_is_a_million_and_more_than_there_are_tags_returns_them_all(folder):
    data, n_tags = folder / "dev.jsonl", ll.load(folder / "m.ll").estimator_.n_labels_
    for command, option in (("predict", "-k"), ("evaluate", "-k"), ("predict", "--max-k")):
        auto = ["-k", "auto"] if option == "--max-k" else []
        said = run(command, folder / "m.ll", data, *auto, option, 2_000_000)
        assert said.status == 2
        assert "1000000" in said.stderr
    all_tags = run_well("predict", folder / "m.ll", data, "-k", n_tags)
    assert run_well("predict", folder / "m.ll", data, "-k", 1_000_000) == all_tags
    with pytest.raises(ValueError, match="k must be at least 1 and at most 1000000; got 2000000"):
        ll.load(folder / "m.ll").suggest(["oil"], k=2_000_000)


@pytest.mark.parametrize("options", [["-k", 7], ["-k", "auto", "--max-k", 7]])
def test_batches_have_fewer_rows_where_each_has_more_tags(folder, options, monkeypatch):
    data = folder / "dev.jsonl"
    expected = run_well("predict", folder / "m.ll", data, *options)
    asked = []

    def watch(self, X, *arguments, **options):
        asked.append(X.shape[0] * self.n_searched(arguments[0]))
        return top_k(self, X, *arguments, **options)

    top_k = Suggester.top_k
    monkeypatch.setattr(Suggester, "top_k", watch)
    monkeypatch.setattr("longleaf.cli._lines.BATCH_SUGGESTIONS", 100)
    assert run_well("predict", folder / "m.ll", data, *options) == expected
    assert max(asked) <= 100
    monkeypatch.setattr("longleaf.cli._lines.BATCH_SUGGESTIONS", 1)
    assert run_well("predict", folder / "m.ll", data, *options) == expected


@pytest.mark.parametrize("k", ["0", "many", "-1", "²", "1.5"])
def test_a_k_that_is_neither_a_number_nor_auto_is_refused(folder, k):
    assert "-k must be a whole number from 1 to" in complaint(
        "predict", folder / "m.ll", folder / "dev.jsonl", f"-k={k}"
    )


def test_a_limit_without_auto_is_refused(folder):
    said = complaint("predict", folder / "m.ll", folder / "dev.jsonl", "-k", 3, "--max-k", 2)
    assert "--max-k needs -k auto." in said


def test_a_table_with_one_of_the_fields_or_with_other_names_is_read(folder, tmp_path):
    records, _ = make_records(5, seed=3)
    titles = write(tmp_path / "titles.jsonl", [{"title": record["title"]} for record in records])
    renamed = write(tmp_path / "renamed.jsonl", [{"T": r["title"], "B": r["text"]} for r in records])
    loaded = ll.load(folder / "m.ll")
    for path, options, expected in (
        (titles, ["--text", "title"], [{"title": r["title"], "text": ""} for r in records]),
        (titles, [], [{"title": r["title"], "text": ""} for r in records]),
        (renamed, ["--text", "T", "--text", "B"], records),
        (renamed, ["--text", "B"], [r["text"] for r in records]),
    ):
        out = run_well("predict", folder / "m.ll", path, *options, "-k", 2)
        found = [tags_of(json.loads(line)) for line in out.splitlines()]
        assert found == [[one.tag for one in own] for own in loaded.suggest(expected, 2)]


def test_records_without_the_models_fields_are_counted_and_nothing_is_lost(folder, tmp_path):
    records, _ = make_records(3, seed=3)
    mixed = write(tmp_path / "mixed.jsonl", [records[0], {"body": "something else"}, records[1]])
    result = run("predict", folder / "m.ll", mixed, "-k", 1)
    assert result.status == 0
    assert [json.loads(line)["row"] for line in result.stdout.splitlines()] == [0, 2]
    assert "must have text in 'title'" in result.stderr or "must have text in" in result.stderr


def test_explain_takes_a_record_and_says_which_name_stands_where(folder):
    said = run_well(
        "explain", folder / "m.ll", "--record", '{"title": "On rare003s", "text": "aid"}', "--tag", "rare003"
    )
    assert "the name 'rare003' is in the title, which supports it: +" in said
    assert "~" not in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Either --text or --record must be given."),
        (["--text", "a", "--record", '{"title": "b"}'], "--text and --record cannot be given together."),
        (["--record", "{"], "--record must be a JSON object of fields:"),
        (["--record", "{}"], "--record must have at least one field; got none."),
        (["--record", "[]"], "--record must be a JSON object of fields; got '[]'."),
        (["--record", '{"body": "b"}'], "--record must have one of the fields title, text; got body."),
        (["--record", '{"title": 3}'], "--record['title'] must be a string or a list of strings; got int."),
    ],
)
def test_bad_records_to_explain_are_refused(folder, arguments, message):
    assert message in complaint("explain", folder / "m.ll", *arguments)


@pytest.mark.parametrize(
    ("content", "line"),
    [("tag\tlang\tname\nt0\n", "2"), ("tag\tlang\tname\nt0\ten\tolive\n\ten\toil\n", "3")],
)
def test_a_broken_names_file_is_refused_with_its_line(folder, tmp_path, content, line):
    (tmp_path / "bad.tsv").write_text(content, "utf-8")
    said = complaint(
        "train", folder / "train.jsonl", "--names", tmp_path / "bad.tsv", "-o", tmp_path / "bad.ll"
    )
    assert "bad.tsv" in said
    assert line in said
    assert not (tmp_path / "bad.ll").exists()


def test_stems_follow_the_language_of_each_row(tmp_path):
    pytest.importorskip("Stemmer", reason="needs the extra stem")
    rows = [
        ("Häuser am See", "de", "haus"),
        ("Boote im Hafen", "de", "boot"),
        ("big houses", "en", "haus"),
    ] * 8
    path = tmp_path / "t.jsonl"
    path.write_text(
        "".join(json.dumps({"title": a, "lang": b, "tags": [c]}) + "\n" for a, b, c in rows), "utf-8"
    )
    run_well("train", path, "--stem", "de,en", "--chars", "none", "--trees", 1, "-o", tmp_path / "s.ll")
    names = set(ll.load(tmp_path / "s.ll").vectorizer_.get_feature_names_out())
    assert {"^haus", "^boot", "^hous"} <= names
    assert "^houses" not in names
    out = run_well(
        "predict",
        tmp_path / "s.ll",
        "-",
        "--text",
        "title",
        "-k",
        1,
        stdin=b'{"title": "Hauses", "lang": "ger"}\n',
    )
    assert tags_of(json.loads(out)) == ["haus"]
