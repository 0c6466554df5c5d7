"""The study of the paper: cells are measured once and kept, tables show them beside the paper's figures."""

import json
import sys

import numpy as np
import pytest

import longleaf as ll
from benchmarks.paper import study, tables
from benchmarks.paper.methods import METHODS, TABLE_1, TABLE_2, TABLE_4, TREE_SEARCHES, entry
from benchmarks.paper.render import Cell, Table, latex, markdown
from benchmarks.paper.sets import SETS
from longleaf.datasets import load_repository, make_topics
from longleaf.io.xmlc import save_xmlc
from longleaf.presets import preset

METRICS = tables.METRICS


def record(search, value, **more):
    costs = {"train_cpu_seconds": 7200.0, "batch_cpu_ms": 0.5, "both_load": [9.0, 9.0]}
    return {"search": search, **dict.fromkeys(METRICS, value), **costs, **more}


def cell(data, method, seed, *records):
    machine = {"cores": 2, "cpu": "a made-up processor"}
    return {
        "data": data,
        "method": method,
        "seed": seed,
        "threads": 2,
        "machine": machine,
        "records": list(records),
    }


def keep(results, *cells):
    for each in cells:
        path = results / each["data"] / f"{each['method']}-{each['seed']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(each))


def line(text, *beginnings):
    found = [row for row in text.splitlines() if row.startswith("| " + " | ".join(beginnings))]
    assert found, beginnings
    return [word.strip() for word in found[0].strip("|").split("|")]


def test_means_and_standard_errors_are_hand_worked():
    cells = [
        cell("Bibtex", "plt-log", seed, record("exact", v)) for seed, v in ((1, 1.0), (2, 2.0), (3, 6.0))
    ]
    summary = tables.summarize([*cells, cell("Bibtex", "br-log", 1, {"failed": "no"})])
    assert list(summary) == [("Bibtex", "plt-log", "exact")]
    mean, error = summary["Bibtex", "plt-log", "exact"]["p@1"]
    assert mean == 3.0
    assert error == pytest.approx(np.sqrt(7.0 / 3.0))  # variance (4 + 1 + 9) / 2 = 7, of three seeds
    assert summary["Bibtex", "plt-log", "exact"]["train_hours"] == (2.0, 0.0)
    assert tables.spread([4.0]) == (4.0, None)


def test_a_set_of_the_paper_stands_beside_its_figures(tmp_path):
    keep(
        tmp_path,
        cell("EURLex-4K", "plt-log", 1993, record("exact", 40.0), record("exact, gains", 50.0)),
        cell("Bibtex", "plt-log", 1993, record("exact", 30.0)),
    )
    markdown_path, latex_path = tables.write_tables(tmp_path)
    text = markdown_path.read_text()
    assert "loaded machine" in text
    assert line(text, "PLT", "paper")[2:4] == ["36.00", "43.30"]
    after = text[text.index("| PS-PLT | paper") :]
    assert line(after, "", "longleaf")[2] == "**_50.00_**"
    assert line(after, "", "difference")[2] == "+5.27"  # 50.00 - 44.73
    assert line(text, "PW-DiSMEC", "paper")[2] == "43.48"  # reported, not measured
    assert line(text, "PLT", "longleaf")[2] == "**_30.00_**"  # Bibtex, which the paper does not have
    assert line(text, "PLT, log", "paper")[2] == "36.00 ± 0.07"
    assert latex_path.read_text().count(r"\begin{table*}") == text.count("### Table")


def test_the_papers_figures_are_those_of_its_tables():
    reported = tables.REPORTED
    assert reported["table1"]["Amazon-670K"]["PS-PLT"]["p@5"] == 36.6
    assert "ProXML" not in reported["table1"]["Wiki10-31K"]
    assert reported["table2"]["WikiLSHTC-325K"]["PS-PLT"] == {"train_hours": 9.21, "test_ms": 12.4}
    assert reported["table4"]["WikipediaLarge-500K"]["PLT, h2"]["test_ms"] == [10.21, 0.07]
    assert set(reported["table4"]["EURLex-4K"]) <= {row for row, _, _ in TABLE_4}
    for table in ("table1", "table2", "table4"):
        assert set(reported[table]) <= set(SETS)
    assert set(TABLE_2) <= set(reported["table1"]["EURLex-4K"])


def test_every_row_of_the_tables_is_asked_of_some_method():
    for _, method, search in TABLE_1 + TABLE_4:
        assert search in METHODS[method].searches


