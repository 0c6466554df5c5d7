"""Converting a tagger to plain JSON and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from longleaf._validation import ModelError, check_choice
from longleaf.br import BR
from longleaf.encoders.components import Components
from longleaf.estimator import LabelEstimator
from longleaf.explain.records import RecordIndex
from longleaf.fusion.fusion import Fusion
from longleaf.io._schema import (
    ListOf,
    Object,
    Optional,
    anything,
    check_saved,
    check_some_string,
    check_string,
)
from longleaf.io._strings import Arrays, packed, unpacked
from longleaf.io.storage import Folder
from longleaf.io.tag_names import TagNames
from longleaf.plt import PLT
from longleaf.text.meaning import Meaning
from longleaf.text.tags import Objects, as_objects
from longleaf.text.vectorizer import TextVectorizer

ESTIMATORS: dict[str, type[LabelEstimator]] = {estimator.kind: estimator for estimator in (PLT, BR)}


def to_arrays(
    estimator: LabelEstimator,
    vectorizer: Any,
    tags: Objects,
    names: Mapping[str, str] | None,
    fields: Mapping[str, Any],
    records: RecordIndex | None,
    fusion: Fusion | None,
    meaning: Meaning | None,
) -> tuple[dict[str, Any], Arrays]:
    """Return the state of a fitted tagger, with its components nested under their names."""
    if type(vectorizer) is not TextVectorizer:
        raise ModelError(
            f"vectorizer must be longleaf's TextVectorizer to be saved; got {type(vectorizer).__name__}, "
            "which only pickle can store: save tagger.estimator_ and store the vectorizer separately."
        )
    if type(estimator) is not ESTIMATORS.get(estimator.kind):
        raise ModelError(f"estimator must be a PLT or BR to be saved; got {type(estimator).__name__}.")
    model_meta, model_arrays = estimator._to_arrays()
    vectorizer_meta, vectorizer_arrays = vectorizer.state()
    arrays: Arrays = {f"estimator/{name}": array for name, array in model_arrays.items()}
    arrays |= {f"vectorizer/{name}": array for name, array in vectorizer_arrays.items()}
    arrays |= packed("tags", list(tags))
    if records is not None:
        arrays |= {f"records/{name}": array for name, array in records.state().items()}
    if fusion is not None:
        arrays |= {f"fusion/{name}": array for name, array in fusion.state().items()}
    if meaning is not None:
        arrays |= {f"encoder/{name}": array for name, array in meaning.components.state().items()}
    if names is not None:
        arrays |= {f"names/{name}": array for name, array in TagNames.of(names).to_arrays().items()}
    meta = {
        "estimator": {"kind": estimator.kind, "meta": model_meta},
        "vectorizer": vectorizer_meta,
        "fields": dict(fields),
    }
    if meaning is not None:
        meta["encoder"] = meaning.meta()
    return check_saved(meta, SCHEMA), arrays


SCHEMA = Object(
    {
        "estimator": Object({"kind": partial(check_choice, choices=ESTIMATORS), "meta": Object()}),
        "vectorizer": Object(
            optional=dict.fromkeys(TextVectorizer._get_param_names(), anything), closed=True
        ),
        "fields": Object(
            optional={
                "text": Optional(ListOf(check_string)),
                "tags": Optional(check_string),
                "id": Optional(check_string),
                "separator": Optional(check_some_string),
                "embedding": check_some_string,
            },
            closed=True,
        ),
    },
    optional={
        "encoder": Object(
            {"name": check_string, "fingerprint": check_string, "source": Optional(check_string)}, closed=True
        )
    },
)
"""The schema of a tagger in ``model.json``; its estimator and vectorizer check their own fields."""


def from_folder(folder: Folder) -> dict[str, Any]:
    """Return the attributes of a tagger from the result of `to_arrays`."""
    SCHEMA(folder.meta, folder.meta_name)
    inner = folder.meta["estimator"]
    component = Folder(inner["kind"], inner["meta"], folder.part("estimator"), "estimator/")
    estimator = ESTIMATORS[inner["kind"]]._from_folder(component)
    try:
        vectorizer = TextVectorizer.from_state(folder.meta["vectorizer"], folder.part("vectorizer"))
    except (TypeError, ValueError) as error:
        raise ModelError(f"its vectorizer is damaged: {error}") from None
    tags = unpacked(folder.arrays, "tags")
    meaning = _meaning(folder)
    n_columns = vectorizer.idf_.size + (0 if meaning is None else meaning.n_columns)
    if len(tags) != estimator.n_labels_ or n_columns != estimator.n_features_in_:
        raise ModelError(
            f"its estimator must have {len(tags)} labels and {n_columns} features, as tags and "
            f"vectorizer have; got {estimator.n_labels_} and {estimator.n_features_in_}."
        )
    records = _records(folder, estimator)
    numbers = {tag: number for number, tag in enumerate(tags)}
    if len(numbers) != len(tags):
        raise ModelError("tags must be distinct.")
    return {
        "estimator_": estimator,
        "vectorizer_": vectorizer,
        "classes_": as_objects(tags),
        "_numbers": numbers,  # cached for suggestions
        "fields_": folder.meta["fields"],
        "names": _names(folder),
        "keep_records": records is not None,
        "records_": records,
        "fusion_": _fusion(folder, estimator),
        "meaning_": meaning,
    }


def _meaning(folder: Folder) -> Meaning | None:
    """Return the columns of the encoder, if the model was trained with one; the encoder is loaded later."""
    if "encoder" not in folder.meta:
        return None
    arrays = folder.part("encoder")
    try:
        return Meaning.from_state(folder.meta["encoder"], Components.from_state(arrays))
    except (KeyError, ValueError) as error:
        raise ModelError(f"its encoder is damaged: {error}") from None


def _fusion(folder: Folder, estimator: LabelEstimator) -> Fusion | None:
    """Return what names add to the trees, if the model was trained with names."""
    arrays = folder.part("fusion")
    if not arrays:
        return None
    try:
        return Fusion.from_state(arrays, estimator.n_labels_)
    except ValueError as error:
        raise ModelError(f"its names are damaged: {error}") from None


def _records(folder: Folder, estimator: LabelEstimator) -> RecordIndex | None:
    """Return the training records, if they were kept."""
    arrays = folder.part("records")
    if not arrays:
        return None
    try:
        return RecordIndex.from_state(arrays, estimator.n_features_in_, estimator.n_labels_)
    except ValueError as error:
        raise ModelError(f"its training records are damaged: {error}") from None


def _names(folder: Folder) -> TagNames | None:
    """Return the readable names of tags, if there are any."""
    arrays = folder.part("names")
    return TagNames.from_arrays(arrays, "names/") if arrays else None
