"""``longleaf encoder``: facts, embeddings of a table, and the cache."""

import gzip
import json
import sys

import numpy as np
import pytest

import longleaf as ll
from longleaf.cli._console import in_words
from tests.helpers.commands import run
from tests.helpers.encoders import require_extra, save_bert

require_extra()

RECORDS = [
    {"title": "the cat", "text": "and the dog", "tags": ["animals"]},
    {"title": "", "text": "", "tags": []},
    {"title": "long leaf", "text": "", "tags": ["trees"]},
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGLEAF_CACHE", str(tmp_path / "cache"))
    return save_bert(tmp_path / "model")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


def test_info_says_what_an_encoder_is(folder):
    facts = json.loads(run("encoder", "info", folder, "--json").stdout)
    assert facts == ll.encoders.load(folder).facts
    shown = run("encoder", "info", folder, "--max-tokens", 9).stdout
    assert "max_tokens       9\n" in shown
    assert "pooling          mean\n" in shown


def test_embed_writes_a_row_per_record(folder, data, tmp_path):
    result = run("encoder", "embed", data, "-o", tmp_path / "out.npy", "--encoder", folder)
    assert result.status == 0
    assert result.stderr.endswith("out.npy: 3 rows of 32 dimensions written\n")
    vectors = np.load(tmp_path / "out.npy")
    assert vectors.dtype == np.float16
    want = ll.encoders.load(folder).embed(["the cat and the dog", "", "long leaf"])
    assert (vectors == want).all()


def test_embed_reads_the_chosen_fields_from_standard_input(folder, data, tmp_path):
    options = ["--encoder", folder, "--text", "title", "--max-tokens", 9, "--threads", 1]
    result = run("encoder", "embed", "-", "-o", tmp_path / "out.npy", *options, stdin=data.read_bytes())
    assert result.status == 0
    want = ll.encoders.load(folder, max_tokens=9).embed(["the cat", "", "long leaf"])
    assert (np.load(tmp_path / "out.npy") == want).all()


def test_embed_reads_compressed_files(folder, data, tmp_path):
    (tmp_path / "data.jsonl.gz").write_bytes(gzip.compress(data.read_bytes()))
    for path in (data, tmp_path / "data.jsonl.gz"):
        assert run("encoder", "embed", path, "-o", f"{path}.npy", "--encoder", folder).status == 0
    same = np.load(f"{data}.npy") == np.load(f"{data}.gz.npy")
    assert same.all()


def test_an_existing_file_is_replaced_only_with_force(folder, data, tmp_path):
    out = tmp_path / "out.npy"
    out.write_text("old")
    result = run("encoder", "embed", data, "-o", out, "--encoder", folder)
    assert result.status == 2
    assert result.stderr == (
        f"longleaf: {out} already exists; choose another path or replace it with --force.\n"
    )
    assert out.read_text() == "old"
    assert run("encoder", "embed", data, "-o", out, "--encoder", folder, "--force").status == 0
    assert np.load(out).shape == (3, 32)


def test_the_output_must_be_an_array(folder, data, tmp_path):
    result = run("encoder", "embed", data, "-o", tmp_path / "out.csv", "--encoder", folder)
    assert result.status == 2
    assert result.stderr.endswith("must end in .npy, as embeddings are written as an array of NumPy.\n")


def test_an_unknown_encoder_is_one_sentence(data, tmp_path):
    for arguments in (["info", "nowhere"], ["embed", data, "-o", tmp_path / "a.npy", "--encoder", "nowhere"]):
        result = run("encoder", *arguments)
        assert result.status == 2
        assert result.stderr.startswith("longleaf: encoder must be 'minilm', the folder of a model, ")
        assert result.stderr.count("\n") == 1


def test_a_missing_extra_is_one_sentence(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    result = run("encoder", "info", folder)
    assert (result.status, result.stderr) == (
        2,
        "longleaf: An encoder needs the extra encoder, which is not installed: "
        "pip install 'longleaf[encoder]'.\n",
    )


def test_the_cache_is_shown_and_cleared(folder, data, tmp_path):
    assert run("encoder", "embed", data, "-o", tmp_path / "out.npy", "--encoder", folder).status == 0
    facts = json.loads(run("encoder", "cache", "--json").stdout)
    assert facts["folder"] == str(tmp_path / "cache")
    assert facts["embeddings"] > 0
    assert facts["models"] > 0
    assert f"  models           {in_words(facts['models'])}\n" in run("encoder", "cache").stdout
    cleared = run("encoder", "cache", "--clear")
    assert "embeddings       0 bytes\n" in cleared.stdout
    assert cleared.stderr.endswith(" removed\n")
    assert ll.encoders.cache_size() == 0
