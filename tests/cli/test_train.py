"""Training and usage as scripts see them: judged by output, status and files."""

import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.commands import COMMAND, complaint, fill, run_well


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("cli"))


def test_train_ends_with_time_memory_and_size(folder: Path, tmp_path: Path) -> None:
    said = run_well("train", folder / "train.txt", "-o", tmp_path / "m.ll")
    assert " s, peak memory " in said
    assert "model size" in said


def test_train_gives_the_estimators_model(folder: Path) -> None:
    X, Y = ll.load_xmlc(folder / "train.txt")
    want = ll.PLT(max_leaf=2, random_state=1).fit(X, Y).top_k(X)
    got = ll.load(folder / "model.ll").top_k(X)
    np.testing.assert_array_equal(got.labels, want.labels)
    np.testing.assert_array_equal(got.scores, want.scores)


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ((), {"n_trees": 3, "arity": 32, "loss": "squared-hinge", "C_scale": None, "random_state": 1}),
        (("--preset", "bonsai"), {"tree": "unbalanced", "arity": 100, "loss": "squared-hinge", "C": 1.0}),
        (("--preset", "bonsai", "--arity", 4, "-C", 2), {"tree": "unbalanced", "arity": 4, "C": 2.0}),
        (("--preset", "paper", "--loss", "squared-hinge"), {"loss": "squared-hinge", "C": None}),
        (("--preset", "paper", "--loss", "log"), {"loss": "log", "C": 16.0}),
        (
            ("--positive-weight", "propensity", "--propensity", "0.5,0.4"),
            {"positive_weight": "propensity", "propensity": (0.5, 0.4)},
        ),
        (("--positive-weight", "2.5"), {"positive_weight": 2.5, "propensity": (0.55, 1.5)}),
        (("--seed", 7, "--trees", 1, "--threads", 1), {"random_state": 7, "n_trees": 1, "n_jobs": 1}),
    ],
)
def test_options_override_the_preset_and_the_rest_stays_default(
    folder: Path, tmp_path: Path, options: tuple[object, ...], want: dict[str, object]
) -> None:
    run_well("train", folder / "train.txt", "-o", tmp_path / "m.ll", *options)
    params = ll.load(tmp_path / "m.ll").get_params()
    assert {name: params[name] for name in want} == want


def test_br_is_trained_and_refuses_what_is_about_trees(folder: Path, tmp_path: Path) -> None:
    run_well(
        "train",
        folder / "train.txt",
        "-o",
        tmp_path / "br.ll",
        "--model",
        "br",
        "-C",
        3,
        "--positive-weight",
        "propensity-balanced",
    )
    model = ll.load(tmp_path / "br.ll")
    assert isinstance(model, ll.BR)
    assert (model.C, model.positive_weight) == (3.0, "propensity-balanced")
    for option in ("--trees", "--arity", "--max-leaf"):
        said = complaint("train", folder / "train.txt", "-o", tmp_path / "x.ll", "--model", "br", option, 2)
        assert option in said
    assert not (tmp_path / "x.ll").exists()


def test_train_reads_standard_input_and_compressed_files_alike(folder: Path, tmp_path: Path) -> None:
    X, Y = ll.load_xmlc(folder / "train.txt")
    ll.save_xmlc(tmp_path / "train.txt.xz", X, Y)
    run_well("train", "-", "-o", tmp_path / "in.ll", stdin=(folder / "train.txt").read_bytes())
    run_well("train", tmp_path / "train.txt.xz", "-o", tmp_path / "xz.ll")
    piped, packed = (ll.load(tmp_path / name).origin_ for name in ("in.ll", "xz.ll"))
    assert piped["data_digest"] == packed["data_digest"]
    assert piped["data"] == "<stdin>"


