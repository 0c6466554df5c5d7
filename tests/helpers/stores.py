"""Damaged copies of stores, and what becomes of them: run by itself, since damage may end a process.

    python -m tests.helpers.stores STORE… SCRATCH FIRST LAST

tries the mutants FIRST to before LAST, and prints a line for each: its number, what was changed, and how it
ended, ``trained`` or the error.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import longleaf as ll
from longleaf.io import _manifest
from longleaf.io._manifest import MANIFEST, ArrayEntry, Manifest
from tests.helpers.limits import limit_memory

SPARE_BYTES = 3 << 30
NUMBERS = (-1, 0, 1, 2, 10**6, 2**31 - 1, 2**31, 2**32 + 1, 2**62, -(2**31), -(2**63))
VALUES = (-1, 0, 1, 7, 10**6, 2**31, 2**63, 10**30, 1.5, -0.5, True, None, "x", "", [], [3], {}, {"a": 1})
DTYPES = ("<i4", "<i8", "<f4", "<f8", "|u1", "|b1", "<c8", ">i4", "|O", "<i3")


def mutate(folder: Path, seed: int) -> str:
    """Damage one thing in a store, with checksums as they would be had it been written so; say what."""
    draw = random.Random(seed)
    manifest = _manifest.parse((folder / MANIFEST).read_bytes(), str(folder))
    name = draw.choice(sorted(manifest.arrays))
    how = draw.choice((_number, _number, _number, _bytes, _cut, _dtype, _shape, _header, _meta, _meta, _text))
    return how(folder, manifest, name, draw)


def _write(folder: Path, manifest: Manifest, name: str, array: np.ndarray) -> None:
    """Write an array and its entry."""
    entry = ArrayEntry(array.dtype.str, array.shape, 0, "")
    raw = entry.header() + array.tobytes()
    (folder / f"{name}.npy").write_bytes(raw)
    crc = f"{_manifest.checksum(raw):08x}"
    manifest.arrays[name] = ArrayEntry(array.dtype.str, array.shape, len(raw), crc)
    (folder / MANIFEST).write_bytes(_manifest.render(manifest))


def _read(folder: Path, manifest: Manifest, name: str) -> np.ndarray:
    entry = manifest.arrays[name]
    raw = (folder / f"{name}.npy").read_bytes()[len(entry.header()) :]
    return np.frombuffer(raw, entry.dtype).reshape(entry.shape).copy()


def _number(folder: Path, manifest: Manifest, name: str, draw: random.Random) -> str:
    array = _read(folder, manifest, name)
    place, value = draw.choice((0, len(array) - 1, draw.randrange(len(array)))), draw.choice(NUMBERS)
    if array.dtype.kind == "f":
        array[place] = draw.choice((np.nan, np.inf, -1.0, 3e38, 1e-45, 0.0))
    else:
        array[place] = np.array(value).astype(array.dtype)
    _write(folder, manifest, name, array)
    return f"{name}[{place}] = {array[place]}"


def _bytes(folder: Path, manifest: Manifest, name: str, draw: random.Random) -> str:
    array = _read(folder, manifest, name)
    raw = array.view(np.uint8)
    for _ in range(draw.choice((1, 8, len(raw)))):
        raw[draw.randrange(len(raw))] = draw.randrange(256)
    _write(folder, manifest, name, array)
    return f"bytes of {name}"


def _cut(folder: Path, manifest: Manifest, name: str, draw: random.Random) -> str:
    array = _read(folder, manifest, name)
    size = draw.choice((0, 1, len(array) - 1, len(array) + 1, 2 * len(array)))
    _write(folder, manifest, name, np.resize(array, size) if size else array[:0])
    return f"{size} of {len(array)} numbers of {name}"


def _dtype(folder: Path, manifest: Manifest, name: str, draw: random.Random) -> str:
    dtype = draw.choice(DTYPES[:7])
    _write(folder, manifest, name, _read(folder, manifest, name).astype(dtype))
    return f"{name} as {dtype}"


def _shape(folder: Path, manifest: Manifest, name: str, draw: random.Random) -> str:
    array = _read(folder, manifest, name)
    shape = draw.choice(((1, -1), (-1, 1), (1, 1, -1)))
    _write(folder, manifest, name, array[0].reshape(()) if draw.random() < 0.2 else array.reshape(shape))
    return f"the shape of {name}: {manifest.arrays[name].shape}"


def _header(folder: Path, manifest: Manifest, name: str, draw: random.Random) -> str:
    """Change the header of the file alone: dtype, order, shape, or any byte."""
    file, entry = folder / f"{name}.npy", manifest.arrays[name]
    raw = file.read_bytes()
    header, data = raw[: len(entry.header())], raw[len(entry.header()) :]
    dtype, size = entry.dtype.encode(), str(entry.shape[0]).encode()
    at = draw.randrange(len(header))
    changed = draw.choice(
        (
            header.replace(dtype, draw.choice(DTYPES).encode()),
            header.replace(b"False", b"True "),
            header.replace(size, str(draw.choice(NUMBERS)).encode()),
            header[:at] + bytes([draw.randrange(256)]) + header[at + 1 :],
        )
    )
    file.write_bytes(changed + data)
    return f"the header of {name}"


def _meta(folder: Path, manifest: Manifest, name: str, draw: random.Random) -> str:
    """Change a value of the manifest, anywhere in its meta or in an array's entry."""
    body = json.loads((folder / MANIFEST).read_bytes())
    body.pop("crc32")
    node: Any = body if draw.random() < 0.2 else draw.choice((body["meta"], body["arrays"][name]))
    while True:
        key = draw.choice(sorted(node) if isinstance(node, dict) else range(len(node)))
        if not node[key] or not isinstance(node[key], dict | list) or draw.random() < 0.3:
            break
        node = node[key]
    old, new = node[key], draw.choice(VALUES)
    if isinstance(node, dict) and draw.random() < 0.2:
        del node[key]
        new = "nothing"
    else:
        node[key] = new
    (folder / MANIFEST).write_bytes(_manifest._seal(body))
    return f"{key} in {MANIFEST}: {str(old)[:20]} to {new}"


def _text(folder: Path, manifest: Manifest, name: str, draw: random.Random) -> str:
    """Change a byte of the manifest, whose own checksum then is wrong."""
    raw = bytearray((folder / MANIFEST).read_bytes())
    raw[draw.randrange(len(raw))] = draw.randrange(256)
    (folder / MANIFEST).write_bytes(raw)
    return f"a byte of {MANIFEST}"


def use(folder: Path) -> None:
    """Do with a store what people do."""
    store = ll.load_store(folder)
    model = ll.PLT(n_trees=2, arity=3, max_leaf=4, max_epochs=3, n_jobs=1, random_state=1)
    model.fit(store.X, store.Y)
    top = model.top_k(store.X, k=3)
    ll.metrics.evaluate(store.Y, top)
    if store.tags is not None:
        store.tagger(model).suggest(["a law about olive oil"], k=2)


def outcome(folder: Path) -> str:
    """Say how the use of a store ended."""
    try:
        use(folder)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return "trained"


def main() -> None:
    """Try some mutants."""
    *stores, scratch, first, last = sys.argv[1:]
    limit_memory(SPARE_BYTES)
    warnings.simplefilter("error", RuntimeWarning)
    for number in range(int(first), int(last)):
        folder = Path(scratch) / "mutant"
        shutil.copytree(stores[number % len(stores)], folder)
        print(number, mutate(folder, number), sep="\t", end="\t", flush=True)
        print(outcome(folder), flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
