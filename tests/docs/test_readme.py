"""The README runs as it stands: every shell and Python block, top to bottom, in one folder."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

import longleaf as ll
from tests.helpers.data import ROOT
from tests.helpers.pages import Block, blocks
from tests.helpers.reports import Page

SECONDS = 600
NOT_RUN = re.compile(r"make \w+|pip install ")
"""What is shown and not run: it sets up the environment that this test runs in."""


README = blocks((ROOT / "README.md").read_text())


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def script(parts: list[Block]) -> str:
    """Join blocks into one script of a shell, each announced by its number.

    Ports become free ones. A service runs in the background, is waited for, and ends with the next block,
    which asks it.
    """
    ports = {"8000": str(free_port()), "8786": str(free_port())}
    lines, serving = ["set -e"], False
    for number, (language, code) in enumerate(parts):
        for port, free in ports.items():
            code = code.replace(f":{port}", f":{free}").replace(f"--port {port}", f"--port {free}")
        lines.append(f"echo '=== {number}'")
        if language == "python":
            lines += ["python -W error - <<'END_OF_BLOCK'", code.rstrip("\n"), "END_OF_BLOCK"]
            continue
        if serving:
            ready = f"http://127.0.0.1:{ports['8000']}/readyz"
            lines.append(f"until curl -sf {ready} -o ready.txt; do kill -0 $SERVICE && sleep 0.2; done")
        commands, services = code, re.findall(r"^longleaf serve [^#\n]*", code, re.MULTILINE)
        for service in services:
            commands = commands.replace(service, f"{service.rstrip()} --port {ports['8000']} & SERVICE=$! ")
        lines.append(commands)
        if serving:
            lines += ["echo", "kill $SERVICE", "wait $SERVICE || true"]
        serving = bool(services)
    assert not serving, "a service is asked by the next block"
    return "\n".join([*lines, "wait"])


class Run(NamedTuple):
    """The folder that the README has filled, and what each of its blocks printed."""

    folder: Path
    said: list[str]
    complained: str

    def said_by(self, command: str) -> str:
        """Give what the block with this piece of code printed."""
        (number,) = [n for n, block in enumerate(RUN) if command in block.code]
        return self.said[number]


RUN = [block for block in README if block.language in ("sh", "python")]


@pytest.fixture(scope="module")
def readme(tmp_path_factory: pytest.TempPathFactory) -> Run:
    for module, extra in (("matplotlib", "report"), ("uvicorn", "serve"), ("distributed", "distributed")):
        pytest.importorskip(module, reason=f"needs the extra {extra}")
    folder = tmp_path_factory.mktemp("readme")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    output, complaints = folder / "output.txt", folder / "complaints.txt"
    with output.open("w") as out, complaints.open("w") as err:
        # a session of its own, so that what a block leaves in the background ends with the test at the latest
        shell = subprocess.Popen(
            ["bash", "-c", script(RUN)],
            cwd=folder,
            env=os.environ | {"PATH": path},
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            status = shell.wait(SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    assert status == 0, output.read_text()[-2000:] + complaints.read_text()[-4000:]
    said = re.split(r"^=== \d+\n", output.read_text(), flags=re.MULTILINE)[1:]
    return Run(folder, said, complaints.read_text())


def test_every_block_is_run_but_those_that_set_up_or_show_output() -> None:
    assert {block.language for block in README} == {"sh", "python", ""}
    shown = [line for block in README if not block.language for line in block.code.splitlines()]
    for line in shown:
        words = line.split()
        if words[:1] in (["make"], ["pip"]):
            assert NOT_RUN.match(line.strip())
        assert words[:1] not in (["longleaf"], ["python"], ["curl"]), "a command that nobody runs"


def test_the_whole_readme_runs_in_one_folder(readme: Run) -> None:
    assert len(readme.said) == len(RUN)
    made = [
        "split",
        "tagger.ll",
        "tags.jsonl",
        "oil.ll",
        "laws.ll",
        "train.txt",
        "xmlc.ll",
        "suggestions.jsonl",
    ]
    made += ["tuned.ll", "report.html", "rows.store", "big.ll", "checkpoint", "newer.ll", "spread.ll"]
    assert {path.name for path in readme.folder.iterdir()} >= set(made)
    ours, *_ = readme.complained.partition(" - distributed.")  # whose workers log how they are ended
    for line in ("lacked", "is read from", "--separator", "Traceback"):
        assert line not in ours


def test_the_text_commands_tag_and_explain_the_bundled_laws(readme: Run) -> None:
    assert "\n1264  olive oil\n" in readme.said_by("longleaf split")
    assert len((readme.folder / "tags.jsonl").read_text().splitlines()) == 400
    assert ll.load(readme.folder / "tagger.ll").fields_["text"] == ["title", "text"]


def test_the_text_quickstart_suggests_and_explains(readme: Run) -> None:
    said = readme.said_by('tagger.save("oil.ll")')
    assert said.startswith("olive oil ")
    assert "('olive', " in said
    assert "decided at level" in said


def test_nothing_is_judged_on_rows_that_it_was_trained_on(readme: Run) -> None:
    train, dev, test = (_ids(readme.folder / "split" / f"{name}.jsonl") for name in ("train", "dev", "test"))
    assert not (train | dev) & test
    for command in "".join(block.code for block in RUN if block.language == "sh").splitlines():
        words = shlex.split(command.rstrip("\\").replace("'", ""), comments=True)
        if words[1:2] and "split/" in command:
            if words[1] in ("train", "tune"):
                assert words[2] == "split/train.jsonl"
            if words[1] in ("evaluate", "compare", "report"):
                assert "split/test.jsonl" in words


def _ids(path: Path) -> set[str]:
    return {json.loads(line)["id"] for line in path.read_text().splitlines()}


def test_tuning_finds_what_the_readme_says_and_the_report_has_names(readme: Run) -> None:
    assert "may be chance" in readme.said_by("longleaf tune")
    model = ll.load(readme.folder / "tuned.ll")
    assert isinstance(model, ll.Tagger)
    assert model.names is not None
    assert model.names["1264"] == "olive oil"
    gained = Page((readme.folder / "report.html").read_text()).cells("changes-gained")
    assert gained
    assert not any(label.isdigit() for label in gained), "labels have their names there"


def test_the_service_answers(readme: Run) -> None:
    answer = next(line for line in readme.said_by("curl -s").splitlines() if line.startswith("{"))
    (found,) = json.loads(answer)["results"]
    assert found["suggestions"][0]["name"] == "olive oil"


def test_the_feature_quickstarts_gain_on_rare_labels(readme: Run) -> None:
    plain, rare = re.findall(r"psp@1 ([\d.]+)", readme.said_by("load_sample()"))
    assert float(rare) > float(plain)
    assert len((readme.folder / "suggestions.jsonl").read_text().splitlines()) == 1000


def test_many_machines_give_the_same_bits(readme: Run) -> None:
    spread, alone = (ll.load(readme.folder / name) for name in ("spread.ll", "xmlc.ll"))
    for mine, want in zip(spread.weights_, alone.weights_, strict=True):
        assert mine.keys() == want.keys()
        assert all(mine[name].tobytes() == array.tobytes() for name, array in want.items())
