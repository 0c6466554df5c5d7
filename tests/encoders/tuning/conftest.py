"""A tiny encoder to start from, and one thread."""

import pytest

from tests.helpers.fine_tuning import one_thread as one_thread
from tests.helpers.fine_tuning import save_base


@pytest.fixture(autouse=True)
def quiet(one_thread):
    """Let every test compute with one thread."""


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    return save_base(tmp_path_factory.mktemp("base") / "base")
