"""Index arrays that point outside of their matrix are refused before anybody walks along them.

What is not refused ends the process, so a test that fails may end all tests.
"""

import inspect
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf import _core, metrics
from longleaf._validation import check_features, check_labels
from longleaf.datasets import make_hierarchy

pytestmark = pytest.mark.native

ROWS, FEATURES, LABELS = 60, 50, 12
FAR = 10**6


def data() -> tuple[sp.csr_matrix, sp.csr_matrix]:
    return make_hierarchy(ROWS, FEATURES, LABELS, features_per_row=8.0, random_state=1)


def middle_too_high(matrix):
    matrix.indptr[11] = FAR


def middle_negative(matrix):
    matrix.indptr[11] = -1


def start_above_zero(matrix):
    matrix.indptr[0] = 1


def end_too_high(matrix):
    matrix.indptr[-1] = FAR


def index_too_high(matrix):
    matrix.indices[5] = FAR


def index_negative(matrix):
    matrix.indices[5] = -(2**31)


def short_indptr(matrix):
    matrix.indptr = matrix.indptr[:3].copy()


def short_data(matrix):
    matrix.data = matrix.data[:3].copy()


def short_indices(matrix):
    matrix.indices = matrix.indices[:3].copy()


DAMAGE = [
    middle_too_high,
    middle_negative,
    start_above_zero,
    end_too_high,
    index_too_high,
    index_negative,
    short_indptr,
    short_data,
    short_indices,
]
FORMS = [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.bsr_matrix]


@pytest.fixture(scope="module")
def model() -> ll.PLT:
    return ll.PLT(n_trees=1, max_leaf=4, n_jobs=1, random_state=1).fit(*data())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("flagged", [False, True])
def test_a_damaged_matrix_is_refused_wherever_it_is_given(model, damage, form, flagged, tmp_path):
    X, Y = data()
    bad_X, bad_Y = form(X), form(Y)
    for bad in (bad_X, bad_Y):
        if flagged and bad.format == "csr":
            assert bad.has_canonical_format  # SciPy remembers it, whatever happens to the arrays
        damage(bad)
    for use in (
        lambda: check_features(bad_X),
        lambda: check_labels(bad_Y),
        lambda: ll.PLT(n_jobs=1).fit(X, bad_Y),
        lambda: ll.PLT(n_jobs=1).fit(bad_X, Y),
        lambda: ll.PfastreXML(n_trees=1, n_jobs=1).fit(X, bad_Y),
        lambda: model.top_k(bad_X),
        lambda: model.score(X, bad_Y),
        lambda: ll.inverse_propensity(bad_Y),
        lambda: metrics.evaluate(bad_Y, np.zeros((ROWS, 1), int)),
        lambda: ll.split_rows(bad_Y),
        lambda: ll.tune(bad_X, Y),
        lambda: ll.tune(X, bad_Y),
        lambda: ll.save_xmlc(tmp_path / "rows.txt", bad_X, Y),
        lambda: ll.save_xmlc(tmp_path / "rows.txt", X, bad_Y),
        lambda: ll.save_store(tmp_path / "store", [(X, bad_Y)]),
    ):
        with pytest.raises(ValueError, match=r" must (be a well-formed|have) .*\."):
            use()


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("value", [-1, FAR])
def test_a_damaged_matrix_of_coordinates_is_refused(axis, value):
    for whole, check in zip(data(), (check_features, check_labels), strict=True):
        bad = sp.coo_matrix(whole)
        getattr(bad, axis)[5] = value
        with pytest.raises(ValueError, match=f"must have {axis}.* from 0 to"):
            check(bad)


def test_the_fault_is_named():
    X, Y = data()
    middle_too_high(Y)
    with pytest.raises(
        ValueError, match="y must be a well-formed CSR matrix; its indptr falls from 1000000 to"
    ):
        ll.PLT(n_jobs=1).fit(X, Y)


def test_features_out_of_order_are_put_in_order_unless_scipy_believes_that_they_are():
    X, _ = data()
    X.indices[:2] = X.indices[1::-1].copy()
    X.data[:2] = X.data[1::-1].copy()
    unsorted = sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    np.testing.assert_array_equal(check_features(unsorted).indices, data()[0].indices)
    unsorted.has_canonical_format = True
    with pytest.raises(
        ValueError, match="X must have the features of a row in order and once each; row 0 has not"
    ):
        check_features(unsorted)


