"""The peers' file formats: hand-made folders whose probabilities are worked out here, and damaged ones."""

import json
import shutil
import struct

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from tests.helpers.peers import MODELS, NAMES

pytestmark = pytest.mark.native

X = np.array([[3.0, 4.0], [1.0, 0.0]], np.float32)
FILES = [
    path.relative_to(MODELS)
    for name in NAMES
    for path in sorted((MODELS / name).rglob("*"))
    if path.is_file()
    and path.name != "expected.json"
    and path.parent.name not in ("pecos-hinge", "pecos-sigmoid", "1.model", "2.model", "member_1")
]


def sigmoid(margin):
    return 1 / (1 + np.exp(-np.asarray(margin)))


def hinge(margin, power=2):
    return np.exp(-(np.maximum(0, 1 - np.asarray(margin)) ** power))


def probabilities(model):
    rows, labels = np.divmod(np.arange(2 * model.n_labels_), model.n_labels_)
    return model.probability(X, rows, labels).reshape(2, -1)


# ------------------------------------------------------------------ napkinXC


def vector(weights, sparse):
    stored = [(i, w) for i, w in enumerate(weights) if w]
    packed = struct.pack("<qq?", len(weights), len(stored), sparse)
    if sparse:
        return packed + b"".join(struct.pack("<if", *pair) for pair in reversed(stored))
    return packed + np.asarray(weights, "<f4").tobytes()


def node(weights, *, first_class=1, loss=0, sparse=False, gradients=None):
    head = struct.pack("<iiiqq", 2, first_class, loss, len(weights), len(weights))
    tail = b"\0" if gradients is None else b"\1" + vector(gradients, sparse=False)
    return head + vector(weights, sparse) + tail


def constant(first_class, loss=0, classes=1):
    return struct.pack("<iii", classes, first_class, loss)


def save_napkinxc(folder, nodes, parents, labels, **changes):
    said = {
        "version": b"0.7.2",
        "bias": 1.0,
        "norm": True,
        "hash": 0,
        "threshold": 0.0,
        "name": b"plt",
    } | changes
    folder.mkdir(exist_ok=True)
    args = struct.pack("<q", len(said["version"])) + said["version"]
    args += struct.pack("<f?ifi", said["bias"], said["norm"], said["hash"], said["threshold"], 3)
    (folder / "args.bin").write_bytes(
        args + struct.pack("<q", len(said["name"])) + said["name"] + b"\1\0\0\0"
    )
    tree = [sum(label >= 0 for label in labels), len(labels)]
    tree += [number for pair in enumerate(labels) for number in pair] + [parents.index(-1), *parents]
    (folder / "tree.bin").write_bytes(np.array(tree, "<i4").tobytes())
    (folder / "weights.bin").write_bytes(struct.pack("<i", len(nodes)) + b"".join(nodes))
    return folder


def test_napkinxc_signs_gradients_and_both_encodings(tmp_path):
    nodes = [
        node([0, 0.5, 1, 2, 0]),  # the root: bias 0.5, features 1 and 2
        node([0, -1, 3, 0, 0], sparse=True, gradients=[9, 9, 9]),
        node([0, 0.25, -2, 1, 0], first_class=0),
    ]
    model = ll.import_model(save_napkinxc(tmp_path, nodes, [-1, 0, 0], [-1, 1, 0], bias=2.0))
    root = sigmoid([1 + 0.6 + 2 * 0.8, 1 + 1])
    expected = [root * sigmoid([-0.5 + 2 * 0.6 - 0.8, -0.5 + 2]), root * sigmoid([-2 + 3 * 0.6, -2 + 3])]
    np.testing.assert_allclose(probabilities(model), np.transpose(expected), 1e-6)


def test_napkinxc_rows_are_left_alone_without_norm(tmp_path):
    nodes = [constant(1), node([0, 0, 0.1, 0.2, 0]), constant(0, classes=0)]
    model = ll.import_model(save_napkinxc(tmp_path, nodes, [-1, 0, 0], [-1, 0, 1], norm=False))
    expected = [sigmoid(10) * sigmoid([0.3 + 0.8, 0.1]), sigmoid(10) * sigmoid([-10, -10])]
    np.testing.assert_allclose(probabilities(model), np.transpose(expected), 1e-6)


