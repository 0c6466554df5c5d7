"""Texts and tags in, the folder of an encoder out."""

import json
import logging

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.fine_tuning import QUICK, TOPICS, require_extra, toy

require_extra()

import torch  # noqa: E402

from longleaf.encoders.tuning.base import Base  # noqa: E402
from longleaf.encoders.tuning.network import LabelNetwork, embed  # noqa: E402


@pytest.fixture(scope="module")
def tuned(base, tmp_path_factory):
    texts, tags = toy()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("tuned") / "encoder"
    found = ll.encoders.fine_tune(texts, tags, path, encoder=base, **QUICK)
    torch.set_num_threads(before)
    return found


def test_it_learns_which_words_are_synonyms(tuned):
    assert [epoch.number for epoch in tuned.history] == [1, 2, 3, 4]
    assert tuned.history[tuned.best - 1].measures["p@1"] > 400 / TOPICS
    assert tuned.history[-1].loss < tuned.history[0].loss / 2
    assert tuned.device == "cpu"


def test_embeddings_of_the_same_topic_are_closer_than_before(base, tuned, monkeypatch, tmp_path):
    texts, tags = toy(100, seed=5)
    same = np.array([[one == other for one in tags] for other in tags])

    def gap(source):
        vectors = ll.encoders.load(source).embed(texts)
        products = vectors @ vectors.T
        return products[same].mean() - products[~same].mean()

    assert gap(tuned.path) > 2 * gap(base)


def test_the_folder_holds_what_pytorch_computed(base, tuned):
    texts, _ = toy(50, seed=7)
    model = Base.find(tuned.path, 16)
    network = LabelNetwork(model.model(), 1)
    want = embed(network, model.tokens(texts, 1), 1000)
    encoder = ll.encoders.load(tuned.path)
    assert encoder.max_tokens == 16
    assert (encoder.embed(texts) * want).sum(1).min() > 0.99


def test_the_folder_says_where_it_comes_from(base, tuned):
    origin = json.loads((tuned.path / "longleaf.json").read_text())
    assert origin["base"]["name"] == "base"
    assert origin["settings"]["epochs"] == 4
    assert origin["data"]["texts"] + origin["data"]["held_out"] == 400
    assert origin["data"]["tags"] == TOPICS
    assert origin["history"][1]["measures"] == tuned.history[1].measures
    modules = json.loads((tuned.path / "modules.json").read_text())
    assert [one["type"].rpartition(".")[2] for one in modules] == ["Transformer", "Pooling"]
    assert {path.stat().st_mode & 0o777 for path in tuned.path.glob("*.*")} == {0o644}


def test_a_fine_tuned_encoder_can_be_fine_tuned_again(base, tuned, tmp_path):
    texts, tags = toy(64)
    found = []
    for source in (base, tuned.path):
        path = tmp_path / source.name
        found.append(ll.encoders.fine_tune(texts, tags, path, encoder=source, **QUICK | {"epochs": 1}))
    first, again = (one.history[0].measures["p@1"] for one in found)
    assert again > 2 * first


def test_the_same_seed_gives_the_same_bits_and_the_callers_draws_stay(base, tmp_path):
    texts, tags = toy(100)
    settings = QUICK | {"epochs": 1}
    torch.manual_seed(3)
    want = torch.rand(2)[1]
    torch.manual_seed(3)
    torch.rand(1)
    weights = {}
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        ll.encoders.fine_tune(texts, tags, tmp_path / name, encoder=base, seed=seed, **settings)
        weights[name] = (tmp_path / name / "model.safetensors").read_bytes()
    assert weights["one"] == weights["same"] != weights["other"]
    assert torch.rand(1)[0] == want
    assert not torch.are_deterministic_algorithms_enabled()


def test_records_are_joined_and_rows_without_words_or_tags_are_left_out(base, tmp_path):
    texts, tags = toy(60)
    records = [{"title": text[:9], "text": text[9:].strip(), "tags": None} for text in texts]
    settings = QUICK | {"epochs": 1, "validation": 0}
    found = ll.encoders.fine_tune(
        [*records, "", " \n", texts[0]],
        [*tags, tags[0], tags[1], []],
        tmp_path / "m",
        encoder=base,
        **settings,
    )
    assert json.loads((found.path / "longleaf.json").read_text())["data"]["texts"] == 60
    assert found.history[0].measures == {}
    assert found.best == 1


def test_validation_texts_may_be_given_and_have_tags_that_training_has_not(base, tmp_path):
    texts, tags = toy(60)
    others, own = toy(20, seed=9)
    own[0] = ["never seen"]
    found = ll.encoders.fine_tune(
        texts, tags, tmp_path / "m", encoder=base, validation=(others, own), **QUICK | {"epochs": 1}
    )
    data = json.loads((found.path / "longleaf.json").read_text())["data"]
    assert (data["texts"], data["held_out"], data["tags"]) == (60, 20, TOPICS)
    assert found.history[0].measures["p@1"] <= 95


def test_it_says_what_it_will_take(base, tmp_path, caplog):
    texts, tags = toy(60)
    with caplog.at_level(logging.INFO, "longleaf.encoders.tuning"):
        ll.encoders.fine_tune(texts, tags, tmp_path / "m", encoder=base, **QUICK)
    said = [one.getMessage() for one in caplog.records if one.name == "longleaf.encoders.tuning"]
    assert len(said) == 2
    assert said[0].startswith("57 texts and 8 tags to train on, 3 texts to judge; each step trains all tags;")
    assert said[1] == "Training takes about 1 min on this CPU; on a GPU, minutes."


