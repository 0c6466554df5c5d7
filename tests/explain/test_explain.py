from __future__ import annotations

import math
import time
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf.explain import explain_row
from longleaf.explain.paths import path_nodes
from longleaf.explain.row import log_node_probability
from longleaf.explain.words import Explanation, column_names, word_spans
from tests.helpers import handmade

N_FEATURES, N_LABELS = 60, 30


def random_data(seed, rows=120):
    random = np.random.RandomState(seed)
    truth = random.randn(N_FEATURES, N_LABELS)
    X = sp.random(rows, N_FEATURES, 0.2, "csr", dtype=np.float32, random_state=random)
    margins = X @ truth
    Y = (margins > np.quantile(margins, 0.9, axis=1, keepdims=True)).astype(np.float32)
    return X, sp.csr_matrix(Y)


def fitted(loss, n_trees, weight_bits, **params):
    X, Y = random_data(1)
    settings = {"max_leaf": 4, "threshold": 0.0, "random_state": 1, "n_jobs": 1}
    settings |= {"loss": loss, "n_trees": n_trees, "weight_bits": weight_bits}
    return ll.PLT(**(settings | params)).fit(X, Y), X


def obvious_weights(model, tree):
    """All weights of a tree, [nodes, features], decoded entry by entry."""
    return handmade.decode(model.weights_[tree], model.n_features_in_).T.astype(np.float64)


def node_weights(model, node, features):
    return model._prepare().forest.node_weights(0, node, np.asarray(features, np.int32))


def log_mean_probability(model, dense, x, label):
    """The log of the ensemble's mean probability, straight from the definition, in float64."""
    etas = []
    for tree, weights, w in zip(model.trees_, model.weights_, dense, strict=True):
        node = int(np.flatnonzero(tree.label == label)[0])
        log_eta = 0.0
        while node > 0:
            margin = float(weights["bias"][node]) + float(w[node] @ x)
            if model.loss == "log":
                log_eta -= math.log1p(math.exp(-margin))
            else:
                log_eta -= max(0.0, 1.0 - margin) ** model.hinge_power
            node = int(tree.parent[node])
        etas.append(math.exp(log_eta))
    return math.log(sum(etas) / len(etas))


def scored_row(model, X, row):
    x = X[[row]].toarray()[0].astype(np.float64)
    return x / np.linalg.norm(x) if model.normalize else x


MODELS = list(product(["log", "squared-hinge"], [1, 3], [8, 32]))


@pytest.mark.parametrize(("loss", "n_trees", "bits"), MODELS)
def test_contributions_sum_to_the_gain_in_log_probability(loss, n_trees, bits):
    model, X = fitted(loss, n_trees, bits)
    empty = sp.csr_matrix((1, N_FEATURES), dtype=np.float32)
    seen = np.flatnonzero(model.label_counts_)
    for row, label in [
        (0, seen[0]),
        (3, seen[-1]),
        (7, seen[5]),
        *((r, seen[r % len(seen)]) for r in range(20)),
    ]:
        found = explain_row(model, X, int(label), row)
        probability = model.probability(X[[row]], [0], [label])[0]
        baseline = model.probability(empty, [0], [label])[0]
        gained = math.log(probability) - math.log(baseline)
        assert found.contributions.sum() == pytest.approx(gained, abs=1e-4)
        assert sum(level.change for level in found.levels) == pytest.approx(gained, abs=1e-4)
        assert found.log_probability == pytest.approx(math.log(probability), abs=1e-4)
        assert found.log_baseline == pytest.approx(math.log(baseline), abs=1e-4)


@pytest.mark.parametrize(("loss", "n_trees", "bits"), MODELS)
def test_contributions_are_the_path_integral_of_numerical_gradients(loss, n_trees, bits):
    model, X = fitted(loss, n_trees, bits)
    dense = [obvious_weights(model, tree) for tree in range(n_trees)]
    label = int(np.flatnonzero(model.label_counts_)[3])
    x = scored_row(model, X, 2)
    expected = np.zeros(N_FEATURES)
    steps, h = 400, 1e-5
    for share in (np.arange(steps) + 0.5) / steps:
        for f in np.flatnonzero(x):
            up, down = share * x, share * x
            up[f] += h
            down[f] -= h
            rise = log_mean_probability(model, dense, up, label)
            rise -= log_mean_probability(model, dense, down, label)
            expected[f] += x[f] * rise / (2 * h) / steps
    found = explain_row(model, X, label, 2)
    np.testing.assert_allclose(found.contributions, expected[found.features], atol=2e-4)