def native_arguments() -> dict[str, tuple[object, dict[str, object]]]:
    """Good arguments of every native function that takes index arrays."""
    X, Y = data()
    rows, labels = check_features(X), check_labels(Y)
    model = ll.PLT(n_trees=1, max_leaf=4, n_jobs=1, random_state=1).fit(X, Y)
    tree, forest = model.trees_[0], model._prepare().forest
    y_indptr, y_indices = labels.indptr.astype(np.int64), labels.indices
    by_label = sp.csr_matrix(labels.T)
    x = {"indptr": rows.indptr, "indices": rows.indices, "data": rows.data}
    scaled = x | {"row_scale": rows.scale}
    shape = {"first_child": tree.first_child, "label": tree.label}
    node_indptr, node_rows = _core.node_rows(y_indptr, y_indices, LABELS, tree.first_child, tree.label)
    costs = np.ones(tree.n_nodes, np.float32)
    none = np.zeros(0, np.float32)
    slope, offset = np.ones(LABELS, np.float32), np.zeros(LABELS, np.float32)
    maps = {"map_slope": slope, "map_offset": offset} | {
        "override_indptr": np.arange(ROWS + 1),
        "override_labels": np.zeros(ROWS, np.int32),
        "override_slope": np.ones(ROWS, np.float32),
        "override_offset": np.zeros(ROWS, np.float32),
    }
    lines = {"forest": forest, "a": slope, "b": offset}
    bounds = {"map_bounds": forest.score_bounds(none, slope, offset)}
    centroids = _core.label_centroids(
        *rows.csr, FEATURES, rows.scale, by_label.indptr.astype(np.int64), by_label.indices, 1
    )
    gain, sides = np.ones(LABELS), np.zeros(ROWS, np.uint8)
    y = {"label_indptr": y_indptr, "label_indices": y_indices}
    separator = {"cost_off": 1.0, "cost_on": 1.0, "bias": 1.0, "tolerance": 0.1, "max_epochs": 2}
    return {
        "check_csr": (_core.check_csr, x | {"cols": FEATURES, "name": "X"}),
        "row_scales": (_core.row_scales, {"indptr": rows.indptr, "data": rows.data}),
        "label_centroids": (
            _core.label_centroids,
            scaled
            | {"features": FEATURES, "label_indptr": by_label.indptr.astype(np.int64)}
            | {"label_rows": by_label.indices, "threads": 1},
        ),
        "cluster_labels": (
            _core.cluster_labels,
            dict(zip(("indptr", "indices", "data"), centroids, strict=True))
            | {"features": FEATURES, "arity": 2, "max_leaf": 4, "max_iterations": 2, "tolerance": 1e-4}
            | {"balanced": True, "seed": 1, "threads": 1},
        ),
        "node_rows": (_core.node_rows, y | {"labels": LABELS} | shape),
        "training_units": (_core.training_units, {"node_indptr": node_indptr} | shape),
        "train_nodes": (
            _core.train_nodes,
            scaled
            | shape
            | {"features": FEATURES, "node_indptr": node_indptr, "node_rows": node_rows}
            | {"positive_factor": none, "c_positive": costs, "c_negative": costs, "row_weight": none}
            | {"first_node": 0, "last_node": tree.n_nodes, "past": none, "loss": 1, "l1": False}
            | {"tolerance": 0.1, "max_epochs": 2, "threshold": 0.1, "bias": 1.0, "margin": 0.0}
            | {"weight_bits": 8, "seed": 1, "threads": 1},
        ),
        "ranked_rows": (
            _core.ranked_rows,
            y | {"labels": LABELS, "ranked": np.zeros(2 * ROWS, np.int32)} | shape,
        ),
        "top_k": (
            forest.top_k,
            scaled
            | {"k": 2, "beam": 0, "union_rule": False, "log_gain": none, "log_bounds": none}
            | {"log_threshold": none, "log_floor": -np.inf, "threads": 1}
            | maps
            | bounds,
        ),
        "Utility": (
            _core.Utility,
            lines | {"group": np.zeros(LABELS, np.int32), "quota": np.ones(1, np.int32)},
        ),
        "with_lines": (
            _core.Utility(**lines).with_lines,
            {"forest": forest, "labels": np.arange(3, dtype=np.int32), "a": slope[:3], "b": offset[:3]},
        ),
        "probabilities": (
            forest.probabilities,
            scaled | {"rows": np.arange(3), "labels": np.arange(3, dtype=np.int32), "threads": 1} | maps,
        ),
        "regroup_chunks": (
            forest.regroup_chunks,
            shape
            | {"tree": 0, "origin": np.arange(tree.n_nodes), "bias": model.weights_[0]["bias"], "threads": 1},
        ),
        "separate": (_core.separate, scaled | separator | {"features": FEATURES, "sides": sides, "seed": 1}),
        "ndcg_sides": (_core.ndcg_sides, y | {"gain": gain, "sides": sides}),
        "grow_ndcg_trees": (
            _core.grow_ndcg_trees,
            scaled
            | y
            | {"features": FEATURES, "gain": gain, "seeds": np.ones(1, np.uint64), "max_leaf": 5}
            | {"max_labels": 5, "C": 1.0, "bias": 1.0, "tolerance": 0.1, "max_epochs": 2, "threads": 1},
        ),
        "format_xmlc": (
            _core.format_xmlc,
            {f"x_{name}": array for name, array in x.items()}
            | {"y_indptr": y_indptr, "y_indices": y_indices, "begin": 0, "end": ROWS},
        ),
    }


