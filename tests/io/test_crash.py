"""Whatever happens to a writer, the target's name means the old model or the new one, never a half."""

import errno
import os
import signal
import subprocess
import sys
import threading
from itertools import count

import numpy as np
import pytest

from longleaf._validation import ModelError, ModelExistsError
from longleaf.io import _arrays, _replace
from longleaf.io.storage import load_folder, save_folder

STEPS = [(os, "mkdir"), (os, "fsync"), (os, "rename"), (_replace, "_rename_with_flag")]


def generation(number):
    """A model all of whose arrays hold one number, so that a mixture of two would show."""
    return {f"part{i}/a": np.full(100, number) for i in range(4)}


def found(path):
    """Return the generation under the target's name, None if there is nothing; a half model is an error."""
    if not os.path.lexists(path):
        return None
    folder = load_folder(path, verify=True)
    numbers = {int(number) for array in folder.arrays.values() for number in array}
    assert numbers == {folder.meta["number"]}
    assert len(folder.arrays) == 4
    return folder.meta["number"]


def save(path, number, force=False):
    save_folder(path, "plt", {"number": number}, generation(number), force=force)


def without_exchange(monkeypatch):
    monkeypatch.setattr(_replace, "_rename_with_flag", lambda *_: False)


@pytest.mark.parametrize("old", [None, 1])
@pytest.mark.parametrize("two_steps", [False, True])
def test_a_failure_at_any_step_leaves_the_old_or_the_new_model_and_no_rubbish(
    tmp_path, monkeypatch, old, two_steps
):
    path = tmp_path / "m"
    seen = []
    for failing_step in count():
        if path.exists():
            _replace.shutil.rmtree(path)
        if old is not None:
            save(path, old)
        steps = count()

        def guarded(function, steps=steps, failing_step=failing_step):
            def call(*arguments, **options):
                if next(steps) == failing_step:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return function(*arguments, **options)

            return call

        with monkeypatch.context() as patch:
            if two_steps:
                without_exchange(patch)
            for owner, name in STEPS:
                patch.setattr(owner, name, guarded(getattr(owner, name)))
            try:
                save(path, 2, force=True)
            except OSError:
                seen.append(found(path))
                assert seen[-1] in (old, 2)
                assert os.listdir(tmp_path) == ([] if seen[-1] is None else ["m"])
            else:
                break
    assert found(path) == 2
    assert len(seen) >= 15  # a folder, 5 files, their 5 sub-folders, the moves, the parent
    assert seen == sorted(seen, key=lambda number: number == 2)  # old until the move, new ever after


KILLED_WRITER = """
import os, signal, sys
import numpy as np
from longleaf.io import _replace
from longleaf.io.storage import save_folder

path, number, fatal_step, two_steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "True"
if two_steps:
    _replace._rename_with_flag = lambda *_: False
steps = 0
def deadly(function):
    def call(*arguments, **options):
        global steps
        if steps == fatal_step:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1
        return function(*arguments, **options)
    return call
for owner, name in [(os, "fsync"), (os, "rename"), (os, "rmdir"), (_replace, "_rename_with_flag")]:
    setattr(owner, name, deadly(getattr(owner, name)))
arrays = {f"part{i}/a": np.full(100, number) for i in range(4)}
save_folder(path, "plt", {"number": number}, arrays, force=True)
"""


def run_killed_writer(path, number, fatal_step, two_steps=False):
    arguments = [str(path), str(number), str(fatal_step), str(two_steps)]
    return subprocess.run([sys.executable, "-c", KILLED_WRITER, *arguments], check=False).returncode


# 0: the first array is written, not synced; 4: so is the manifest; 10: all is synced; 11: just moved.
@pytest.mark.parametrize("fatal_step", [0, 4, 10, 11])
def test_a_killed_writer_leaves_nothing_under_a_new_name(tmp_path, fatal_step):
    path = tmp_path / "m"
    assert run_killed_writer(path, 1, fatal_step) == -signal.SIGKILL
    assert found(path) == (1 if fatal_step == 11 else None)
    save(path, 2, force=True)
    assert found(path) == 2
    assert os.listdir(tmp_path) == ["m"]  # the dead writer's leftovers are gone


