"""A BERT-like transformer as an ONNX graph whose matrices are int8.

Given the weights of a transformer, `transformer` returns a graph from the numbers of a text's tokens to its
embedding. It is the forward pass of Devlin et al. (2019, https://arxiv.org/abs/1810.04805), for one text and
without a mask, since nothing is padded. Three things differ from the usual graph:

- Query, key and value are one product.
- Each product is DynamicQuantizeMatMul, which finds one scale for all its inputs. They are divided by the
  largest absolute value of their token first, and multiplied by it afterwards, so that in effect each token
  has its own scale: one token with a large value does not make all others coarse.
- Embeddings of tokens are int8 with a scale per token.

The operators of ``com.microsoft`` are part of every build of ONNX Runtime.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf.encoders.extras import needed
from longleaf.encoders.folder import CLS
from longleaf.encoders.quantize import per_column, per_row
from longleaf.encoders.weights import BertWeights, Layer, Linear, Norm

VERSION = 1
"""Counts changes of the conversion that change embeddings; models converted before are converted again."""

OPSET, IR_VERSION = 18, 8
CONTRIB = "com.microsoft"
INPUT, OUTPUT = "input_ids", "sentence_embedding"
SMALLEST = np.float32(1e-20)
"""Added to what tokens are divided by, for those that are all zeros."""


def transformer(weights: BertWeights, pooling: str) -> bytes:
    """Return the graph as the content of an ONNX file.

    Parameters
    ----------
    weights : BertWeights
    pooling : str
        "mean" or "cls".
    """
    graph = _Graph()
    tokens = _embedded(graph, weights)
    for number in range(weights.n_layers):
        tokens = _layer(graph, tokens, weights.layer(number), weights)
    _pooled(graph, tokens, pooling)
    return graph.model(weights.dimensions)


def _embedded(graph: _Graph, weights: BertWeights) -> str:
    words, scales = per_row(weights.words)
    chosen = graph.node("Gather", graph.constant(words), INPUT)
    scale = graph.node("Gather", graph.constant(scales), INPUT)
    real = graph.node("Cast", chosen, to=int(graph.onnx.TensorProto.FLOAT))
    of_words = graph.node("Mul", real, scale)
    length = graph.node("Shape", INPUT, start=1)
    zero = graph.constant(np.zeros(1, np.int64))
    of_positions = graph.node("Slice", graph.constant(weights.positions), zero, length, zero)
    return _normalized(graph, of_words, of_positions, weights.norm, weights.epsilon)


def _layer(graph: _Graph, tokens: str, layer: Layer, weights: BertWeights) -> str:
    attended = _product(graph, tokens, layer.attended)
    sizes = graph.constant(np.full(3, weights.dimensions, np.int64))
    inputs = graph.nodes("Split", attended, sizes, outputs=3, axis=-1)
    heads = graph.node("MultiHeadAttention", *inputs, domain=CONTRIB, num_heads=weights.n_heads)
    joined = _product(graph, heads, layer.joined)
    middle = _normalized(graph, joined, tokens, layer.middle, weights.epsilon)
    wide = _product(graph, middle, layer.wide)
    domain = "" if weights.activation == "Relu" else CONTRIB
    active = graph.node(weights.activation, wide, domain=domain)
    narrow = _product(graph, active, layer.narrow)
    return _normalized(graph, narrow, middle, layer.last, weights.epsilon)


def _product(graph: _Graph, tokens: str, linear: Linear) -> str:
    """Multiply by a matrix of int8, with a scale per token and per output."""
    weight, scales = per_column(linear.weight)
    last = graph.constant(np.array([-1]))
    largest = graph.node("ReduceMax", graph.node("Abs", tokens), last, keepdims=1)
    divisor = graph.node("Add", largest, graph.constant(np.array(SMALLEST)))
    scaled = graph.node("Div", tokens, divisor)
    product = graph.node(
        "DynamicQuantizeMatMul", scaled, graph.constant(weight), graph.constant(scales), domain=CONTRIB
    )
    return graph.node("Add", graph.node("Mul", product, divisor), graph.constant(linear.bias))


def _normalized(graph: _Graph, one: str, other: str, norm: Norm, epsilon: float) -> str:
    """Add and normalise; ONNX Runtime's operator for both at once is several times slower on a CPU."""
    gain, bias = graph.constant(norm.gain), graph.constant(norm.bias)
    return graph.node("LayerNormalization", graph.node("Add", one, other), gain, bias, epsilon=epsilon)


def _pooled(graph: _Graph, tokens: str, pooling: str) -> None:
    if pooling == CLS:
        graph.node("Gather", tokens, graph.constant(np.array(0)), axis=1, output=OUTPUT)
    else:
        graph.node("ReduceMean", tokens, graph.constant(np.array([1])), keepdims=0, output=OUTPUT)


class _Graph:
    """Nodes and constants in the order in which they were added; names are numbers."""

    def __init__(self) -> None:
        self.onnx = needed("onnx", "Converting an encoder")
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, value: npt.NDArray[Any]) -> str:
        """Add a constant and return its name."""
        name = f"c{len(self._constants)}"
        self._constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", output: str = "", **attributes: Any) -> str:
        """Add a node with one output and return its name."""
        name = output or f"n{len(self._nodes)}"
        self._add(operator, inputs, [name], domain, attributes)
        return name

    def nodes(self, operator: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs and return their names."""
        names = [f"n{len(self._nodes)}.{number}" for number in range(outputs)]
        self._add(operator, inputs, names, "", attributes)
        return names

    def _add(
        self,
        operator: str,
        inputs: tuple[str, ...],
        outputs: list[str],
        domain: str,
        attributes: dict[str, Any],
    ) -> None:
        made = self.onnx.helper.make_node(operator, list(inputs), outputs, domain=domain, **attributes)
        self._nodes.append(made)

    def model(self, dimensions: int) -> bytes:
        """Return the content of an ONNX file."""
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        ids = helper.make_tensor_value_info(INPUT, kinds.INT64, [1, "tokens"])
        vector = helper.make_tensor_value_info(OUTPUT, kinds.FLOAT, [1, dimensions])
        graph = helper.make_graph(self._nodes, "transformer", [ids], [vector], self._constants)
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION)
        return bytes(model.SerializeToString())