@pytest.mark.parametrize("bits", [8, 32])
@pytest.mark.parametrize("threshold", [0.0, 0.3])
@pytest.mark.parametrize("max_leaf", [4, 100])
def test_the_weights_of_a_node_are_decoded_as_native_code_reads_them(bits, threshold, max_leaf):
    model, _ = fitted("log", 1, bits, threshold=threshold, max_leaf=max_leaf)
    dense = obvious_weights(model, 0)
    features = np.array([0, 3, 4, 17, 18, 59])
    for node in range(1, model.trees_[0].n_nodes):
        np.testing.assert_array_equal(node_weights(model, node, features), dense[node, features])
    assert np.count_nonzero(dense)


def test_chunks_of_more_siblings_than_one_holds_and_few_weights_are_decoded():
    random = np.random.RandomState(0)
    X = sp.random(700, 5000, 0.004, "csr", dtype=np.float32, random_state=random)
    Y = sp.csr_matrix((np.ones(700), (np.arange(700), np.arange(700) % 600)), shape=(700, 600))
    model = ll.BR(random_state=0, n_jobs=1).fit(X, Y)
    dense = obvious_weights(model, 0)
    features = np.sort(random.choice(5000, 50, replace=False))
    for node in (1, 191, 192, 193, 384, 385, 600):
        np.testing.assert_array_equal(node_weights(model, node, features), dense[node, features])


def test_a_path_leads_from_the_root_to_the_leaf():
    model, _ = fitted("log", 1, 8)
    tree = model.trees_[0]
    for label in tree.labels:
        nodes = [0, *path_nodes(tree, label)]
        assert tree.label[nodes[-1]] == label
        assert [int(tree.parent[v]) for v in nodes[1:]] == nodes[:-1]


def test_many_trees_of_one_kind_explain_as_one_of_them():
    one, X = fitted("log", 1, 8, tree="complete")
    three, _ = fitted("log", 1, 8, tree="complete")
    three.trees_, three.weights_ = one.trees_ * 3, one.weights_ * 3
    del three.__dict__["_prepared"]
    for row in range(5):
        a, b = explain_row(one, X, 4, row), explain_row(three, X, 4, row)
        np.testing.assert_allclose(a.contributions, b.contributions, atol=1e-9)


def test_a_hand_worked_tree_with_one_word():
    # One label pair below the root; the word "a" alone has weight 2 for label 0, whose bias is -1.
    model = ll.PLT(n_trees=1, loss="log", weight_bits=32, normalize=False).fit([[1.0], [0.5]], [[0], [1]])
    weights = model.weights_[0]
    node = int(path_nodes(model.trees_[0], 0)[0])
    weights["bias"][node] = -1.0
    weight = node_weights(model, node, [0])[0]
    found = explain_row(model, [[3.0]], 0)
    expected = math.log1p(math.exp(1.0)) - math.log1p(math.exp(1.0 - 3 * weight))
    assert found.contributions.tolist() == pytest.approx([expected])
    assert found.levels[0].change == pytest.approx(expected)
    assert found.levels[0].log_probability == pytest.approx(-math.log1p(math.exp(1.0 - 3 * weight)))


def test_an_empty_row_and_a_dense_row_are_explained():
    model, X = fitted("log", 3, 8)
    empty = explain_row(model, np.zeros((1, N_FEATURES)), 3)
    assert len(empty.contributions) == 0
    assert empty.log_probability == pytest.approx(empty.log_baseline)
    dense, sparse = explain_row(model, X.toarray(), 3, 2), explain_row(model, X, 3, 2)
    np.testing.assert_array_equal(dense.contributions, sparse.contributions)


def test_what_cannot_be_explained_is_refused():
    model = ll.PLT(n_trees=1).fit([[1.0, 0.0], [0.0, 1.0]], [[0], [2]])
    with pytest.raises(ValueError, match="label must occur in training"):
        explain_row(model, [[1.0, 0.0]], 1)
    with pytest.raises(ValueError, match="must be below 1 and 3; got 0 and 3"):
        explain_row(model, [[1.0, 0.0]], 3)