FREE = {"sides", "past", "positive_factor", "row_weight", "log_gain", "log_bounds", "log_threshold", "origin"}
"""Arrays that may be empty, or hold what is no index."""

INDEXED = ("indptr", "indices", "rows", "labels", "first_child", "group")


@pytest.mark.parametrize("name", native_arguments())
def test_native_functions_look_at_the_indices_that_they_are_given(name):
    function, good = native_arguments()[name]
    function(**good)
    for argument, array in good.items():
        if not isinstance(array, np.ndarray) or argument in FREE or not len(array):
            continue
        for cut in (array[:-1].copy(), array[:0].copy()):
            with suppress(ValueError):  # fewer rows, say, may be as good
                function(**(good | {argument: cut}))
        worse = []
        # features are looked at once, by check_csr, and not by each part of a training
        trusted = argument == "indices" and name not in ("check_csr", "cluster_labels")
        trusted |= name == "format_xmlc" and argument.endswith("indices")  # they are only written down
        if array.dtype.kind == "i" and argument.endswith(INDEXED) and not trusted:
            for place in (0, len(array) // 2, len(array) - 1):
                far = FAR if array.dtype == np.int32 else 2**62
                for value in (-2,) if name == "training_units" and place == len(array) - 1 else (-2, far):
                    bad = array.copy()
                    bad[place] = value
                    worse.append(bad)
        for bad in worse:
            with pytest.raises(ValueError):  # noqa: PT011
                function(**(good | {argument: bad}))


def test_every_native_function_of_index_arrays_is_tried():
    named = {name for name in dir(_core) if not name.startswith("_")}
    arrays = {n for n in named if "indptr" in (inspect.getdoc(getattr(_core, n)) or "")}
    assert arrays <= set(native_arguments()) | {"NdcgForest"}


def test_a_vocabulary_s_offsets_and_ids_stay_inside():
    letters = np.frombuffer(b"abcdef", np.uint8)
    assert len(_core.Vocabulary(letters, np.array([0, 2, 4, 6]))) == 3
    for offsets in ([0, 4, 2, 6], [0, 2, 4, 7], [-1, 2, 4, 6], [1, 2, 4, 6], [0, 2**62, 6]):
        with pytest.raises(ValueError, match="must rise from 0"):
            _core.Vocabulary(letters, np.array(offsets))


def test_a_utility_of_another_model_is_refused():
    arguments = native_arguments()
    ask, good = arguments["top_k"]
    _, lines = native_arguments()["Utility"]
    with pytest.raises(ValueError, match="a utility must be made for the model that is searched"):
        ask(**(good | {"utility": _core.Utility(**lines)}))


@pytest.mark.parametrize("name", ["a", "b"])
def test_lines_that_are_no_numbers_are_refused(name):
    make, good = native_arguments()["Utility"]
    for value in (np.nan, np.inf, 1e31):
        with pytest.raises(ValueError, match="a and b must be from -1e30 to 1e30"):
            make(**(good | {name: np.full(LABELS, value, np.float32)}))
