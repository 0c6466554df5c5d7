"""Types of the native kernels."""

from typing import TypeAlias

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