# 12: the old model, swapped out, is half removed.
@pytest.mark.parametrize("fatal_step", [0, 4, 10, 11, 12])
def test_a_killed_writer_leaves_the_old_or_the_new_model(tmp_path, fatal_step):
    path = tmp_path / "m"
    save(path, 1)
    assert run_killed_writer(path, 2, fatal_step) == -signal.SIGKILL
    assert found(path) == (1 if fatal_step < 11 else 2)
    assert len(os.listdir(tmp_path)) == 2
    save(path, 3, force=True)
    assert found(path) == 3
    assert os.listdir(tmp_path) == ["m"]


def test_where_folders_cannot_be_exchanged_a_writer_killed_between_the_renames_leaves_a_pointer(tmp_path):
    path = tmp_path / "m"
    save(path, 1)
    # Steps 0 to 9 sync, 10 tries to exchange, 11 renames the old folder away, 12 would rename the new one in.
    assert run_killed_writer(path, 2, 12, two_steps=True) == -signal.SIGKILL
    assert found(path) is None
    with pytest.raises(ModelError, match=r"an interrupted replacement left it in .*\.old"):
        load_folder(path)
    old = _replace.set_aside(path)
    assert found(old) == 1
    os.rename(old, path)
    assert found(path) == 1
    save(path, 3, force=True)
    assert os.listdir(tmp_path) == ["m"]


def test_the_work_of_a_living_writer_is_not_tidied_away(tmp_path):
    path = tmp_path / "m"
    with _replace.staging_folder(path) as staging:
        _arrays.write_array(staging, "a", np.arange(3))
        save(path, 1)
        assert (staging / "a.npy").exists()
    assert os.listdir(tmp_path) == ["m"]


def test_a_folder_of_another_name_is_not_tidied_away(tmp_path):
    for name in [
        ".other.longleaf-00000000",
        ".m.longleaf-0000000",
        "m.longleaf-00000000",
        ".m.longleaf-0000000x",
    ]:
        (tmp_path / name).mkdir()
    (tmp_path / ".m.longleaf-00000000").mkdir()
    save(tmp_path / "m", 1)
    assert len(os.listdir(tmp_path)) == 5


@pytest.mark.parametrize("two_steps", [False, True])
def test_a_path_taken_while_writing_is_not_overwritten(tmp_path, monkeypatch, two_steps):
    path = tmp_path / "m"
    if two_steps:
        without_exchange(monkeypatch)
    publish = _replace.publish

    def late(*arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr(_replace, "publish", publish)
            save(path, 1)
        publish(*arguments, **options)

    monkeypatch.setattr(_replace, "publish", late)
    with pytest.raises(ModelExistsError, match="was created while it was being written"):
        save(path, 2)
    assert found(path) == 1
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("two_steps", [False, True])
def test_a_reader_always_finds_one_whole_model_while_writers_replace_it(tmp_path, monkeypatch, two_steps):
    path = tmp_path / "m"
    save(path, 0)
    if two_steps:
        without_exchange(monkeypatch)
    failures = []
    done = threading.Event()

    def replace():
        try:
            for number in range(1, 40):
                save(path, number, force=True)
        except BaseException as error:
            failures.append(error)
        finally:
            done.set()

    writer = threading.Thread(target=replace)
    writer.start()
    seen = [0]
    held = []
    while not done.is_set():
        folder = load_folder(path, verify=True)
        held.append(folder)
        seen.append(folder.meta["number"])
        assert all(np.all(array == seen[-1]) for array in folder.arrays.values())
        held = held[-20:]
    writer.join()
    assert failures == []
    assert seen == sorted(seen)
    assert len(set(seen)) > 2
    assert all(np.all(a == old.meta["number"]) for old in held for a in old.arrays.values())
    assert found(path) == 39


def test_two_writers_with_force_leave_one_whole_model(tmp_path):
    path = tmp_path / "m"
    save(path, 0)
    failures = []

    def replace(first):
        try:
            for number in range(first, first + 15):
                save(path, number, force=True)
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=replace, args=(first,)) for first in (100, 200)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert found(path) in (114, 214)
    assert os.listdir(tmp_path) == ["m"]