def test_the_progress_rises_to_one(base, tmp_path):
    texts, tags = toy(64)
    shares = []
    ll.encoders.fine_tune(
        texts, tags, tmp_path / "m", encoder=base, validation=0, progress=shares.append, **QUICK
    )
    assert shares == [place / 8 for place in range(1, 9)]


def test_an_encoder_is_replaced_only_when_asked_and_nothing_else_ever_is(base, tmp_path):
    texts, tags = toy(40)
    path, other = tmp_path / "m", tmp_path / "other"
    settings = QUICK | {"epochs": 1, "encoder": base, "validation": 0}
    ll.encoders.fine_tune(texts, tags, path, **settings)
    with pytest.raises(ll.ModelError, match="already exists; choose another path or replace it with force"):
        ll.encoders.fine_tune(texts, tags, path, **settings)
    before = (path / "model.safetensors").read_bytes()
    ll.encoders.fine_tune(texts, tags, path, **settings | {"seed": 2}, force=True)
    assert (path / "model.safetensors").read_bytes() != before
    other.mkdir()
    with pytest.raises(ll.ModelError, match="Only a fine-tuned encoder can be replaced"):
        ll.encoders.fine_tune(texts, tags, other, **settings, force=True)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["m", "other"]


def fail(*arguments, **options):
    raise OSError(28, "No space left on device")


def test_a_failure_leaves_nothing(base, tmp_path, monkeypatch):
    texts, tags = toy(40)
    monkeypatch.setattr("longleaf.encoders.tuning.output._write_json", fail)
    with pytest.raises(OSError, match="No space"):
        ll.encoders.fine_tune(
            texts, tags, tmp_path / "m", encoder=base, validation=0, **QUICK | {"epochs": 1}
        )
    assert not list(tmp_path.iterdir())


TWO = (["w0x0", "w1x1"], [["a"], ["b"]])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"epochs": 0}, "epochs must be at least 1 and at most 10000; got 0."),
        ({"batch_size": 1.5}, "batch_size must be a whole number; got 1.5."),
        ({"learning_rate": 0}, "learning_rate must be"),
        ({"dropout": 1}, "dropout must be"),
        ({"patience": 0}, "patience must be"),
        ({"negatives": "some"}, "negatives must be one of auto, all, tree; got 'some'."),
        ({"max_tokens": 41}, "max_tokens must be at least 3 and at most 40; got 41."),
        ({"device": "tpu"}, "device must be cpu or cuda; got 'tpu'."),
        ({"device": "cuda:99"}, "device must be a GPU that PyTorch can use; got 'cuda:99'"),
        (
            {"validation": 1.0},
            "validation must be a share from 0 to below 1, or a pair of texts and tags; got 1.0.",
        ),
        (
            {"validation": 0.4},
            "validation must leave texts to judge; a share of 0.4 of 2 texts is none: use",
        ),
        ({"validation": (["w0x0"], [])}, "validation texts and tags must be the same length; got 1 and 0."),
        ({"validation": (["w0x0"], [[]])}, "validation must have words and a tag in at least one row"),
        ({"tags": [["a"]]}, "texts and tags must be the same length; got 2 and 1."),
        ({"texts": ["", " "]}, "texts must have words and a tag in at least one row; none of 2 has."),
        ({"encoder": "nothing"}, "encoder must be 'minilm', the folder of a model"),
        ({"output": "no/where"}, "The encoder's parent folder must exist; got no/where."),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(base, tmp_path, changes, sentence):
    texts, tags = changes.pop("texts", TWO[0]), changes.pop("tags", TWO[1])
    output = changes.pop("output", tmp_path / "m")
    options = {"encoder": base, "max_tokens": 16, "validation": 0, "epochs": 1} | changes
    with pytest.raises(ValueError) as found:  # noqa: PT011
        ll.encoders.fine_tune(texts, tags, output, **options)
    assert str(found.value).startswith(sentence)
    assert str(found.value).endswith(".")


def test_texts_must_be_texts(base, tmp_path):
    with pytest.raises(TypeError, match=r"texts\[1\] must be a string or a record"):
        ll.encoders.fine_tune(["w0x0", 3], TWO[1], tmp_path / "m", encoder=base, max_tokens=16)
    with pytest.raises(TypeError, match="tags must be an iterable"):
        ll.encoders.fine_tune(TWO[0], "ab", tmp_path / "m", encoder=base, max_tokens=16)


def test_weights_that_are_missing_are_not_drawn_at_random(base, tmp_path):
    from safetensors.numpy import load_file, save_file

    tensors = load_file(base / "model.safetensors")
    tensors.pop("encoder.layer.1.output.dense.bias")
    for one in base.iterdir():
        if one.is_file():
            (tmp_path / one.name).write_bytes(one.read_bytes())
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ll.ModelError, match=r"must have a tensor encoder\.layer\.1\.output\.dense\.bias"):
        ll.encoders.fine_tune(*toy(40), tmp_path / "m", encoder=tmp_path, max_tokens=16)


def test_an_architecture_that_is_not_converted_is_refused(tmp_path):
    from tests.helpers.fine_tuning import save_base

    folder = save_base(tmp_path / "t5", model_type="t5")
    with pytest.raises(ll.ModelError, match=r"must be a transformer that longleaf can convert .*; got t5"):
        ll.encoders.fine_tune(*toy(40), tmp_path / "m", encoder=folder, max_tokens=16)


def test_without_the_extra_a_sentence_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError) as found:
        ll.encoders.fine_tune(*TWO, tmp_path / "m")
    assert str(found.value) == (
        "Fine-tuning needs the extra finetune, which is not installed: pip install 'longleaf[finetune]'."
    )