@pytest.mark.parametrize("trained_loss", [0, 1])
@pytest.mark.parametrize("constant_loss", [0, 1])
def test_napkinxc_untrained_nodes_keep_their_own_loss(trained_loss, constant_loss, tmp_path):
    links = [sigmoid, hinge]
    nodes = [
        constant(1, constant_loss),
        node([0, 0.5, 0, 0, 0], loss=trained_loss),
        constant(0, constant_loss),
    ]
    model = ll.import_model(save_napkinxc(tmp_path, nodes, [-1, 0, 0], [-1, 0, 1]))
    root, never = links[constant_loss](10), links[constant_loss](-10)
    expected = [root * links[trained_loss](0.5), root * never]
    np.testing.assert_allclose(probabilities(model), [expected, expected], 1e-5, 1e-30)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"version": b"0.5.0"}, "args.bin must be of napkinXC 0.7.x; got version '0.5.0'"),
        ({"name": b"hsm"}, "must be of a PLT; got a model of type 'hsm'"),
        ({"hash": 9}, "without hashed or dropped features"),
        ({"threshold": 0.5}, "without hashed or dropped features"),
        ({"parents": [-1, 2, 1]}, "must not form a cycle"),
        ({"parents": [-1, 0, 9]}, "every node but one root must have a parent"),
        ({"labels": [-1, 1, 1]}, "every label at one leaf"),
        ({"labels": [0, 1, -1]}, "labels at leaves"),
        ({"nodes": [constant(1)] * 2}, "tree.bin must have 2 nodes"),
        ({"nodes": [constant(5)] * 3}, "node 0 has 1 classes, the first 5"),
        ({"nodes": [node([0, np.nan, 1])] * 3}, "finite"),
        ({"nodes": [node([1] * 4), node([1] * 4, loss=1), constant(1)]}, "one loss in all nodes"),
    ],
)
def test_napkinxc_folders_that_cannot_be_reproduced_are_refused(changes, sentence, tmp_path):
    whole = {"nodes": [constant(1)] * 3, "parents": [-1, 0, 0], "labels": [-1, 0, 1]} | changes
    with pytest.raises(ll.ModelError, match=sentence):
        ll.import_model(save_napkinxc(tmp_path, **whole))


# ------------------------------------------------------------------ omikuji


def save_omikuji(folder, tree, loss="Hinge", features=2):
    cbor2 = pytest.importorskip("cbor2", reason="omikuji's trees are read with cbor2 (extra import)")
    (folder / "settings.json").write_text(json.dumps({"n_features": features, "classifier_loss_type": loss}))
    (folder / "tree0.cbor").write_bytes(cbor2.dumps(tree))
    return folder


def dense(*rows):
    return {
        "Dense": {"v": 1, "dim": [len(rows), len(rows[0])], "data": [float(w) for row in rows for w in row]}
    }


def sparse(children, indptr, features, names, values):
    lists = {"indptr": indptr, "outer_inds": features, "inner_inds": names, "data": values}
    return {"Sparse": {"outer_dim": 3, "inner_dim": children} | lists}


def leaf(labels, weights):
    return {"Leaf": {"labels": labels, "weights": weights}}


@pytest.mark.parametrize(("loss", "link"), [("Hinge", hinge), ("Log", sigmoid)])
def test_omikuji_paths_multiply_over_both_encodings(loss, link, tmp_path):
    few = sparse(2, [0, 1, 3], [0, 2], [1, 0, 1], [1.0, 0.25, -0.5])
    many = leaf([3, 0], dense([1, -1], [0.5, 0], [0, 0.75]))
    tree = {"Branch": {"weights": few, "children": [leaf([2], dense([0], [0], [0.5])), many]}}
    model = ll.import_model(save_omikuji(tmp_path, tree, loss))
    left, right = link([0.25, 0.25]), link([0.6 - 0.5, 1 - 0.5])
    expected = [right * link([0.75 - 0.6, -0.25]), [0, 0], left * link(0.5), right * link([0.6 + 0.4, 1])]
    np.testing.assert_allclose(probabilities(model), np.transpose(expected), 1e-6)


@pytest.mark.parametrize(
    "tree",
    [
        leaf([0, 1], dense([1], [1], [1])),
        leaf([0, 0], dense([1, 1], [1, 1], [1, 1])),
        leaf([-5], dense([1], [1], [1])),
        leaf([10**8], dense([1], [1], [1])),
        leaf(["x"], dense([1], [1], [1])),
        leaf([0], {"Dense": {"v": 1, "dim": [3, 1], "data": [1.0] * 9}}),
        leaf([0], {"Dense": {"v": 1, "dim": [3, 1], "data": ["a"] * 3}}),
        leaf([0], dense([np.inf], [1], [1])),
        leaf([0], sparse(1, [0, 2], [0], [0], [1.0])),
        leaf([0], sparse(1, [0, 1], [9], [0], [1.0])),
        leaf([0], sparse(1, [0, 1], [0], [3], [1.0])),
        leaf([0], [None]),
        {"Twig": {}},
        [1, 2],
    ],
)
def test_omikuji_trees_that_are_none_are_refused(tree, tmp_path):
    with pytest.raises(ll.ModelError, match=r"tree0\.cbor"):
        ll.import_model(save_omikuji(tmp_path, tree))


# ------------------------------------------------------------------ PECOS


