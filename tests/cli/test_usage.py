"""What goes wrong around a command: empty paths, closed streams, places that cannot be written to."""

import subprocess
from pathlib import Path

import pytest

import longleaf as ll
from tests.helpers.commands import COMMAND, complaint, fill, run, run_well

UNWRITABLE = Path("/proc")
"""A folder in which nobody can make anything, not even a user who may do all else."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("usage"))


# ------------------------------------------------------------ options


def test_a_propensity_that_does_nothing_is_said(folder: Path) -> None:
    both = ("predict", folder / "model.ll", folder / "test.txt", "--propensity", "0.5,0.4")
    written = "Standard output: 30 rows written\n"
    for idle in ((), ("--tail", 0)):
        result = run(*both, *idle)
        assert result.status == 0
        assert result.stderr == f"--propensity has no effect here: it only applies to --tail.\n{written}"
        assert result.stdout == run_well("predict", folder / "model.ll", folder / "test.txt")
    assert run(*both, "--tail", 1).stderr == written


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--arity", 1),
        ("--arity", 2**31),
        ("--arity", 10**30),
        ("--max-leaf", 0),
        ("--max-leaf", 2**31),
        ("--trees", 0),
        ("--trees", 1001),
        ("-C", 0),
        ("-C", -1),
        ("-C", "inf"),
        ("-C", "nan"),
        ("--threshold", -0.1),
        ("--threshold", "inf"),
        ("--positive-weight", 0),
        ("--positive-weight", "nan"),
        ("--positive-weight", "propensty"),
        ("--propensity", "0.5"),
        ("--seed", -1),
    ],
)
def test_settings_out_of_range_are_refused_before_reading(option: str, value: object) -> None:
    said = complaint("train", "no-such-file.txt", "-o", "x.ll", option, value)
    assert option in said
    assert "no-such-file" not in said


def test_merged_trees_need_a_power_of_two(folder: Path, tmp_path: Path) -> None:
    command: tuple[object, ...] = (
        "train",
        "no-such-file.txt",
        "-o",
        tmp_path / "x.ll",
        "--tree",
        "merged",
        "--arity",
    )
    assert "power of two" in complaint(*command, 6)
    command = ("train", folder / "train.txt", "-o", tmp_path / "x.ll", "--tree", "merged", "--arity", 4)
    run_well(*command, "--threshold", 0.3)
    assert (ll.load(tmp_path / "x.ll").tree, ll.load(tmp_path / "x.ll").threshold) == ("merged", 0.3)


# ------------------------------------------------------------ paths


@pytest.mark.parametrize(
    ("arguments", "must_name"),
    [
        (("train", "", "-o", "x.ll"), "DATA"),
        (("train", "no.txt", "-o", ""), "-o"),
        (("train", "no.txt", "-o", "x.ll", "--names", ""), "--names"),
        (("predict", "", "no.txt"), "MODEL"),
        (("predict", "no.ll", ""), "DATA"),
        (("predict", "no.ll", "no.txt", "-o", ""), "-o"),
        (("predict", "no.ll", "no.txt", "--gain", ""), "--gain"),
        (("predict", "no.ll", "no.txt", "--only", ""), "--only"),
        (("evaluate", "no.ll", "no.txt", "--groups", ""), "--groups"),
        (("explain", "no.ll", "--text", "x", "--never", ""), "--never"),
        (("split", "no.txt", "-o", ""), "-o"),
        (("info", ""), "MODEL"),
    ],
)
def test_an_empty_path_is_named_by_its_option(arguments: tuple[str, ...], must_name: str) -> None:
    said = complaint(*arguments)
    assert must_name in said
    assert "must name a file or folder; got an empty string" in said


@pytest.mark.skipif(not UNWRITABLE.is_dir(), reason="there is no /proc here")
@pytest.mark.parametrize("name", ["m.ll", "m" * 250])
def test_a_model_that_cannot_be_written_is_refused_before_reading(name: str, tmp_path: Path) -> None:
    out = UNWRITABLE / name if len(name) < 9 else tmp_path / name
    for command in ("train", "tune"):
        said = complaint(command, "no-such-file.txt", "-o", out)
        assert str(out) in said
        assert "longleaf-" not in said  # the temporary name
        assert "no-such-file" not in said


@pytest.mark.skipif(not UNWRITABLE.is_dir(), reason="there is no /proc here")
@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "o" * 250])
def test_a_file_that_cannot_be_written_is_refused_before_reading(name: str, tmp_path: Path) -> None:
    out = UNWRITABLE / name if len(name) < 20 else tmp_path / name
    said = complaint("predict", "no-such-model.ll", "no-such-file.txt", "-o", out)
    assert f"{out}: " in said
    assert f"/.{name[:3]}" not in said  # the temporary name
    assert list(tmp_path.iterdir()) == []


def test_trying_whether_a_file_can_be_written_leaves_what_is_there(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("old")
    complaint("predict", folder / "model.ll", "no-such-file.txt", "-o", out, "--force")
    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    complaint("train", "no-such-file.txt", "-o", tmp_path / "m.ll")
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("checkpoint", ["m.ll", "no/../m.ll", "m.ll/parts"])
def test_a_checkpoint_where_the_model_shall_be_is_refused_before_reading(
    tmp_path: Path, checkpoint: str
) -> None:
    command: tuple[object, ...] = (
        "train",
        "no-such-file.txt",
        "-o",
        tmp_path / "m.ll",
        "--checkpoint",
        tmp_path / checkpoint,
    )
    assert "--checkpoint must be outside the folder of -o" in complaint(*command)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_with_the_path(folder: Path, tmp_path: Path) -> None:
    limited = 'ulimit -f 1; "$@"'  # a file that grows too large fails as a full disk does
    result = shell(limited, "train", folder / "train.txt", "-o", tmp_path / "m.ll", "--trees", 1)
    assert result.returncode == 2
    assert f"longleaf: {tmp_path / 'm.ll'}: File too large.\n" in result.stderr
    out = tmp_path / "out.jsonl"
    result = shell(limited, "predict", folder / "model.ll", folder / "test.txt", "-o", out)
    assert (result.returncode, result.stderr) == (2, f"longleaf: {out}: File too large.\n")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------ streams that the caller closed


def shell(command: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command by a shell, which can close streams: ``$@`` stands for longleaf and the arguments."""
    whole = ["sh", "-c", command, "sh", *COMMAND, *map(str, arguments)]
    return subprocess.run(whole, capture_output=True, text=True, timeout=120)


