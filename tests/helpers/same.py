"""Whether two results are the same, bit for bit."""

import numpy as np


def same_model(a, b):
    """Compare two models: counts, trees, weights, and what training took."""
    (_, ours), (_, theirs) = a._to_arrays(), b._to_arrays()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert array.dtype == theirs[name].dtype, name
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
        assert array.tobytes() == theirs[name].tobytes(), name
    assert a.training_ == b.training_
    assert (a.n_rows_, a.n_features_in_, a.n_labels_) == (b.n_rows_, b.n_features_in_, b.n_labels_)


def same_arrays(a, b):
    """Compare the arrays of two folders, byte by byte."""
    files = [sorted(path.relative_to(one) for path in one.rglob("*.npy")) for one in (a, b)]
    assert files[0] == files[1]
    for file in files[0]:
        assert (a / file).read_bytes() == (b / file).read_bytes(), file


def same_matrix(a, b):
    """Compare two sparse matrices."""
    assert a.shape == b.shape
    for name in ("indptr", "indices", "data"):
        ours, theirs = getattr(a, name), getattr(b, name)
        assert ours.dtype == theirs.dtype, name
        assert ours.tobytes() == theirs.tobytes(), name
