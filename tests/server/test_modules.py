"""The parts of the service that need no service."""

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra serve")

from longleaf.explain.paths import node_terms
from longleaf.server.board import Board, Slot
from longleaf.server.engine import Engine
from longleaf.server.metrics import render
from longleaf.server.tag_search import TagSearch
from longleaf.server.tree_view import TreeView, labels_below
from tests.helpers import handmade
from tests.helpers.serving import make_tagger


def test_all_weights_of_a_node_are_those_that_a_look_up_finds():
    model = make_tagger().estimator_
    for tree in range(len(model.trees_)):
        wanted = handmade.decode(model.weights_[tree], model.n_features_in_)
        for node in range(1, model.trees_[tree].n_nodes):
            features, values = node_terms(model, tree, node)
            dense = np.zeros(model.n_features_in_)
            dense[features] = values
            np.testing.assert_array_equal(dense, wanted[:, node])


def test_the_labels_below_a_node_are_those_whose_paths_pass_it():
    tree = make_tagger().estimator_.trees_[0]
    for node in range(tree.n_nodes):
        wanted = set()
        for leaf in np.flatnonzero(tree.label >= 0):
            above = leaf
            while above > node:
                above = tree.parent[above]
            if above == node:
                wanted.add(int(tree.label[leaf]))
        assert set(labels_below(tree, node).tolist()) == wanted


def test_chances_multiply_along_a_path_to_the_probability(tmp_path):
    tagger = make_tagger(n_trees=1)
    tagger.save(tmp_path / "model.ll")
    engine, text = Engine(str(tmp_path / "model.ll")), "virgin olive oil with cod"
    found = {}

    def walk(node, chance):
        for child in TreeView(engine, 0, node, text).to_json()["children"]:
            here = chance * child["probability"]
            if child["label"]:
                found[child["label"]["tag"]] = here
            else:
                walk(child["node"], here)

    walk(0, 1.0)
    wanted = {one.tag: one.probability for one in tagger.suggest([text], k=5)[0]}
    assert found == pytest.approx(wanted, rel=1e-4)


def test_a_search_for_tags_prefers_whole_names_then_beginnings_then_the_frequent():
    names = ["oil", "olive oil", "Oil press", "foil", "boiler", "wheat"]
    search = TagSearch(names, list("abcdef"), np.array([1, 9, 2, 5, 7, 3]))
    assert search.find("oil", 9) == [0, 2, 1, 4, 3]
    assert search.find("OIL", 2) == [0, 2]
    assert search.find("", 2) == [1, 4]
    assert search.find("f", 9)[0] == 5, "its tag is exactly that"
    assert search.find("oil\nolive", 9) == []
    assert search.find("l\n", 9) == search.find("l", 9)


def test_metrics_sum_over_workers_and_histograms_rise():
    board = Board(2)
    for worker, seconds in ((0, 0.002), (1, 0.02), (1, 99.0)):
        slot = Slot(board, worker)
        slot.request("/v1/suggest", 200, seconds)
        slot.batch(3, 0.5)
    Slot(board, 0).request("/somewhere", 418, 0.0)
    page = render(board, "abc", 5)
    lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert lines['longleaf_requests_total{path="/v1/suggest",status="200"}'] == "3"
    assert lines['longleaf_requests_total{path="other",status="other"}'] == "1"
    buckets = [
        float(n) for name, n in lines.items() if name.startswith('longleaf_request_seconds_bucket{path="/v1')
    ]
    assert buckets == sorted(buckets)
    assert lines['longleaf_request_seconds_bucket{path="/v1/suggest",le="0.0025"}'] == "1"
    assert lines['longleaf_request_seconds_bucket{path="/v1/suggest",le="10.0"}'] == "2"
    assert lines['longleaf_request_seconds_count{path="/v1/suggest"}'] == "3"
    assert float(lines['longleaf_request_seconds_sum{path="/v1/suggest"}']) == pytest.approx(99.022)
    assert lines['longleaf_batch_rows_bucket{le="2"}'] == "0"
    assert lines['longleaf_batch_rows_bucket{le="4"}'] == "3"
    assert lines["longleaf_batch_rows_sum"] == "9"
    assert lines["longleaf_workers"] == "2"
    for name in {line.split("{")[0].split(" ")[0] for line in page.splitlines() if line[0] != "#"}:
        family = name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
        assert f"# TYPE {family} " in page, name
