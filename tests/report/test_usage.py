"""``longleaf report`` writes over nothing by accident, and refuses in one sentence."""

import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.commands import complaint, run, run_well
from tests.helpers.reports import FAST, Page, fill_models
from tests.helpers.tables import FIELDS, table, write_jsonl

pytest.importorskip("matplotlib", reason="the extra 'report' is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_models(tmp_path_factory.mktemp("report"))


def test_an_existing_page_is_kept_unless_forced_also_for_one_classifier_per_label(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "page.html"
    out.write_text("mine")
    command = ("report", folder / "br.ll", folder / "test.txt", "-o", out)
    assert "--force" in complaint(*command)
    assert out.read_text() == "mine"
    run_well(*command, "--force", *FAST, "-k", "2")
    assert out.read_text().startswith("<!doctype html>")
    page = Page(out.read_text())
    assert "one classifier per label" in page.text
    assert set(page.cells("dial")) == {f"{step / 10:g}" for step in range(11)}
    assert page.tables["dial"][0] == ["tail", "p@2", "psp@2"]
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    sentence = complaint(*command[:-1], tmp_path / "new.html", "--figures", tmp_path / "full")
    assert "empty folder" in sentence


def test_labels_that_no_row_has_get_a_dash(folder: Path, tmp_path: Path) -> None:
    X, Y = ll.load_xmlc(folder / "test.txt")
    frequent = int(ll.load(folder / "model.ll").label_counts_.argmax())
    own = np.zeros(Y.shape)
    own[:, frequent] = 1
    ll.save_xmlc(tmp_path / "frequent.txt", X, own)
    run_well("report", folder / "model.ll", tmp_path / "frequent.txt", "-o", tmp_path / "p.html", *FAST)
    page = Page((tmp_path / "p.html").read_text())
    assert page.cells("overview")["recall@5, tail"] == ["–"] * 3
    assert page.cells("recall")["tail"][1:] == ["–"] * 3
    assert "–" not in page.cells("overview")["recall@5, head"]
    assert "recall of tail labels" not in page.text


def test_the_same_plot_of_two_models_has_the_same_ticks() -> None:
    from longleaf.report import canvas, plots

    drawn = [plots.frequency(np.arange(1, most)) for most in (30, 3000)]
    canvas.share_limits(drawn)
    for which in ("x", "y"):
        few, many = (getattr(axes, f"get_{which}ticks")().tolist() for axes in drawn)
        assert few == many


def test_without_matplotlib_one_sentence_says_what_to_install(folder: Path, tmp_path: Path) -> None:
    with mock.patch.dict(sys.modules, {"matplotlib": None}):
        sentence = complaint("report", folder / "br.ll", folder / "test.txt", "-o", tmp_path / "page.html")
    assert "matplotlib" in sentence
    assert "'report'" in sentence


@pytest.mark.parametrize(
    ("arguments", "must_say"),
    [
        (("model.ll", "test.jsonl"), "XMLC"),
        (("tagger.ll", "test.txt"), "texts"),
        (("nowhere.ll", "test.txt"), "nowhere.ll"),
        (("model.ll", "nowhere.txt"), "nowhere.txt"),
        (("model.ll", "test.txt", "--against", "tagger.ll"), "both be trained on texts"),
        (("tagger.ll", "-", "--against", "fewer.ll"), "must be a file"),
        (("model.ll", "test.txt", "-k", "0"), "-k"),
        (("model.ll", "test.txt", "--propensity", "1"), "--propensity"),
        (("model.ll", "test.txt", "--figures", "nowhere/deep"), "parent folder"),
        (("model.ll", "test.txt", "--figures", "train.txt"), "must be a folder"),
        (("model.ll", "test.txt", "--text", "title"), "--text"),
    ],
)
def test_bad_usage_is_one_sentence(folder: Path, arguments: tuple[str, ...], must_say: str) -> None:
    placed = [folder / one if one.endswith((".ll", ".txt", ".jsonl", "deep")) else one for one in arguments]
    assert must_say in complaint("report", *placed, "-o", folder / "never.html")
    assert not (folder / "never.html").exists()


def test_models_that_skip_other_rows_are_refused(folder: Path, tmp_path: Path) -> None:
    only_title = ("--text", "title", *FIELDS[4:], "--trees", 1, "--threads", 1, "-o", tmp_path / "title.ll")
    run_well("train", folder / "train.jsonl", *only_title)
    untitled = [row | ({"title": ""} if number == 3 else {}) for number, row in enumerate(table(10))]
    path = write_jsonl(tmp_path / "untitled.jsonl", untitled)
    pair = (folder / "tagger.ll", path, "--against", tmp_path / "title.ll")
    result = run("report", *pair, "-o", tmp_path / "page.html")
    assert result.status == 2
    assert "the same rows" in result.stderr.splitlines()[-1]
