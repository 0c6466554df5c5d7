"""The forward pass of BERT for one text, one step after the other, in float64.

Source: Devlin et al. (2019), https://arxiv.org/abs/1810.04805; Vaswani et al. (2017) for the attention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf, sqrt
from typing import Any

import numpy as np


def exact(x: Any, weight: Any) -> Any:
    """Multiply as the weights are."""
    return x @ weight.T


def as_int8(x: Any, weight: Any) -> Any:
    """Multiply integers: 7 bits and a sign per weight, 8 bits per input, a scale per output and per token."""
    scales = np.abs(weight).max(axis=1) / np.float32(63)
    integers = np.rint(weight / scales[:, None]).astype(int)
    largest = np.abs(x).max(axis=1, keepdims=True)
    scaled = (x / largest).astype(np.float32)
    low, high = min(0, scaled.min()), max(0, scaled.max())
    step = (high - low) / 255
    zero = np.rint(-low / step)
    inputs = np.clip(np.rint(scaled / step) + zero, 0, 255) - zero
    return (inputs.astype(int) @ integers.T) * step * scales * largest


def embedding(
    tensors: Mapping[str, Any],
    config: Mapping[str, Any],
    ids: list[int],
    pooling: str = "mean",
    product: Callable[[Any, Any], Any] = exact,
) -> Any:
    """Return the embedding of the tokens of one text, of unit length."""
    model = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    first = 0 if config["model_type"] == "bert" else config["pad_token_id"] + 1

    def linear(x: Any, name: str) -> Any:
        return product(x, model[f"{name}.weight"]) + model[f"{name}.bias"]

    def normalized(x: Any, name: str) -> Any:
        centred = x - x.mean(axis=1, keepdims=True)
        spread = np.sqrt(x.var(axis=1, keepdims=True) + config["layer_norm_eps"])
        return centred / spread * model[f"{name}.LayerNorm.weight"] + model[f"{name}.LayerNorm.bias"]

    x = np.array(
        [
            model["embeddings.word_embeddings.weight"][token]
            + model["embeddings.position_embeddings.weight"][first + place]
            + model["embeddings.token_type_embeddings.weight"][0]
            for place, token in enumerate(ids)
        ]
    )
    x = normalized(x, "embeddings")
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        query, key, value = (linear(x, f"{layer}.attention.self.{one}") for one in ("query", "key", "value"))
        heads = [
            attention(query[:, one], key[:, one], value[:, one])
            for one in np.split(np.arange(x.shape[1]), config["num_attention_heads"])
        ]
        joined = linear(np.concatenate(heads, axis=1), f"{layer}.attention.output.dense")
        x = normalized(x + joined, f"{layer}.attention.output")
        wide = ACTIVATIONS[config["hidden_act"]](linear(x, f"{layer}.intermediate.dense"))
        x = normalized(x + linear(wide, f"{layer}.output.dense"), f"{layer}.output")
    pooled = x[0] if pooling == "cls" else x.mean(axis=0)
    return pooled / np.sqrt((pooled**2).sum())


def attention(query: Any, key: Any, value: Any) -> Any:
    """Return the mean of values that each token of one head attends to."""
    scores = np.exp(query @ key.T / sqrt(query.shape[1]))
    return scores / scores.sum(axis=1, keepdims=True) @ value


ACTIVATIONS = {
    "gelu": np.vectorize(lambda x: x * (1 + erf(x / sqrt(2))) / 2),
    "gelu_new": lambda x: x / 2 * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0),
}
