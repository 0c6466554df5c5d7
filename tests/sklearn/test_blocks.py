"""Dense rows, and words beside dense rows: any way of joining them gives the same, and scale matters."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import Normalizer, normalize

import longleaf as ll
from longleaf.metrics import make_scorer
from tests.helpers.searching import same
from tests.helpers.training import texts

X, ROWS = texts(n_rows=300, n_labels=12, seed=5)
TRAIN, TEST = slice(0, 200), slice(200, 300)
WORDS = [" ".join(f"word{column}" for column in X[[row]].indices) for row in range(300)]
TAGS = [[f"tag{label}" for label in labels] for labels in ROWS]
EMBEDDINGS = TruncatedSVD(8, random_state=0).fit(X[TRAIN]).transform(X).astype(np.float32)

MODELS = [ll.PLT(n_trees=2, max_leaf=3, random_state=1, n_jobs=1), ll.BR(random_state=1, n_jobs=1)]


def hit_rate(features, model=MODELS[0]):
    """Train on the first rows and give p@1 of the others."""
    return make_scorer("p@1")(model.fit(features[TRAIN], ROWS[TRAIN]), features[TEST], ROWS[TEST])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.kind)
def test_embeddings_of_either_width_and_order_give_the_same_model_and_are_learned_from(model):
    forms = [
        EMBEDDINGS,
        EMBEDDINGS.astype(np.float64),
        np.asfortranarray(EMBEDDINGS),
        sp.csr_array(EMBEDDINGS),
    ]
    answers = [model.fit(form[TRAIN], ROWS[TRAIN]).top_k(form[TEST], 4, tail=0.5) for form in forms]
    for answer in answers[1:]:
        same(answers[0], answer)
    shuffled = np.random.default_rng(0).permutation(EMBEDDINGS)
    assert hit_rate(EMBEDDINGS, model) > hit_rate(shuffled, model) + 10


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.kind)
def test_words_and_embeddings_may_be_joined_in_any_way(model):
    joined = sp.hstack([X, EMBEDDINGS], format="csr")
    dense = np.hstack([X.toarray(), EMBEDDINGS])
    same(model.fit(joined, ROWS).top_k(joined, 4), model.fit(dense, ROWS).top_k(dense, 4))
    same(model.fit(joined, ROWS).top_k(joined, 4), model.fit(joined.tocoo(), ROWS).top_k(joined.tocsc(), 4))


def test_a_long_block_drowns_the_other_and_blocks_of_unit_length_do_not():
    noise = np.random.default_rng(1).normal(size=(300, 64))
    words = hit_rate(X)
    raw = hit_rate(sp.hstack([normalize(X), 30 * noise], format="csr"))
    scaled = hit_rate(sp.hstack([normalize(X), 0.3 * normalize(noise)], format="csr"))
    assert raw < words - 15
    assert scaled > words - 5


def both(weight):
    return FeatureUnion(
        [
            ("words", ll.TextVectorizer()),
            ("meaning", make_pipeline(ll.TextVectorizer(), TruncatedSVD(8, random_state=0), Normalizer())),
        ],
        transformer_weights={"meaning": weight},
    )


def test_a_tagger_takes_a_union_of_words_and_embeddings():
    tagger = ll.Tagger(MODELS[0], both(0.3)).fit(WORDS[TRAIN], TAGS[TRAIN])
    words = ll.Tagger(MODELS[0], ll.TextVectorizer()).fit(WORDS[TRAIN], TAGS[TRAIN])
    n_words = words.estimator_.n_features_in_
    assert tagger.estimator_.n_features_in_ == n_words + 8
    lengths = sp.linalg.norm(tagger.vectorizer_.transform(WORDS[:5])[:, n_words:], axis=1)
    np.testing.assert_allclose(lengths, 0.3, rtol=1e-5)
    assert tagger.score(WORDS[TEST], TAGS[TEST]) > words.score(WORDS[TEST], TAGS[TEST]) - 0.05
    explanation = tagger.explain(WORDS[0], "tag0")
    total = sum(value for _, value in explanation.contributions)
    assert total == pytest.approx(np.log(explanation.probability / explanation.baseline), abs=1e-4)


@pytest.mark.parametrize("sparse_threshold", [0.0, 1.0])
def test_a_table_of_texts_and_numbers_goes_through_a_column_transformer(sparse_threshold):
    pandas = pytest.importorskip("pandas", reason="the columns are those of a pandas table")
    numbers = [f"n{column}" for column in range(8)]
    table = pandas.DataFrame(EMBEDDINGS, columns=numbers).assign(text=WORDS)
    blocks = ColumnTransformer(
        [("words", ll.TextVectorizer(), "text"), ("numbers", Normalizer(), numbers)],
        sparse_threshold=sparse_threshold,
    )
    model = clone(MODELS[0]).set_params(weight_bits=32)  # 8 bits make steps of last bits
    pipeline = make_pipeline(blocks, clone(model)).fit(table[TRAIN], ROWS[TRAIN])
    features = pipeline[0].transform(table)
    assert sp.issparse(features) == (sparse_threshold == 1.0)
    words = ll.TextVectorizer().fit(WORDS[TRAIN]).transform(WORDS)
    expected = sp.hstack([words, normalize(EMBEDDINGS)], format="csr")
    model.fit(expected[TRAIN], ROWS[TRAIN])
    answer = pipeline[-1].top_k(features[TEST], 3)
    np.testing.assert_array_equal(answer.labels, model.top_k(expected[TEST], 3).labels)
    np.testing.assert_allclose(answer.scores, model.top_k(expected[TEST], 3).scores, rtol=1e-5)