def test_a_closed_standard_input_is_said(folder: Path) -> None:
    result = shell('"$@" <&-', "evaluate", folder / "model.ll", "-")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "longleaf: Standard input is closed; name a file in place of -.\n"


def test_a_closed_standard_output_is_said_by_predict_and_no_matter_to_train(
    folder: Path, tmp_path: Path
) -> None:
    result = shell('"$@" >&-', "predict", folder / "model.ll", folder / "test.txt")
    assert result.returncode == 2
    assert result.stderr == "longleaf: Standard output is closed; name a file with -o.\n"
    result = shell('"$@" >&-', "train", folder / "train.txt", "-o", tmp_path / "m.ll", "--trees", 1)
    assert (result.returncode, result.stderr.count("\n")) == (0, 1)
    assert len(ll.load(tmp_path / "m.ll").trees_) == 1


def test_a_closed_standard_error_does_not_spill_into_the_output(folder: Path) -> None:
    whole = ("predict", folder / "model.ll", folder / "test.txt", "--propensity", "0.5,1")
    result = shell('"$@" 2>&-', *whole)
    assert (result.returncode, result.stdout) == (0, run_well(*whole))
    result = shell('"$@" 2>&-', "evaluate", folder / "model.ll", "no-such-file.txt")
    assert (result.returncode, result.stdout) == (2, "")