def test_an_existing_model_is_refused_before_reading_and_replaced_with_force(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "m.ll"
    run_well("train", folder / "train.txt", "-o", out, "--trees", 1)
    assert "--force" in complaint("train", "no-such-file.txt", "-o", out)
    run_well("train", folder / "train.txt", "-o", out, "--trees", 2, "--max-leaf", 4, "--force")
    assert len(ll.load(out).trees_) == 2
    (tmp_path / "letters").mkdir()
    assert "letters" in complaint("train", folder / "train.txt", "-o", tmp_path / "letters", "--force")


@pytest.mark.parametrize(
    "text",
    [
        "2 3 2\n0 0:1\n",
        "1 3 2\n5 0:1\n",
        "1 3 2\n0 7:1\n",
        "1 3 2\n0 0:nan\n",
        "1 3 2\n0 0:x\n",
        "",
        "0 0:1\n",
        "2 3 2\n 0:1\n 1:1\n",
    ],
    ids=["lying header", "label", "feature", "nan", "word", "empty", "no header", "no labels at all"],
)
def test_a_bad_file_is_named_and_nothing_is_written(tmp_path: Path, text: str) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text(text)
    assert str(bad) in complaint("train", bad, "-o", tmp_path / "bad.ll")
    assert list(tmp_path.iterdir()) == [bad]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_command_leaves_quietly_and_without_files(tmp_path: Path, number: int, status: int) -> None:
    random = np.random.RandomState(0)
    X = random.rand(1000, 200)
    Y = random.rand(1000, 200) < 0.05
    ll.save_xmlc(tmp_path / "big.txt", X, Y)
    command = [*COMMAND, "train", str(tmp_path / "big.txt"), "-o", str(tmp_path / "m.ll"), "--threads", "1"]
    command += ["--trees", "100"]  # which takes far longer than the signal
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    first_words = process.stderr.readline()  # said when the data are read and training begins
    assert b"1000 rows" in first_words
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status
    assert said == b""
    assert [path.name for path in tmp_path.iterdir()] == ["big.txt"]


@pytest.mark.parametrize(
    ("arguments", "must_say"),
    [
        (["predict", "MODEL", "DATA", "--tail", "1", "--gain", "x"], "--gain"),
        (["predict", "MODEL", "DATA", "--tail", "-1"], "--tail"),
        (["predict", "MODEL", "DATA", "--tail", "nan"], "--tail must be a finite number"),
        (["evaluate", "MODEL", "DATA", "--tail", "inf"], "--tail must be a finite number"),
        (["predict", "MODEL", "DATA", "-k", "0"], "-k"),
        (["predict", "MODEL", "DATA", "--search", "guess"], "--search"),
        (["predict", "MODEL", "DATA", "--beam", "0"], "--beam"),
        (["predict", "MODEL", "DATA", "--beam", "3"], "--beam needs --search beam"),
        (["evaluate", "MODEL", "DATA", "--beam", "10"], "--beam needs --search beam"),
        (["predict", "MODEL", "DATA", "--gain", "nowhere.txt"], "nowhere.txt"),
        (["predict", "MODEL", "nowhere.txt"], "nowhere.txt"),
        (["predict", "nowhere.ll", "DATA"], "nowhere.ll"),
        (["evaluate", "MODEL", "DATA", "-k", "1,x"], "-k"),
        (["evaluate", "MODEL", "DATA", "-k", "0"], "-k"),
        (["evaluate", "MODEL", "DATA", "--propensity", "1"], "--propensity"),
        (["evaluate", "MODEL", "DATA", "--propensity", "1,-1"], "--propensity"),
        (["info", "DATA"], "test.txt"),
        (["train", "DATA"], "-o"),
        (["train", "DATA", "-o", "x.ll", "-C", "0"], "-C"),
        (["train", "DATA", "-o", "x.ll", "-C", "nan"], "-C must"),
        (["train", "DATA", "-o", "x.ll", "--arity", "1"], "--arity"),
        (["train", "DATA", "-o", "x.ll", "--preset", "none"], "--preset"),
        (["train", "DATA", "-o", "no/such/x.ll"], "no/such/x.ll"),
        (["fly"], "fly"),
    ],
)
def test_bad_usage_is_one_sentence(folder: Path, arguments: list[str], must_say: str) -> None:
    place = {"MODEL": str(folder / "model.ll"), "DATA": str(folder / "test.txt")}
    assert must_say in complaint(*(place.get(argument, argument) for argument in arguments))
    assert not Path("x.ll").exists()


def test_version_and_help(folder: Path) -> None:
    assert run_well("--version") == f"longleaf {ll.__version__}\n"
    for command in ("train", "predict", "evaluate", "explain", "split", "tune", "compare", "info", "demo"):
        assert command in run_well("--help")
        assert "Usage" in run_well(command, "--help")


def test_help_says_the_defaults_of_trees_and_shows_flags_without_a_value() -> None:
    said = run_well("train", "--help")
    default = ll.PLT()
    for words in (
        f"--trees {default.n_trees}",
        f"--loss {default.loss}",
        f"-C {default.default_costs[default.loss]:g} ({default.default_costs['log']:g} with --loss log)",
        f"--arity {default.arity}",
        f"--max-leaf {default.max_leaf}",
        f"--tree {default.tree}",
        f"--threshold {default.threshold}",
    ):
        assert words in said
    assert "--force" in said
    assert "bool" not in said.lower()
    assert "bool" not in run_well("--help").lower()
