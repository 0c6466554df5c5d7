"""``longleaf report``: one page, whose numbers are those of the library."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import longleaf as ll
from longleaf.metrics import ReliabilityBin
from tests.helpers.commands import run_well
from tests.helpers.reports import FAST, NAMES, Page, fill_models
from tests.helpers.tables import table, write_jsonl

pytest.importorskip("matplotlib", reason="the extra 'report' is not installed")

from longleaf.report import sections

PLOTS = {
    "label-frequency",
    "precision",
    "psp",
    "recall-bins",
    "recall-counts",
    "changes",
    "reliability",
    "reliability-bins",
    "sizes",
    "nodes",
    "time",
    "constants",
    "constants-gain",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_models(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def features(folder: Path) -> str:
    out = folder / "features.html"
    said = run_well(
        "report", folder / "model.ll", folder / "test.txt", "-o", out, *FAST, "--names", folder / "names.tsv",
        "--figures", folder / "figures",
    )  # fmt: skip
    assert said.startswith(f"{out}: 30 rows evaluated")
    return out.read_text()


@pytest.fixture(scope="module")
def texts(folder: Path) -> str:
    run_well("report", folder / "tagger.ll", folder / "test.jsonl", "-o", folder / "texts.html", *FAST)
    return (folder / "texts.html").read_text()


@pytest.fixture(scope="module")
def both(folder: Path) -> str:
    arguments = ("--against", folder / "fewer.ll", "-o", folder / "both.html", *FAST)
    run_well("report", folder / "tagger.ll", folder / "test.jsonl", *arguments)
    return (folder / "both.html").read_text()


def first_number(cell: str) -> float:
    found = re.match(r"[-+]?[\d.]+", cell)
    assert found
    return float(found[0])


def test_the_dial_says_what_evaluate_says(folder: Path, features: str) -> None:
    X, Y = ll.load_xmlc(folder / "test.txt")
    model = ll.load(folder / "model.ll")
    rows = Page(features).cells("dial")
    assert len(rows) == 11
    for tail in (0.0, 0.3, 1.0):
        top = model.top_k(X, 5, tail=tail)
        want = ll.metrics.evaluate(Y, top, model.inverse_propensity(), k=(1, 3, 5))
        names = [f"{name}@{at}" for name in ("p", "psp") for at in (1, 3, 5)]
        for name, cell in zip(names, rows[f"{tail:g}"], strict=True):
            assert first_number(cell) == pytest.approx(want[name], abs=0.006), (tail, name)
            low, high = map(float, re.findall(r"[\d.]+", cell)[1:])
            assert low - 0.06 <= want[name] <= high + 0.06


def test_the_bands_are_those_of_a_bootstrap_of_the_rows(folder: Path, features: str) -> None:
    X, Y = ll.load_xmlc(folder / "test.txt")
    hits = Y.toarray()[np.arange(30), ll.load(folder / "model.ll").top_k(X, 1).labels[:, 0]]
    random = np.random.RandomState(1)
    drawn = [100 * hits[random.randint(30, size=30)].mean() for _ in range(20)]
    low, high = np.percentile(drawn, [2.5, 97.5])
    cell = Page(features).cells("dial")["0"][0]
    assert list(map(float, re.findall(r"[\d.]+", cell)[1:])) == pytest.approx([low, high], abs=0.06)


def test_recall_by_frequency_is_that_of_the_frequency_table(folder: Path, features: str) -> None:
    X, Y = ll.load_xmlc(folder / "test.txt")
    model = ll.load(folder / "model.ll")
    rows = Page(features).cells("recall")
    for place, tail in enumerate((0.0, 0.5, 1.0)):
        top = model.top_k(X, 5, tail=tail)
        for one in ll.metrics.frequency_table(Y, top, model.label_counts_, k=5):
            assert rows[one.name][0] == str(one.labels)
            assert float(rows[one.name][1 + place]) == pytest.approx(one.recall, abs=0.006)
        true, hit = np.zeros(10), np.zeros(10)  # by the power of two of a label's training rows
        for row, label in zip(*Y.nonzero(), strict=True):
            power = int(model.label_counts_[label]).bit_length()
            true[power] += 1
            hit[power] += label in top.labels[row]
        for power in range(1, 10):
            low, high = 2 ** (power - 1), 2**power - 1
            name = f"{low} row" if low == high else f"{low}-{high} rows"
            assert (name in rows) == (true[power] > 0)
            if true[power]:
                assert float(rows[name][1 + place]) == pytest.approx(
                    100 * hit[power] / true[power], abs=0.006
                )


def test_reliability_counts_every_suggestion_and_its_truth(folder: Path, features: str) -> None:
    X, Y = ll.load_xmlc(folder / "test.txt")
    model = ll.load(folder / "model.ll")
    rows = Page(features).cells("calibration")
    for tail in (0.0, 1.0):
        top = model.top_k(X, 5, tail=tail)
        row, place = np.nonzero(top.labels >= 0)
        label = top.labels[row, place]
        chance, right = model.probability(X, row, label), Y.toarray()[row, label]
        bucket = np.minimum((10 * chance).astype(int), 9)
        off = sum(abs(chance[bucket == b].sum() - right[bucket == b].sum()) for b in range(10)) / len(row)
        *_, number = rows[f"tail {tail:g}"][:3]
        shares = rows[f"tail {tail:g}"][3:]
        assert int(number) == len(row)
        brier = np.mean((chance - right) ** 2)
        want = [100 * chance.mean(), 100 * right.mean(), 100 * off, 100 * brier]
        assert list(map(float, shares)) == pytest.approx(want, abs=0.06)
        judged = ll.metrics.calibration(Y, top, k=5)
        assert list(map(float, shares[2:])) == pytest.approx([judged.ece, judged.brier], abs=0.006)
        assert f"tail {tail:g}: ECE {judged.ece:.1f}" in features, "the plot's legend says it too"
    top = model.top_k(X, 5)
    for k in (1, 3):
        judged = ll.metrics.calibration(Y, top, k=k)
        cells = rows[f"tail 0, first {k}"]
        assert int(cells[2]) == judged.pairs
        assert list(map(float, cells[5:])) == pytest.approx([judged.ece, judged.brier], abs=0.006)
    said = f"the calibration error (ECE@5) is {ll.metrics.calibration(Y, top, k=5).ece:.1f} points"
    assert said in Page(features).text, "at a glance"


def calibrated(*bins: tuple[float, int, int]) -> ll.metrics.Calibration:
    """Give a calibration of bins of (probability, suggestions, correct ones)."""
    return ll.metrics.Calibration(
        0, 0, tuple(ReliabilityBin(int(10 * p) / 10, int(10 * p + 1) / 10, n, hits, p) for p, n, hits in bins)
    )


def test_a_word_says_whether_probabilities_are_too_small_or_too_large() -> None:
    for bins, below, above in (
        ([(0.25, 1000, 250), (0.75, 1000, 750)], "reliable", "reliable"),
        ([(0.25, 1000, 300), (0.75, 1000, 700)], "under-confident", "over-confident"),
        ([(0.25, 1000, 200), (0.55, 1000, 600)], "over-confident", "under-confident"),
        ([(0.25, 1000, 265), (0.75, 1000, 735)], "reliable", "reliable"),  # two points are not worth a word
        ([(0.25, 10, 4), (0.75, 10, 6)], "reliable", "reliable"),  # nor is what may be chance
        ([(0.05, 1000, 300), (0.45, 1000, 200)], "reliable", "–"),  # no suggestion is that likely
    ):
        assert sections.confidence(calibrated(*bins)) == (below, above)


def test_reliability_and_the_number_of_labels_come_right_after_the_overview(texts: str, both: str) -> None:
    for html, before in ((texts, ["overview"]), (both, ["overview", "against"])):
        found = re.findall(r'<section id="(\w+)"', html.replace("'", '"')) or Page(html).ids
        names = [name for name in found if f'href="#{name}"' in html and not name.startswith("table-")]
        assert names[: len(before) + 3] == [*before, "reliability", "sizes", "labels"]
        assert "Are the probabilities reliable?" in html


def test_as_many_as_are_likely_stand_beside_the_fixed_numbers(
    folder: Path, features: str, texts: str
) -> None:
    pages = (
        (features, "model.ll", "test.txt", ["1", "3", "5"]),
        (texts, "tagger.ll", "test.jsonl", ["1", "3"]),
    )
    for html, model, data, places in pages:  # the tagger has 4 tags
        options = ("-k", "1,2,3,4,5,6,7,8,auto", "--json")
        want = json.loads(run_well("evaluate", folder / model, folder / data, *options))
        rows = {name.split()[0]: cells for name, cells in Page(html).cells("sizes").items()}
        fixed = {k: want[f"f1@{k}"] for k in range(1, 9)}
        best = max(fixed, key=lambda k: fixed[k])
        assert set(rows) == {*places, str(best), "as"}
        for name, cells in rows.items():
            at = name.replace("as", "auto")
            keys = [f"{metric}@{at}" for metric in ("precision", "recall", "f1", "labels", "none")]
            assert list(map(float, cells)) == pytest.approx([want[key] for key in keys], abs=0.051)
        said = Page(html).text
        assert f"leads to an F1 of {want['f1@auto']:.1f}" in said.replace("\xa0%", "")
        assert f"{want['labels@auto']:.1f} labels per row on average" in said


def test_the_number_of_one_is_singular(folder: Path, tmp_path: Path, features: str, texts: str) -> None:
    write_jsonl(tmp_path / "one.jsonl", table(1))
    arguments = (folder / "tagger.ll", tmp_path / "one.jsonl", "-o", tmp_path / "one.html", *FAST)
    assert "one.html: 1 row evaluated" in run_well("report", *arguments)
    one = (tmp_path / "one.html").read_text()
    assert "evaluated on 1 row of" in one
    for html in (features, texts, one):
        assert not re.search(r"(?<![.,\d])1 (rows|labels|label trees|hits)\b", Page(html).text)


def test_examples_say_what_supports_a_suggestion_and_what_counts_against_it(texts: str) -> None:
    said = Page(texts[texts.index('id="examples"') : texts.index('id="cost"')]).text
    assert "supports: " in said
    assert "counts against: " in said
    assert not re.search(r"[-+]0\.00", said)


def test_nodes_and_labels_gained_are_those_of_the_searches(folder: Path, features: str) -> None:
    X, Y = ll.load_xmlc(folder / "test.txt")
    model, page = ll.load(folder / "model.ll"), Page(features)
    truth = Y.toarray() > 0
    hits = {}
    for tail in (0.0, 1.0):
        top = model.top_k(X, 5, tail=tail)
        assert float(page.cells("costs")[f"tail {tail:g}"][0]) == pytest.approx(
            top.evaluations.mean(), abs=0.06
        )
        predicted = np.zeros_like(truth)
        np.put_along_axis(predicted, top.labels, True, axis=1)
        hits[tail] = (predicted & truth).sum(axis=0)
    change = hits[1.0] - hits[0.0]
    for kind, sign in (("gained", 1), ("lost", -1)):
        rows = page.cells(f"changes-{kind}")
        assert set(rows) == {name for name, one in zip(NAMES, change, strict=True) if sign * one > 0}
        for name, cells in rows.items():
            label = NAMES.index(name)
            assert cells[0] == str(model.label_counts_[label])
            assert cells[2] == f"{hits[0.0][label]} → {hits[1.0][label]}"
            assert int(cells[3]) == change[label]


def test_the_hardest_labels_are_the_ones_that_are_missed_more_often_than_found(folder: Path) -> None:
    X, Y = ll.load_xmlc(folder / "test.txt")
    X = X[::-1]  # features of other rows, so that much is missed
    ll.save_xmlc(folder / "hard.txt", X, Y)
    model, truth = ll.load(folder / "model.ll"), Y.toarray() > 0
    run_well("report", folder / "model.ll", folder / "hard.txt", "-o", folder / "one.html", *FAST, "-k", "1")
    shown = Page((folder / "one.html").read_text()).cells("hardest")
    hits = []
    for tail in (0.0, 1.0):
        found = model.top_k(X, 1, tail=tail).labels[:, 0]
        hits.append([int(truth[found == label, label].sum()) for label in range(9)])
    true = truth.sum(axis=0)
    wrong = [one for one in range(9) if 2 * max(hits[0][one], hits[1][one]) < true[one] >= 5]
    wrong = [label for label in wrong if model.label_counts_[label]]
    assert wrong
    assert any(max(hits[0][one], hits[1][one]) < true[one] for one in range(9) if one not in wrong)
    assert set(shown) == {f"label {label}" for label in wrong}
    for label in wrong:
        numbers = shown[f"label {label}"][1:]
        want = (model.label_counts_[label], truth[:, label].sum(), hits[0][label], hits[1][label])
        assert list(map(int, numbers)) == list(want)


def test_the_constants_section_judges_by_the_pairs(folder: Path, features: str) -> None:
    X, Y = ll.load_xmlc(folder / "test.txt")
    model = ll.load(folder / "model.ll")
    want = ll.metrics.evaluate(
        Y, model.top_k(X, 5, tail=1.0, propensity=(0.7, 2.6)), model.inverse_propensity((0.7, 2.6)), k=5
    )
    plain, rare = (model.top_k(X, 5, tail=tail) for tail in (0.0, 1.0))
    rows = Page(features).cells("pairs")
    assert len(rows) == 15
    worth = model.inverse_propensity((0.7, 2.6))
    judged = [ll.metrics.evaluate(Y, top, worth, k=5)["psp@5"] for top in (plain, rare)]
    assert list(map(float, rows["0.7, 2.6"])) == pytest.approx([*judged, want["psp@5"]], abs=0.006)


def test_a_page_needs_no_other_host_and_runs_no_script(features: str, texts: str, both: str) -> None:
    for html in (features, texts, both):
        assert "http:" not in html
        assert "https:" not in html
        assert "<script" not in html
        assert "@import" not in html
        assert "url(http" not in html.replace(" ", "")
        page = Page(html)
        assert page.links
        assert all(link.startswith("#") for link in page.links)
        assert {link[1:] for link in page.links} <= set(page.ids)
        assert len(set(page.ids)) == len(page.ids)


def test_every_plot_is_on_the_page_with_a_sentence_and_in_the_folder(folder: Path, features: str) -> None:
    assert features.count("<svg") == features.count("<figcaption>") == len(PLOTS)
    captions = re.findall(r"<figcaption>(.+?)</figcaption>", features)
    assert all(caption.endswith(".") for caption in captions)
    found = {path.name for path in (folder / "figures").iterdir()}
    assert found == {f"{name}.{form}" for name in PLOTS for form in ("svg", "png")}
    for path in (folder / "figures").iterdir():
        begins = path.read_bytes()[:8]
        assert begins == b"\x89PNG\r\n\x1a\n" if path.suffix == ".png" else begins.startswith(b"<?xml")


def test_colours_follow_the_page_by_day_and_night(features: str) -> None:
    drawn = "".join(re.findall(r"<svg.*?</svg>", features, re.DOTALL))
    assert "var(--ink)" in drawn
    assert not re.search(r"#[0-9a-f]{6}\b", drawn)
    assert "prefers-color-scheme: dark" in features


def test_names_are_escaped(features: str) -> None:
    assert "<b>label" not in features
    assert re.search("&lt;b&gt;label [0-8] &amp; more&lt;/b&gt;", features)


def test_texts_are_coloured_by_the_words_that_spoke(folder: Path, texts: str) -> None:
    page = Page(texts)
    assert page.marks
    judged = " ".join(f"{row['title']} {row['body']}" for row in table(30, new_tag=True))
    assert all(mark in judged for mark in page.marks)
    tagger = ll.load(folder / "tagger.ll")
    rows = page.cells("overview")
    X = [f"{row['title']} {row['body']}" for row in table(30, new_tag=True)]
    suggested = tagger.suggest(X, 1, tail=1.0)
    right = [
        one[0].tag in row["subjects"] for one, row in zip(suggested, table(30, new_tag=True), strict=True)
    ]
    assert float(rows["p@1"][1]) == pytest.approx(100 * np.mean(right), abs=0.006)
    judged_alike = run_well("evaluate", folder / "tagger.ll", folder / "test.jsonl", "--tail", 1, "--json")
    for name in ("f1@1", "f1@5"):
        assert float(rows[name][1]) == pytest.approx(json.loads(judged_alike)[name], abs=0.006)


def test_two_models_stand_side_by_side_with_compared_numbers(folder: Path, features: str, both: str) -> None:
    import json

    page = Page(both)
    assert both.count("<svg") == 2 * len(PLOTS)
    for tail in (0, 1):
        said = run_well(
            "compare", folder / "tagger.ll", folder / "fewer.ll", folder / "test.jsonl", "--tail", tail,
            "--samples", 20, "--json",
        )  # fmt: skip
        want = json.loads(said)["metrics"]
        rows = page.cells(f"against{tail}")
        for name in ("p@1", "p@5", "psp@3", "ndcg@5"):
            a, b, change = rows[name]
            assert float(a) == pytest.approx(want[name]["a"], abs=0.006)
            assert float(b) == pytest.approx(want[name]["b"], abs=0.006)
            assert first_number(change) == pytest.approx(want[name]["difference"], abs=0.006)
        assert float(page.cells("overviewB")["p@1"][tail]) == pytest.approx(want["p@1"]["b"], abs=0.006)
    styles = [
        re.search(rf'<text style="([^"]*)"[^>]*>{title}</text>', html)
        for title, html in (("Precision", features), ("A: Precision", both), ("B: Precision", both))
    ]
    assert all(found and found[1] == styles[0][1] for found in styles)
    lost = page.cells("labels-against-lost")
    assert "law" in lost  # which the second model never saw


def test_examples_list_similar_training_records_where_they_are_kept(texts: str, features: str) -> None:
    assert "Similar training records with this tag:" in Page(texts).text
    assert "Similar training records" not in Page(features).text
