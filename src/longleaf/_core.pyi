"""Types of the native kernels."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

ParsedXmlc: TypeAlias = tuple[
    tuple[int, int, int],  # rows, features, labels
    NDArray[np.int64],  # X: indptr
    NDArray[np.int32],  # X: indices
    NDArray[np.float32],  # X: data
    NDArray[np.int64],  # Y: indptr
    NDArray[np.int32],  # Y: indices
]

class XmlcParser:
    """Reads an XMLC file, or a plain sparse one, in pieces cut anywhere; ValueError says line and fault."""

    def __init__(self, labelled: bool) -> None: ...
    def feed(self, text: bytes) -> None: ...
    def take(self) -> ParsedXmlc: ...
    def finish(self) -> ParsedXmlc: ...

def format_xmlc(
    x_indptr: NDArray[np.int64],
    x_indices: NDArray[np.int32],
    x_data: NDArray[np.float32],
    y_indptr: NDArray[np.int64],
    y_indices: NDArray[np.int32],
    begin: int,
    end: int,
) -> bytes: ...

CsrArrays: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]
WeightArrays: TypeAlias = dict[
    str, NDArray[Any]
]  # the arrays of ChunkView in native/weights/weights.h, by their names

LANES: int  # classifiers that are trained together
CHUNK_WIDTH: int  # siblings that one chunk of weights holds at most
PAGE_FEATURES: int  # features of a page, whose bitmap is an element of ``page_words``
WORD_FEATURES: int  # features of a word; a page has as many words
WORD_NUMBERS: int  # elements of ``words`` per word: its bitmap's two halves, and where its bytes begin
DENSE_WORD: int  # added to where the bytes of a dense word begin
SPARE_BYTES: int  # what follows the bytes of the last chunk
CHUNK_BYTES: int  # of a chunk in ``node``, ``word``, ``byte`` and ``weights``
LEVEL_BYTES: int  # of a chunk in ``low`` and ``step``, if weights have 8 bits
PAGE_BYTES: int  # of a page of a chunk in ``page_words`` and ``page_first``
ENTRY_BYTES: int  # of a weight until it is packed: feature, child and value
ROW_BYTES: int  # what the solver keeps of a row besides its features, and without what it keeps per lane
ROW_LANE_BYTES: int  # and per lane: side, dual variable and move

def simd() -> str: ...
def set_scratch(folder: str, smallest: int) -> None: ...  # working arrays of so many bytes go to files there
def check_csr(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    cols: int,
    name: str,
    in_order: bool = False,
) -> None: ...
def row_scales(indptr: NDArray[np.int64], data: NDArray[np.float32]) -> NDArray[np.float32]: ...
def label_centroids(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    features: int,
    row_scale: NDArray[np.float32],
    label_indptr: NDArray[np.int64],
    label_rows: NDArray[np.int32],
    threads: int,
) -> CsrArrays: ...
def cluster_labels(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    features: int,
    *,
    arity: int,
    max_leaf: int,
    max_iterations: int,
    tolerance: float,
    balanced: bool,
    seed: int,
    threads: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]: ...
def ranked_rows(
    label_indptr: NDArray[np.int64],
    label_indices: NDArray[np.int32],
    labels: int,
    ranked: NDArray[np.int32],
    first_child: NDArray[np.int32],
    label: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def node_rows(
    label_indptr: NDArray[np.int64],
    label_indices: NDArray[np.int32],
    labels: int,
    first_child: NDArray[np.int32],
    label: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def training_units(
    node_indptr: NDArray[np.int64], first_child: NDArray[np.int32], label: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]: ...
def train_nodes(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    features: int,
    row_scale: NDArray[np.float32],
    node_indptr: NDArray[np.int64],
    node_rows: NDArray[np.int32],
    positive_factor: NDArray[np.float32],
    first_child: NDArray[np.int32],
    label: NDArray[np.int32],
    c_positive: NDArray[np.float32],
    c_negative: NDArray[np.float32],
    row_weight: NDArray[np.float32],
    *,
    first_node: int,
    last_node: int,
    initial: Forest | None = None,
    initial_tree: int = 0,
    past: NDArray[np.float32],
    loss: int,
    l1: bool,
    tolerance: float,
    max_epochs: int,
    threshold: float,
    bias: float,
    margin: float,
    weight_bits: int,
    seed: int,
    threads: int,
    progress: Callable[[float], None] | None = None,
) -> tuple[WeightArrays, dict[str, int]]: ...
def separate(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    features: int,
    row_scale: NDArray[np.float32],
    sides: NDArray[np.uint8],
    *,
    cost_off: float,
    cost_on: float,
    bias: float,
    tolerance: float,
    max_epochs: int,
    seed: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32], float]: ...
def ndcg_sides(
    label_indptr: NDArray[np.int64],
    label_indices: NDArray[np.int32],
    gain: NDArray[np.float64],
    sides: NDArray[np.uint8],
) -> NDArray[np.uint8]: ...
def grow_ndcg_trees(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    features: int,
    row_scale: NDArray[np.float32],
    label_indptr: NDArray[np.int64],
    label_indices: NDArray[np.int32],
    gain: NDArray[np.float64],
    seeds: NDArray[np.uint64],
    *,
    max_leaf: int,
    max_labels: int,
    C: float,
    bias: float,
    tolerance: float,
    max_epochs: int,
    threads: int,
    progress: Callable[[float], None] | None = None,
) -> list[dict[str, NDArray[Any]]]: ...  # the arrays of NdcgTreeArrays in native/baselines, by name

class NdcgForest:
    """Trees that split by nDCG, checked and ready to search; keeps the arrays alive."""

    def __init__(
        self,
        trees: list[dict[str, NDArray[Any]]],
        mean_indptr: NDArray[np.int64],
        mean_indices: NDArray[np.int32],
        mean_data: NDArray[np.float32],
        features: int,
    ) -> None: ...
    def top_k(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        row_scale: NDArray[np.float32],
        unit_scale: NDArray[np.float32],
        *,
        k: int,
        alpha: float,
        gamma: float,
        threads: int,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]: ...

def assemble_chunks(
    first_child: NDArray[np.int32],
    label: NDArray[np.int32],
    features: list[NDArray[np.int32]],
    children: list[NDArray[np.uint8]],
    values: list[NDArray[np.float32]],
    bias: NDArray[np.float32],
    n_features: int,
    weight_bits: int,
) -> WeightArrays: ...

class Utility:
    """What labels are worth, with the bounds for the trees of a model."""

    def __init__(
        self,
        forest: Forest,
        a: NDArray[np.float32],
        b: NDArray[np.float32],
        *,
        group: NDArray[np.int32] | None = None,
        quota: NDArray[np.int32] | None = None,
        slope: NDArray[np.float32] | None = None,
        offset: NDArray[np.float32] | None = None,
        evidence: NDArray[np.float64] | None = None,
        result: NDArray[np.float64] | None = None,
    ) -> None: ...
    def with_lines(
        self,
        forest: Forest,
        labels: NDArray[np.int32],
        a: NDArray[np.float32],
        b: NDArray[np.float32],
        *,
        slope: NDArray[np.float32] | None = None,
        offset: NDArray[np.float32] | None = None,
    ) -> Utility: ...

class Forest:
    """The trees of a model, checked and ready to search; keeps the arrays alive."""

    def __init__(
        self,
        first_child: list[NDArray[np.int32]],
        label: list[NDArray[np.int32]],
        weights: list[WeightArrays],
        features: int,
        labels: int,
        link: int,
        refined: bool = False,
    ) -> None: ...
    def regroup_chunks(
        self,
        tree: int,
        first_child: NDArray[np.int32],
        label: NDArray[np.int32],
        origin: NDArray[np.int64],
        bias: NDArray[np.float32],
        threads: int,
    ) -> WeightArrays: ...
    def check(self, threads: int) -> None: ...
    def chunk_entries(
        self, tree: int, chunk: int
    ) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.float32]]: ...
    def node_weights(self, tree: int, node: int, features: NDArray[np.int32]) -> NDArray[np.float32]: ...
    def log_bounds(self, log_gain: NDArray[np.float32]) -> NDArray[np.float32]: ...
    def score_bounds(
        self,
        log_gain: NDArray[np.float32],
        slope: NDArray[np.float32],
        offset: NDArray[np.float32],
        evidence: NDArray[np.float64] | None = None,
        result: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float32]: ...
    def nominees(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        row_scale: NDArray[np.float32],
        *,
        nominees: int,
        threads: int,
        override_indptr: NDArray[np.int64] | None = None,
        override_labels: NDArray[np.int32] | None = None,
        override_slope: NDArray[np.float32] | None = None,
        override_offset: NDArray[np.float32] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]: ...
    def top_k(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        row_scale: NDArray[np.float32],
        *,
        k: int,
        beam: int,
        union_rule: bool,
        log_gain: NDArray[np.float32],
        log_bounds: NDArray[np.float32],
        log_threshold: NDArray[np.float32],
        log_floor: float,
        threads: int,
        progress: Callable[[float], None] | None = None,
        map_slope: NDArray[np.float32] | None = None,
        map_offset: NDArray[np.float32] | None = None,
        map_refined: float = 0.0,
        map_nominees: int = 100,
        map_evidence: NDArray[np.float64] | None = None,
        map_result: NDArray[np.float64] | None = None,
        map_bounds: NDArray[np.float32] | None = None,
        override_indptr: NDArray[np.int64] | None = None,
        override_labels: NDArray[np.int32] | None = None,
        override_slope: NDArray[np.float32] | None = None,
        override_offset: NDArray[np.float32] | None = None,
        override_refined: float = 0.0,
        utility: Utility | None = None,
        resume: bool = False,
        epsilon: float = 0.0,
        max_evaluations: int = ...,
        seconds: float | None = None,
    ) -> tuple[
        NDArray[np.int32], NDArray[np.float32], NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]
    ]: ...
    def probabilities(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        row_scale: NDArray[np.float32],
        rows: NDArray[np.int64],
        labels: NDArray[np.int32],
        threads: int,
        *,
        map_slope: NDArray[np.float32] | None = None,
        map_offset: NDArray[np.float32] | None = None,
        map_refined: float = 0.0,
        map_nominees: int = 100,
        map_evidence: NDArray[np.float64] | None = None,
        map_result: NDArray[np.float64] | None = None,
        override_indptr: NDArray[np.int64] | None = None,
        override_labels: NDArray[np.int32] | None = None,
        override_slope: NDArray[np.float32] | None = None,
        override_offset: NDArray[np.float32] | None = None,
        override_refined: float = 0.0,
    ) -> NDArray[np.float32]: ...

class Vocabulary:
    def __init__(self, bytes: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None: ...
    def __len__(self) -> int: ...

def distinct_words(texts: list[str | bytes], characters: NDArray[np.uint32]) -> list[bytes]: ...

class StemTable:
    def __init__(
        self, words: list[bytes], stems: list[list[bytes]], languages: NDArray[np.uint32]
    ) -> None: ...
    def __len__(self) -> int: ...

class TextCounter:
    def __init__(
        self,
        characters: NDArray[np.uint32],
        analyzer: int,
        ngrams: tuple[int, int],
        extra_ngrams: tuple[int, int],
        hashing: int,
        fields: int,
        fixed: Vocabulary | None,
        n_threads: int,
        keep_rows: bool,
    ) -> None: ...
    def add(self, texts: list[str | bytes], stems: StemTable | None = None) -> None: ...
    @property
    def n_rows(self) -> int: ...
    def merge(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def extra(self) -> NDArray[np.bool_]: ...
    def sort(self, ids: NDArray[np.uint32]) -> NDArray[np.uint32]: ...
    def terms(self, ids: NDArray[np.uint32]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
    def rows(
        self,
        columns: NDArray[np.int32],
        weights: NDArray[np.float32],
        fields: NDArray[np.float32],
        sublinear: bool,
        norm: int,
    ) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]: ...

def phrase_texts(
    names: list[str | bytes], characters: NDArray[np.uint32]
) -> tuple[
    NDArray[np.uint8], NDArray[np.int64], NDArray[np.int32]
]: ...  # packed phrases; of each name, or -1
def nearest_labels(
    codes: NDArray[np.int8],
    labels: NDArray[np.int32],
    rows: NDArray[np.int8],
    columns: int,
    most: int,
    n_threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]: ...  # indptr, labels, products

class PhraseIndex:
    def __init__(self, bytes: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None: ...
    def __len__(self) -> int: ...
    def find(
        self, texts: list[str | bytes], n_fields: int, characters: NDArray[np.uint32], n_threads: int
    ) -> tuple[
        NDArray[np.int64],  # indptr
        NDArray[np.int32],  # phrases
        NDArray[np.int32],  # in_first
        NDArray[np.int32],  # counts
        NDArray[np.int32],  # positions
        NDArray[np.int32],  # n_words
    ]: ...
