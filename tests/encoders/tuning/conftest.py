"""One thread each, since tests run side by side; and a tiny encoder to start from."""

import pytest

from tests.helpers.fine_tuning import save_base


@pytest.fixture(autouse=True)
def one_thread():
    torch = pytest.importorskip("torch", reason="needs the extra finetune")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    return save_base(tmp_path_factory.mktemp("base") / "base")
