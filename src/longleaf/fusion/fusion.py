"""Names of tags and trees, joined: what a tagger keeps, and what it makes of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from longleaf.fusion.evidence import LEAST_PRECISION, Evidence, NameStatistics, evidence_of, with_near
from longleaf.fusion.near import Codes, NearNames
from longleaf.fusion.weights import OF_MATCH, OF_NEAR, OF_TREE, FusionWeights
from longleaf.io._schema import check_arrays, check_range
from longleaf.search.score_map import Overrides, ScoreMap, check_curve
from longleaf.text.fields import Text, field_texts
from longleaf.text.phrases import Matches, PhraseIndex

Ints = npt.NDArray[np.int64]
BATCH = 4096
MOST_WEIGHT = 1e6
NEAR = "near/"
CURVES = ("evidence", "result")
NUMBERS = ("tree", "match", "refined", "absent", "most", *CURVES)
ARRAYS = {"found": "int64", "right": "int64", **dict.fromkeys(NUMBERS, "float64")}


@dataclass(frozen=True, eq=False)
class Fusion:
    """The index of names, how reliable each is, the weights of the two regressions, and what names mean."""

    index: PhraseIndex
    statistics: NameStatistics
    weights: FusionWeights
    near: NearNames | None = None

    @classmethod
    def of(
        cls,
        index: PhraseIndex,
        statistics: NameStatistics,
        weights: FusionWeights,
        label_counts: Ints,
        near: NearNames | None = None,
    ) -> Self:
        """Join the parts; names that are too seldom right are dropped from the index."""
        kept = statistics.precision(index, label_counts) >= LEAST_PRECISION
        return cls(index, statistics, weights, near).keep(kept)

    def keep(self, entries: npt.NDArray[np.bool_]) -> Self:
        """Return the fusion with some of the entries of the index."""
        phrases = np.diff(np.append(0, np.cumsum(entries))[self.index.entry_ptr]) > 0
        statistics = NameStatistics(self.statistics.found[phrases], self.statistics.right[entries])
        return replace(self, index=self.index.keep(entries), statistics=statistics)

    def without(self, labels: Ints) -> Self:
        """Return the fusion without the names of some labels."""
        near = None if self.near is None else self.near.without(labels)
        return replace(self.keep(~np.isin(self.index.entry_labels, labels)), near=near)

    def score_map(self, label_counts: Ints) -> ScoreMap:
        """Return what becomes of the trees' probability of each label without a match."""
        weights = self.weights
        slope, offset = (values.astype(np.float32) for values in weights.of_labels(label_counts))
        refined = float(weights.refined[0])
        return ScoreMap(slope, offset, refined, evidence=weights.evidence, result=weights.result)

    def evidence(self, matches: Matches, label_counts: Ints) -> Evidence:
        """Describe what was found in some records."""
        precision = self.statistics.precision(self.index, label_counts)
        return evidence_of(self.index, matches, self.statistics, precision)

    def overrides(
        self,
        matches: Matches,
        label_counts: Ints,
        has_leaf: npt.NDArray[np.bool_],
        meaning: Codes | None = None,
        n_jobs: int | None = None,
    ) -> Overrides:
        """Return what becomes of the trees' probability of labels with a match, or with a name that is near.

        Parameters
        ----------
        matches : Matches
            What stands in the rows.
        label_counts : int64 array [labels]
        has_leaf : bool array [labels]
            Whether some tree has the label.
        meaning : int8 array [rows, columns], optional
            What the rows mean, if names are known by what they mean.
        n_jobs : int, optional
            Threads.
        """
        evidence = self.evidence(matches, label_counts)
        if self.near is not None and meaning is not None:
            evidence = with_near(evidence, self.near, meaning, n_jobs)
        slope, offset = self.weights.of_matches(label_counts[evidence.labels], evidence.features)
        absent = ~has_leaf[evidence.labels]
        offset[absent] = self.weights.of_absent(slope[absent], offset[absent])
        slope[absent] = 0.0
        return Overrides(
            evidence.indptr,
            evidence.labels.astype(np.int32),
            slope.astype(np.float32),
            offset.astype(np.float32),
            float(self.weights.refined[1]),
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return plain arrays."""
        numbers = {name: np.ravel(getattr(self.weights, name)) for name in NUMBERS}
        counts = {one.name: getattr(self.statistics, one.name) for one in fields(self.statistics)}
        near = {} if self.near is None else {f"near/{n}": a for n, a in self.near.state().items()}
        return {**counts, **numbers, **{f"index/{n}": a for n, a in self.index.state().items()}, **near}

    @classmethod
    def from_state(cls, arrays: Mapping[str, npt.NDArray[Any]], n_labels: int) -> Self:
        """Return what `state` was called on; raise ValueError if the arrays do not fit together."""
        check_arrays(arrays, ARRAYS)
        prefix = "index/"
        index = PhraseIndex.from_state(
            {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        )
        if len(index.entry_labels) and int(index.entry_labels.max()) >= n_labels:
            raise ValueError(f"entry_labels must be below {n_labels}.")
        codes = {name.removeprefix(NEAR): array for name, array in arrays.items() if name.startswith(NEAR)}
        near = NearNames.from_state(codes, n_labels) if codes else None
        sizes = {
            "found": len(index),
            "right": len(index.entry_labels),
            "tree": OF_TREE,
            "match": OF_MATCH if near is None else OF_MATCH + OF_NEAR,
            "refined": 2,
            "absent": 2,
            "most": 1,
        }
        for name, size in sizes.items():
            if arrays[name].size != size:
                raise ValueError(f"{name} must have {size} entries; got {arrays[name].size}.")
            low = -MOST_WEIGHT if ARRAYS[name] == "float64" else 0
            check_range(arrays[name], low, MOST_WEIGHT if low else 2**62, name)
        statistics = NameStatistics(arrays["found"], arrays["right"])
        evidence = check_curve(arrays["evidence"], "evidence", may_be_level=True)
        result, most = check_curve(arrays["result"], "result"), float(arrays["most"][0])
        numbers = arrays["tree"], arrays["match"], arrays["refined"], arrays["absent"]
        return cls(index, statistics, FusionWeights(*numbers, evidence, result, most), near)


class NameFinder:
    """Finds names in the records that pass through it, in batches; their texts are not kept.

    Parameters
    ----------
    index : PhraseIndex
    fields : sequence of str
        The fields of records; none for plain texts.
    """

    def __init__(self, index: PhraseIndex, fields: Sequence[str]) -> None:
        self.index, self._fields = index, fields
        self._found: list[Matches] = []

    def through(self, texts: Iterable[Text]) -> Iterator[Text]:
        """Yield the texts, which are searched as they pass."""
        batch: list[list[str]] = []
        for row, text in enumerate(texts):
            batch.append(field_texts(text, self._fields, row))
            if len(batch) == BATCH:
                self._found.append(self.index.find(batch))
                batch = []
            yield text
        if batch:
            self._found.append(self.index.find(batch))

    def matches(self) -> Matches:
        """Return what was found in all texts so far."""
        if len(self._found) == 1:
            return self._found[0]
        found = self._found or [self.index.find([])]
        ends = np.cumsum([0, *(one.indptr[-1] for one in found)])
        indptr = np.concatenate([[0], *(one.indptr[1:] + end for one, end in zip(found, ends, strict=False))])
        rest = [field.name for field in fields(Matches) if field.name != "indptr"]
        joined = {name: np.concatenate([getattr(one, name) for one in found]) for name in rest}
        return Matches(indptr.astype(np.int64), **joined)