def test_settings_are_the_papers():
    assert SETS["Amazon-670K"].constants == (0.6, 2.6)
    for name, cost in (("EURLex-4K", 16.0), ("Amazon-670K", 32.0), ("Bibtex", 16.0)):
        params = entry("plt-log", SETS[name], 2021).params
        assert (params["C"], params["n_trees"], params["max_leaf"], params["random_state"]) == (
            cost,
            3,
            100,
            2021,
        )
    assert entry("br-log", SETS["Amazon-670K"], 1).params["C"] == 32.0
    assert entry("plt-hinge", SETS["Amazon-670K"], 1).params["C"] == 1.0


@pytest.mark.parametrize(
    ("method", "name"), [("plt-log", "paper"), ("plt-hinge", "parabel"), ("bonsai", "bonsai")]
)
def test_the_presets_are_what_the_study_measures(method, name):
    measured = entry(method, SETS["Bibtex"], 1993).params
    assert {setting: measured[setting] for setting in preset(name)} == preset(name)
    assert measured.keys() - preset(name).keys() == {"estimator", "random_state", "propensity"}


def test_marks_and_special_characters_are_written_in_both_forms():
    table = Table("A & B, 5 %", ["x", "y", "z"], [[Cell("A*"), Cell("a_b"), Cell("1.0 ± 0.1", Cell.BOTH)]])
    assert r"| A\* | a_b | **_1.0 ± 0.1_** |" in markdown(table)
    assert r"A$^*$ & a\_b & \underline{\textbf{1.0 $\pm$ 0.1}} \\" in latex(table)
    assert r"A \& B, 5 \%" in latex(table)


@pytest.fixture
def small(tmp_path):
    X, Y = make_topics(300, 200, 30, n_test=100, random_state=1)
    folder = tmp_path / "data" / "bibtex"
    folder.mkdir(parents=True)
    save_xmlc(folder / "bibtex_train.txt", X[:300], Y[:300])
    save_xmlc(folder / "bibtex_test.txt", X[300:], Y[300:])
    return tmp_path


def run(folder, monkeypatch, *words):
    places = ("--root", folder / "data", "--results", folder / "results", "--cache", folder / "cache")
    monkeypatch.setattr(sys, "argv", ["paper", *map(str, places), *words])
    study.main()


def test_a_cell_is_measured_once_and_holds_what_the_model_says(small, monkeypatch, capsys):
    words = ("--data", "Bibtex", "EURLex-4K", "--method", "plt-log", "--quick")
    run(small, monkeypatch, *words)
    assert "EURLex-4K was not found" in " ".join(capsys.readouterr().out.split())
    path = small / "results" / "Bibtex" / "plt-log-1993.json"
    kept = json.loads(path.read_text())
    assert [each["search"] for each in kept["records"]] == [search.name for search in TREE_SEARCHES]
    exact, gains = kept["records"][:2]
    splits = load_repository(small / "data" / "bibtex")
    model = ll.PLT.paper(random_state=1993).fit(splits.X_train, splits.Y_train)
    for judged, tail in ((exact, None), (gains, 1.0)):
        expected = ll.metrics.evaluate(
            splits.Y_test,
            model.top_k(splits.X_test, 5, tail=tail),
            inverse_propensity=ll.inverse_propensity(splits.Y_train),
            k=(1, 3, 5),
        )
        assert {name: judged[name] for name in METRICS} == pytest.approx({n: expected[n] for n in METRICS})
    assert exact["train_cpu_seconds"] > 0
    before = path.stat().st_mtime_ns
    run(small, monkeypatch, *words)
    assert path.stat().st_mtime_ns == before
    assert "Table 4, Bibtex" in (small / "results" / "tables.md").read_text()


def test_a_cell_of_other_settings_is_measured_again(small, monkeypatch):
    words = ("--data", "Bibtex", "--method", "br-hinge", "--quick")
    run(small, monkeypatch, *words)
    path = small / "results" / "Bibtex" / "br-hinge-1993.json"
    kept = json.loads(path.read_text())
    kept["params"]["hinge_power"] = 3
    path.write_text(json.dumps(kept))
    run(small, monkeypatch, *words)
    assert json.loads(path.read_text())["params"]["hinge_power"] == 2


def test_a_folder_that_cannot_be_read_leaves_the_other_sets_to_be_measured(small, monkeypatch, capsys):
    (small / "data" / "delicious").mkdir()
    run(small, monkeypatch, "--data", "Delicious", "Bibtex", "--method", "br-hinge", "--quick")
    assert "Delicious is left out" in " ".join(capsys.readouterr().out.split())
    assert "Table 4, Bibtex" in (small / "results" / "tables.md").read_text()