def save_pecos(folder, levels, post_processor="l3-hinge", bias=1.0, **changes):
    ranker = folder / "ranker"
    for depth, (W, C) in enumerate(levels):
        (ranker / f"{depth}.model").mkdir(parents=True, exist_ok=True)
        said = {"bias": bias, "pred_kwargs": {"post_processor": post_processor}} | changes
        (ranker / f"{depth}.model" / "param.json").write_text(json.dumps(said))
        sp.save_npz(ranker / f"{depth}.model" / "W.npz", sp.csc_matrix(np.array(W, np.float32)))
        sp.save_npz(ranker / f"{depth}.model" / "C.npz", sp.csc_matrix(np.array(C, np.float32)))
    (ranker / "param.json").write_text(json.dumps({"depth": len(levels)}))
    return folder


TOP = ([[0.1, 0], [0, 0.1], [0.5, 0.25]], [[1], [1]])
BOTTOM = ([[0.2, 0, 0], [0, 0.1, 0], [0, 0, 0.5]], [[0, 1], [1, 0], [0, 1]])


@pytest.mark.parametrize("post_processor", ["l1-hinge", "l3-hinge", "log-l4-hinge", "sigmoid", "log-sigmoid"])
def test_pecos_levels_multiply_by_the_post_processor(post_processor, tmp_path):
    model = ll.import_model(save_pecos(tmp_path, [TOP, BOTTOM], post_processor, bias=2.0))

    def link(m):
        return sigmoid(m) if "sigmoid" in post_processor else hinge(m, int(post_processor[-7]))

    top = [link([0.3 + 1, 0.1 + 1]), link([0.4 + 0.5, 0.5])]
    expected = [top[1] * link([0.6, 0.2]), top[0] * link([0.4, 0]), top[1] * link([1, 1])]
    np.testing.assert_allclose(probabilities(model), np.transpose(expected), 1e-6)


def test_pecos_nodes_that_were_pruned_away_are_left_out(tmp_path):
    pruned = (BOTTOM[0], [[0, 0], [1, 0], [0, 0]])
    model = ll.import_model(save_pecos(tmp_path, [TOP, pruned]))
    assert model.trees_[0].labels.tolist() == [1]
    assert model.n_labels_ == 3
    assert model.trees_[0].n_nodes == 3  # the node that has no label left is gone too


@pytest.mark.parametrize(
    ("levels", "changes", "sentence"),
    [
        ([TOP, BOTTOM], {"post_processor": "noop"}, "post-processor of probabilities"),
        ([TOP, BOTTOM], {"is_mmap": True}, "got a compiled model"),
        ([TOP, (BOTTOM[0], [[1, 1], [1, 0], [0, 1]])], {}, "got 2 for node 0"),
        ([TOP, (BOTTOM[0], [[1, 1]])], {}, "must have 3 rows"),
        ([BOTTOM], {}, "1 columns in C.npz; got 3 and 2"),
        ([TOP, (BOTTOM[0][:2], BOTTOM[1])], {}, "must have 3 rows in W.npz"),
        ([(TOP[0], [[0], [0]])], {}, "must have a label below its root"),
    ],
)
def test_pecos_folders_that_cannot_be_reproduced_are_refused(levels, changes, sentence, tmp_path):
    with pytest.raises(ll.ModelError, match=sentence):
        ll.import_model(save_pecos(tmp_path, levels, **changes))


def test_a_pecos_matrix_is_not_larger_than_its_file(tmp_path):
    save_pecos(tmp_path, [TOP, BOTTOM])
    weights = tmp_path / "ranker" / "0.model" / "W.npz"
    huge = sp.csc_matrix(np.ones((3, 2), np.float32))
    sp.save_npz(weights, huge, compressed=False)
    weights.write_bytes(weights.read_bytes().replace(b"'shape': (6,)", b"'shape': (9**99,)"[:13]))
    with pytest.raises(ll.ModelError, match=r"W\.npz is damaged"):
        ll.import_model(tmp_path)


# ------------------------------------------------------------------ damage


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_damaged_file_is_named_and_never_more_than_a_refusal(file, tmp_path):
    name = file.parts[0]
    if name.startswith("omikuji"):
        pytest.importorskip("cbor2", reason="omikuji's trees are read with cbor2 (extra import)")
    folder = tmp_path / name
    shutil.copytree(MODELS / name, folder)
    target, kind = tmp_path / file, name.split("-")[0]
    whole = target.read_bytes()
    for size in (0, len(whole) // 3, len(whole) - 1):
        target.write_bytes(whole[:size])
        with pytest.raises(ll.ModelError, match=file.name):
            ll.import_model(folder, kind=kind)
    random = np.random.RandomState(len(whole))
    for _ in range(5):
        changed = bytearray(whole)
        changed[random.randint(len(whole))] ^= 1 << random.randint(8)
        target.write_bytes(changed)
        try:
            model = ll.import_model(folder, kind=kind)
        except ll.ModelError:
            continue
        model.top_k(np.ones((1, model.n_features_in_)))  # a change that nobody can notice: other numbers
    if file.suffix == ".cbor":
        return  # a forest without one of its trees is a forest
    target.unlink()
    with pytest.raises(ll.ModelError):
        ll.import_model(folder, kind=kind)
