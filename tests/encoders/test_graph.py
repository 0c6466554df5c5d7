"""A converted model computes what BERT's forward pass does, as far as int8 allows."""

import json

import numpy as np
import pytest

import longleaf as ll
from longleaf.encoders.folder import ModelFolder
from longleaf.encoders.graph import transformer
from longleaf.encoders.weights import BertWeights
from tests.helpers.encoders import TEXTS, random_tensors, require_extra, save_bert
from tests.reference.bert import as_int8, embedding, exact

require_extra()

TENSORS = random_tensors(22, 2, 32, 64, 40, seed=0)


def expected(folder, product, pooling="mean"):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    config = json.loads((folder / "config.json").read_text())
    ids = [tokenizer.encode(text).ids for text in TEXTS]
    return np.array([embedding(TENSORS, config, one, pooling, product) for one in ids])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pooling": "cls"},
        {"model_type": "roberta", "pad_token_id": 1},
        {"model_type": "xlm-roberta", "pad_token_id": 1, "prefix": "roberta."},
        {"model_type": "camembert", "pad_token_id": 1, "layer_norm_eps": 1e-3},
        {"prefix": "bert.", "gamma": True},
        {"hidden_act": "gelu_new"},
        {"hidden_act": "relu"},
        {"heads": 1},
    ],
    ids=str,
)
def test_embeddings_are_those_of_the_same_integers_one_step_after_the_other(tmp_path, settings):
    folder = save_bert(tmp_path / "model", **settings)
    found = ll.encoders.load(folder).embed(TEXTS)
    pooling = settings.get("pooling", "mean")
    assert np.abs(found - expected(folder, as_int8, pooling)).max() < 0.01  # a rounding may differ
    assert (found * expected(folder, exact, pooling)).sum(axis=1).min() > 0.99


def test_embeddings_of_half_precision_weights_are_about_the_same(tmp_path):
    from safetensors.numpy import save_file

    folder = save_bert(tmp_path / "model")
    before = ll.encoders.load(folder).embed(TEXTS)
    halves = {name: tensor.astype(np.float16) for name, tensor in TENSORS.items()}
    save_file(halves, folder / "model.safetensors")
    assert np.abs(ll.encoders.load(folder).embed(TEXTS) - before).max() < 0.02


def test_weights_of_bfloat16_are_read(tmp_path):
    import ml_dtypes
    from safetensors.numpy import save_file

    folder = save_bert(tmp_path / "model")
    before = ll.encoders.load(folder).embed(TEXTS)
    save_file(
        {name: tensor.astype(ml_dtypes.bfloat16) for name, tensor in TENSORS.items()},
        folder / "model.safetensors",
    )
    assert (ll.encoders.load(folder).embed(TEXTS) * before).sum(axis=1).min() > 0.98


def test_the_same_weights_make_the_same_file(tmp_path):
    folder = ModelFolder.read(save_bert(tmp_path / "model"))
    assert transformer(BertWeights(folder), "mean") == transformer(BertWeights(folder), "mean")


def test_most_of_the_file_is_one_byte_per_weight(tmp_path):
    folder = save_bert(tmp_path / "model", width=128, inner=512, layers=4)
    model = transformer(BertWeights(ModelFolder.read(folder)), "mean")
    assert len(model) < 0.3 * (folder / "model.safetensors").stat().st_size
