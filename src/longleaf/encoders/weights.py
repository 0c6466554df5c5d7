"""The weights of a BERT-like transformer, read from safetensors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation import ModelError
from longleaf.encoders.extras import needed
from longleaf.encoders.folder import CONFIG, WEIGHTS, ModelFolder

Array = npt.NDArray[np.float32]

AFTER_PADDING = ("roberta", "xlm-roberta", "camembert")
MODEL_TYPES = ("bert", *AFTER_PADDING)
"""Architectures that are converted; those after "bert" count positions from the padding token's number."""
ACTIVATIONS = {
    "gelu": "Gelu",
    "gelu_new": "FastGelu",
    "gelu_fast": "FastGelu",
    "gelu_pytorch_tanh": "FastGelu",
    "relu": "Relu",
}
"""Names of activations in config.json, and the operators that compute them."""


@dataclass(frozen=True)
class Linear:
    """A linear map: weight [inputs, outputs] and bias [outputs]."""

    weight: Array
    bias: Array


@dataclass(frozen=True)
class Norm:
    """A layer normalisation: gain and bias, one number per dimension each."""

    gain: Array
    bias: Array


@dataclass(frozen=True)
class Layer:
    """A layer of a transformer.

    Attributes
    ----------
    attended : Linear
        Query, key and value side by side.
    joined : Linear
        What joins the heads.
    wide, narrow : Linear
        The two maps of the feed-forward network.
    middle, last : Norm
        What follows the attention, and what follows the feed-forward network.
    """

    attended: Linear
    joined: Linear
    middle: Norm
    wide: Linear
    narrow: Linear
    last: Norm


class BertWeights:
    """The weights of a folder; each is read when it is asked for.

    Parameters
    ----------
    folder : ModelFolder
        Its model type must be one of `MODEL_TYPES`.
    """

    def __init__(self, folder: ModelFolder) -> None:
        self.path = folder.path / WEIGHTS
        self._config_path = folder.path / CONFIG
        self._config = folder.config
        self._file = _open(self.path)
        self._names = set(self._file.keys())
        ending = "embeddings.word_embeddings.weight"
        found = sorted((name for name in self._names if name.endswith(ending)), key=len)
        if not found:
            raise ModelError(f"{self.path} must have a tensor {ending}, as a transformer has; it has none.")
        self._prefix = found[0].removesuffix(ending)
        self.n_layers = self._number("num_hidden_layers")
        self.n_heads = self._number("num_attention_heads")
        self.dimensions = self._number("hidden_size")
        self.epsilon = float(self._config.get("layer_norm_eps", 1e-12))
        self.activation = self._activation()
        kind = self._config.get("position_embedding_type") or "absolute"
        if kind != "absolute":
            raise ModelError(f"{self._config_path} must have absolute positions; got {kind!r}.")
        if self.dimensions % self.n_heads:
            raise ModelError(
                f"{self._config_path}: hidden_size must be a multiple of num_attention_heads; "
                f"got {self.dimensions} and {self.n_heads}."
            )

    @property
    def words(self) -> Array:
        """Embeddings of tokens [n_tokens, dimensions]."""
        return self._tensor("embeddings.word_embeddings.weight", None, self.dimensions)

    @property
    def positions(self) -> Array:
        """Embeddings of positions [n_positions, dimensions], with that of the only token type added."""
        table = self._tensor("embeddings.position_embeddings.weight", None, self.dimensions)
        kind = self._tensor("embeddings.token_type_embeddings.weight", None, self.dimensions)
        shifted: Array = table[self._first_position :] + kind[0]
        return shifted

    @property
    def n_positions(self) -> int:
        """The longest text in tokens."""
        stored = self._file.get_slice(f"{self._prefix}embeddings.position_embeddings.weight").get_shape()[0]
        return int(stored) - self._first_position

    @property
    def norm(self) -> Norm:
        """What follows the embeddings."""
        return self._norm("embeddings.LayerNorm")

    def layer(self, number: int) -> Layer:
        """Return the weights of a layer."""
        d, start = self.dimensions, f"encoder.layer.{number}."
        inner = self._number("intermediate_size")
        attention = [self._linear(f"{start}attention.self.{one}", d, d) for one in ("query", "key", "value")]
        return Layer(
            attended=Linear(
                np.concatenate([one.weight for one in attention], axis=1),
                np.concatenate([one.bias for one in attention]),
            ),
            joined=self._linear(f"{start}attention.output.dense", d, d),
            middle=self._norm(f"{start}attention.output.LayerNorm"),
            wide=self._linear(f"{start}intermediate.dense", d, inner),
            narrow=self._linear(f"{start}output.dense", inner, d),
            last=self._norm(f"{start}output.LayerNorm"),
        )

    @property
    def _first_position(self) -> int:
        """The position of the first token: some architectures count from the padding token's number."""
        if self._config.get("model_type") not in AFTER_PADDING:
            return 0
        return int(self._config.get("pad_token_id", 1)) + 1

    def _activation(self) -> str:
        name = self._config.get("hidden_act", "gelu")
        if name not in ACTIVATIONS:
            raise ModelError(
                f"{self._config_path}: hidden_act must be one of {', '.join(ACTIVATIONS)}; got {name!r}."
            )
        return ACTIVATIONS[name]

    def _number(self, name: str) -> int:
        value = self._config.get(name)
        if not isinstance(value, int) or value < 1:
            raise ModelError(f"{self._config_path} must have a whole number {name}; got {value!r}.")
        return value

    def _linear(self, name: str, inputs: int, outputs: int) -> Linear:
        weight = self._tensor(f"{name}.weight", outputs, inputs).T
        return Linear(weight, self._tensor(f"{name}.bias", outputs))

    def _norm(self, name: str) -> Norm:
        old = f"{self._prefix}{name}.gamma" in self._names  # as the first releases of BERT call it
        gain, bias = ("gamma", "beta") if old else ("weight", "bias")
        return Norm(
            self._tensor(f"{name}.{gain}", self.dimensions), self._tensor(f"{name}.{bias}", self.dimensions)
        )

    def _tensor(self, name: str, *shape: int | None) -> Array:
        """Return a tensor; reject one that is missing, or whose shape is not as config.json says."""
        full = self._prefix + name
        if full not in self._names:
            raise ModelError(f"{self.path} must have a tensor {full}, as its config.json says; it has none.")
        found = np.asarray(self._file.get_tensor(full)).astype(np.float32)
        fits = found.ndim == len(shape) and all(
            want in (None, got) for want, got in zip(shape, found.shape, strict=True)
        )
        if not fits:
            wanted = " x ".join("any" if size is None else str(size) for size in shape)
            got = " x ".join(map(str, found.shape))
            raise ModelError(f"{self.path}: {full} must be {wanted}, as in config.json; got {got}.")
        if not np.isfinite(found).all():
            raise ModelError(f"{self.path}: {full} must be finite; it has NaN or infinity.")
        return found


def _open(path: Path) -> Any:
    safetensors = needed("safetensors", "An encoder")
    try:
        return safetensors.safe_open(path, "numpy")
    except Exception as error:  # the library's own error is no OSError
        raise ModelError(
            f"{path} cannot be read as safetensors: {' '.join(str(error).split())[:200]}."
        ) from None