def test_log_probabilities_of_nodes_do_not_overflow():
    far = np.array([-1e4, 0.0, 1e4])
    np.testing.assert_allclose(log_node_probability(far, 0), [-1e4, -math.log(2), 0.0])
    np.testing.assert_allclose(log_node_probability(far, 3), [-(10001.0**3), -1.0, 0.0])


# ------------------------------------------------------------ words


def test_spans_point_at_the_words_and_keep_the_sum():
    text = "Olive oil, OIL of olives."
    spans = word_spans(text, [("oil", 1.0), ("olive", -0.5), ("olives", 0.25), ("wheat", 9.0)])
    assert [text[b:e] for b, e, _ in spans] == ["Olive", "oil", "OIL", "olives"]
    assert [v for *_, v in spans] == pytest.approx([-0.5, 0.5, 0.5, 0.25])


def test_spans_of_word_pairs_skip_the_one_letter_words_that_the_vectorizer_skips():
    text = "import of a duty; import duty"
    spans = word_spans(text, [("of duty", 1.2), ("import duty", 1.0)])
    assert [text[b:e] for b, e, _ in spans] == ["of", "duty", "import", "duty"]
    assert sum(v for *_, v in spans) == pytest.approx(2.2)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ngram_range": (1, 2)},
        {"char_ngram_range": (3, 4)},
        {"analyzer": "char_wb", "ngram_range": (2, 4)},
        {"analyzer": "char", "ngram_range": (3, 3)},
    ],
)
def test_every_term_of_a_text_is_found_in_it(settings):
    text = "Öl und Bäume: die ÖLPREISE in İstanbul a b, oil and the oil"
    vectorizer = ll.TextVectorizer(**settings).fit([text])
    terms = list(vectorizer.get_feature_names_out())
    spans = word_spans(text, [(term, 1.0) for term in terms])
    assert sum(v for *_, v in spans) == pytest.approx(len(terms))
    ends = [0]
    for begin, end, _ in spans:
        assert ends[-1] <= begin < end <= len(text)
        ends.append(end)


def test_spans_of_many_terms_in_a_long_text_take_time_for_the_text_only():
    words = [f"word{number}" for number in range(60_000)]
    terms = [(word, 1.0) for word in words] + [(f"~{word[1:]}", 1.0) for word in words]
    terms += [(f"{first} {second}", 1.0) for first, second in pairwise(words)]
    begin = time.process_time()
    spans = word_spans(" ".join(words), terms)
    assert time.process_time() - begin < 10, "one search of the text for each term takes minutes"
    assert sum(value for *_, value in spans) == pytest.approx(len(terms))


def test_columns_are_named_by_the_vectorizer_and_hashed_ones_by_the_text():
    texts = ["olive oil", "wheat"]
    vectorizer = ll.TextVectorizer().fit(texts)
    assert column_names(vectorizer, np.array([2, 0])) == ["wheat", "oil"]
    hashing = ll.TextVectorizer(hashing=1000).fit(texts)
    columns = hashing.transform(["oil", "wheat"]).indices
    assert column_names(hashing, columns) == [f"hash{column}" for column in columns]
    assert column_names(object(), np.array([3])) == ["feature3"]


def test_an_explanation_reads_well():
    model, X = fitted("log", 3, 8)
    levels = explain_row(model, X, 3, 2).levels
    words = [("oil", 1.0), ("wheat", -0.5), ("tree", 0.25)]
    explanation = Explanation("4711", "olive oil", 0.5, 0.01, words, levels)
    text = explanation.to_text(words=2).splitlines()
    assert text[0] == "4711 (olive oil): probability 0.5, 0.01 for an empty text"
    assert text[1].split() == ["+1.000", "oil", "x2.72"]
    assert text[2].split() == ["-0.500", "wheat", "x0.607"]
    assert text[3].split() == ["+0.250", "1", "more", "words"]
    assert f"decided at level {explanation.decided.depth} of {len(levels)}" in text[4]
    assert abs(explanation.decided.change) == max(abs(level.change) for level in levels)
    assert explanation.words_for == (("oil", 1.0), ("tree", 0.25))
