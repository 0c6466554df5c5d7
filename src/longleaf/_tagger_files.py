"""A tagger as plain JSON and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation import ModelError
from longleaf.br import BR
from longleaf.estimator import LabelEstimator
from longleaf.io.storage import Folder, pack_strings, unpack_strings
from longleaf.plt import PLT
from longleaf.text.tags import Objects, as_objects
from longleaf.text.vectorizer import TextVectorizer

ESTIMATORS: dict[str, type[LabelEstimator]] = {estimator.kind: estimator for estimator in (PLT, BR)}

Arrays = dict[str, npt.NDArray[Any]]


def to_arrays(
    estimator: LabelEstimator,
    vectorizer: Any,
    tags: Objects,
    names: Mapping[str, str] | None,
    fields: Mapping[str, Any],
) -> tuple[dict[str, Any], Arrays]:
    """Give everything that a fitted tagger is, the parts nested under their names."""
    if type(vectorizer) is not TextVectorizer:
        raise ModelError(
            f"vectorizer must be longleaf's TextVectorizer to be saved; got {type(vectorizer).__name__}, "
            "which only pickle could hold: save tagger.estimator_ and keep the vectorizer yourself."
        )
    if type(estimator) is not ESTIMATORS.get(estimator.kind):
        raise ModelError(f"estimator must be a PLT or BR to be saved; got {type(estimator).__name__}.")
    model_meta, model_arrays = estimator._to_arrays()
    vectorizer_meta, vectorizer_arrays = vectorizer.state()
    arrays: Arrays = {f"estimator/{name}": array for name, array in model_arrays.items()}
    arrays |= {f"vectorizer/{name}": array for name, array in vectorizer_arrays.items()}
    arrays |= _packed("tags", list(tags))
    if names is not None:
        arrays |= _packed("names/tags", list(names)) | _packed("names/names", list(names.values()))
    meta = {
        "estimator": {"kind": estimator.kind, "meta": model_meta},
        "vectorizer": vectorizer_meta,
        "fields": dict(fields),
    }
    return meta, arrays


def from_folder(folder: Folder) -> dict[str, Any]:
    """Give the attributes of the tagger that `to_arrays` turned into arrays."""
    inner = folder.meta["estimator"]
    if inner["kind"] not in ESTIMATORS:
        raise ModelError(
            f"a tagger's estimator must be one of {', '.join(ESTIMATORS)}; got {inner['kind']!r}."
        )
    part = Folder(inner["kind"], inner["meta"], folder.part("estimator"))
    estimator = ESTIMATORS[inner["kind"]]._from_folder(part)
    vectorizer = TextVectorizer.from_state(folder.meta["vectorizer"], folder.part("vectorizer"))
    tags = _unpacked(folder, "tags")
    if len(tags) != estimator.n_labels_ or vectorizer.idf_.size != estimator.n_features_in_:
        raise ModelError(
            f"its estimator must have {len(tags)} labels and {vectorizer.idf_.size} features, as tags and "
            f"vectorizer have; it has {estimator.n_labels_} and {estimator.n_features_in_}."
        )
    names = None
    if "names/tags/bytes" in folder.arrays:
        names = dict(zip(_unpacked(folder, "names/tags"), _unpacked(folder, "names/names"), strict=True))
    return {
        "estimator_": estimator,
        "vectorizer_": vectorizer,
        "classes_": as_objects(tags),
        "fields_": folder.meta["fields"],
        "names": names,
    }


def _packed(name: str, strings: list[str]) -> Arrays:
    data, offsets = pack_strings(strings)
    return {f"{name}/bytes": data, f"{name}/offsets": offsets}


def _unpacked(folder: Folder, name: str) -> list[str]:
    return unpack_strings(np.asarray(folder.arrays[f"{name}/bytes"]), folder.arrays[f"{name}/offsets"])
