import numpy as np
import numpy.typing as npt

class Vocabulary:
    def __init__(self, bytes: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> None: ...
    def __len__(self) -> int: ...

class TextCounter:
    def __init__(
        self,
        characters: npt.NDArray[np.uint32],
        analyzer: int,
        ngrams: tuple[int, int],
        extra_ngrams: tuple[int, int],
        hashing: int,
        fixed: Vocabulary | None,
        n_threads: int,
        keep_rows: bool,
    ) -> None: ...
    def add(self, texts: list[str | bytes]) -> None: ...
    @property
    def n_rows(self) -> int: ...
    def merge(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def sort(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]: ...
    def terms(self, ids: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]: ...
    def rows(
        self,
        columns: npt.NDArray[np.int32],
        weights: npt.NDArray[np.float32],
        sublinear: bool,
        norm: int,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], npt.NDArray[np.int64]]: ...
