"""Small models for the tests of the model folder."""

import json

import numpy as np

from longleaf.io import _manifest, storage

META = {"C": 16.0, "labels": 3, "names": ["Ärger", "日本"], "deep": {"none": None, "yes": True}}


def small_arrays():
    return {
        "counts": np.arange(5, dtype=np.int32),
        "tree0/first_child": np.array([1, -1, -1], np.int64),
        "tree0/deep/weights": np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4),
        "empty": np.empty((0, 3), np.float32),
    }


def edit_manifest(model, change):
    """Change model.json as a careful forger would: with a matching checksum."""
    body = json.loads((model / "model.json").read_text())
    del body["crc32"]
    change(body)
    (model / "model.json").write_bytes(_manifest._seal(body))


def replace_array(model, name, array):
    """Put another array in a model, as a forger who knows the format would: the folder stays whole."""
    folder = storage.load_folder(model)
    arrays = {key: np.array(value) for key, value in folder.arrays.items()} | {name: array}
    storage.save_folder(model, folder.kind, folder.meta, arrays, force=True)
