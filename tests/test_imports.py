"""Imports point down: what people use stands on what it is made of, deferred imports included."""

import sys
from inspect import ismodule

import pytest

import longleaf
from tools.import_graph import FIGURE, LEVELS, draw, graph, imported

LEVEL = {name: number for number, names in enumerate(LEVELS) for name in names}
GRAPH = graph()


def test_every_package_has_a_level():
    named = set(GRAPH) | {target for targets in GRAPH.values() for target in targets}
    assert not named - set(LEVEL)


@pytest.mark.parametrize("source", sorted(GRAPH))
def test_imports_point_down(source):
    up = {target: files for target, files in GRAPH[source].items() if LEVEL[target] <= LEVEL[source]}
    assert not up, f"{source} must not import {', '.join(up)}: see {up}"


def test_deferred_imports_count_and_those_of_type_checkers_do_not(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from longleaf.cli import main\nelse:\n    import longleaf.io\n"
        "def later():\n    from longleaf.server import app\n"
    )
    assert set(imported(path)) == {"longleaf.io", "longleaf.server.app"}


def test_the_figure_is_drawn_from_the_code():
    assert FIGURE.read_text("utf-8") == draw(GRAPH), "run: python tools/import_graph.py"


def test_the_names_of_functions_do_not_hide_modules():
    modules = {name.split(".")[1] for name in sys.modules if name.startswith("longleaf.")}
    hidden = [name for name in modules & set(longleaf.__all__) if not ismodule(getattr(longleaf, name))]
    assert not hidden
