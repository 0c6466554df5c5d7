"""Tiny transformers with random weights, in folders like those of real ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXTRA = ("onnxruntime", "onnx", "tokenizers", "safetensors")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = (
    *("the", "a", "cat", "dog", "tree", "leaf", "long", "short", "water", "soil"),
    *("energy", "model", "of", "and", "in", "##s", "##ing", "##ly"),
)
TEXTS = (
    "the cat and the dog",
    "long leaf trees",
    "water in soil",
    "a",
    "energy models of the long short water and soil and trees in the energy of a dog",
    "what nobody knows",
)
"""Texts of several lengths, with words that the vocabulary lacks."""


def require_extra() -> None:
    """Skip a test, or a file of tests, without the libraries of the extra."""
    for module in EXTRA:
        pytest.importorskip(module, reason="needs the extra encoder")


def save_bert(
    folder: Path,
    *,
    model_type: str = "bert",
    pooling: str | None = "mean",
    layers: int = 2,
    width: int = 32,
    heads: int = 4,
    inner: int = 64,
    positions: int = 40,
    prefix: str = "",
    gamma: bool = False,
    seed: int = 0,
    words: Sequence[str] = WORDS,
    **config: Any,
) -> Path:
    """Save a transformer with random weights, and return its folder.

    Parameters
    ----------
    folder : Path
    model_type : str
    pooling : str or None
        "mean" or "cls", or the name of another; None writes no file about it.
    layers, width, heads, inner, positions : int
        Its size.
    prefix : str
        Put in front of the names of tensors.
    gamma : bool
        Whether normalisations have ``gamma`` and ``beta``, as old files do.
    seed : int
    words : sequence of str
        Its vocabulary, after the special tokens.
    **config
        Further entries of config.json.
    """
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    facts = {
        "model_type": model_type,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "max_position_embeddings": positions,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
        "pad_token_id": 0,
    }
    write_json(folder / "config.json", facts | config)
    tensors = random_tensors(len(SPECIAL) + len(words), layers, width, inner, positions, seed)
    if gamma:
        for name in [one for one in tensors if "LayerNorm" in one]:
            new = name.replace("weight", "gamma").replace("bias", "beta")
            tensors[new] = tensors.pop(name)
    save_file({prefix + name: tensor for name, tensor in tensors.items()}, folder / "model.safetensors")
    write_json(folder / "tokenizer.json", tokenizer([*SPECIAL, *words]))
    if pooling is not None:
        write_json(folder / "1_Pooling" / "config.json", pooling_config(pooling))
    return folder


def random_tensors(
    tokens: int, layers: int, width: int, inner: int, positions: int, seed: int
) -> dict[str, Any]:
    """Return the tensors of a BERT by name, random."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int, scale: float) -> Any:
        return rng.normal(0, scale, shape).astype(np.float32)

    tensors: dict[str, Any] = {
        "embeddings.word_embeddings.weight": draw(tokens, width, scale=1),
        "embeddings.position_embeddings.weight": draw(positions, width, scale=0.3),
        "embeddings.token_type_embeddings.weight": draw(2, width, scale=0.3),
    }

    def add_norm(name: str) -> None:
        tensors[f"{name}.LayerNorm.weight"] = 1 + draw(width, scale=0.1)
        tensors[f"{name}.LayerNorm.bias"] = draw(width, scale=0.1)

    def add_linear(name: str, inputs: int, outputs: int) -> None:
        tensors[f"{name}.weight"] = draw(outputs, inputs, scale=inputs**-0.5)
        tensors[f"{name}.bias"] = draw(outputs, scale=0.1)

    add_norm("embeddings")
    for number in range(layers):
        layer = f"encoder.layer.{number}"
        for one in ("query", "key", "value"):
            add_linear(f"{layer}.attention.self.{one}", width, width)
        add_linear(f"{layer}.attention.output.dense", width, width)
        add_norm(f"{layer}.attention.output")
        add_linear(f"{layer}.intermediate.dense", width, inner)
        add_linear(f"{layer}.output.dense", inner, width)
        add_norm(f"{layer}.output")
    return tensors


def tokenizer(vocabulary: Sequence[str], max_length: int | None = None) -> dict[str, Any]:
    """Return a tokenizer.json: lower case, words and their pieces, [CLS] and [SEP]."""
    number = {token: place for place, token in enumerate(vocabulary)}

    def special(token: str) -> dict[str, Any]:
        return {"id": token, "ids": [number[token]], "tokens": [token]}

    ends = ("[CLS]", "[SEP]")
    around = [{"SpecialToken": {"id": token, "type_id": 0}} for token in ends]
    one = [around[0], {"Sequence": {"id": "A", "type_id": 0}}, around[1]]
    cut = {"max_length": max_length, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    return {
        "version": "1.0",
        "truncation": None if max_length is None else cut,
        "padding": None,
        "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": one,
            "pair": [*one, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {token: special(token) for token in ends},
        },
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": number,
        },
    }


def pooling_config(pooling: str) -> dict[str, Any]:
    """Return the config.json of a pooling."""
    names = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}
    used = names.get(pooling, f"pooling_mode_{pooling}")
    return {"word_embedding_dimension": 32} | {name: name == used for name in [*names.values(), used]}


def save_onnx(path: Path, table: Any) -> Path:
    """Save a graph that looks tokens up in a table and adds up nothing: one vector per token."""
    import onnx
    from onnx import helper

    kinds = onnx.TensorProto
    names = ("input_ids", "attention_mask", "token_type_ids")
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["found"]),
        helper.make_node("Sub", ["attention_mask", "token_type_ids"], ["ones"]),
        helper.make_node("Cast", ["ones"], ["real"], to=kinds.FLOAT),
        helper.make_node("Unsqueeze", ["real", "last"], ["factors"]),
        helper.make_node("Mul", ["found", "factors"], ["last_hidden_state"]),
    ]
    constants = [
        onnx.numpy_helper.from_array(np.asarray(table, np.float32), "table"),
        onnx.numpy_helper.from_array(np.array([2]), "last"),
    ]
    inputs = [helper.make_tensor_value_info(name, kinds.INT64, [1, "n"]) for name in names]
    output = helper.make_tensor_value_info("last_hidden_state", kinds.FLOAT, [1, "n", len(table[0])])
    graph = helper.make_graph(nodes, "lookup", inputs, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
    return path


def write_json(path: Path, content: object) -> None:
    """Write a JSON file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")
