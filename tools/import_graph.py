"""The import graph of longleaf: which package imports which, deferred imports included.

    python tools/import_graph.py            # draws docs/figures/imports.svg

`LEVELS` is the order that the design asks for. An arrow may point down only, and a test holds it there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "longleaf"
FIGURE = ROOT / "docs" / "figures" / "imports.svg"

LEVELS = (
    ("cli",),
    ("server", "report", "distributed", "client"),
    ("tuning", "importing", "models", "planning", "store"),
    ("tagger", "objectives", "encoders.tuning"),
    ("suggest", "_tagger_files", "reading"),
    ("fusion",),
    ("explain", "baselines"),
    ("plt", "br"),
    ("estimator",),
    ("learning", "presets"),
    ("training",),
    ("datasets",),
    ("text",),
    ("conformal",),
    ("calibration",),
    ("search",),
    ("weights",),
    ("trees",),
    ("propensity", "encoders"),
    ("metrics", "io", "split"),
    ("_validation",),
    ("_core",),
)
"""Packages and modules, from those that people use down to native code."""

HIGHER = ("encoders.tuning",)
"""Packages that stand higher than the one they are in, which only loads them when they are asked for."""


def imported(path: Path) -> Iterator[str]:
    """Yield every module of longleaf that a file imports when it runs."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("longleaf"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("longleaf"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Walk the tree, leaving out what only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield other
                yield from _executed(other)
            continue
        yield child
        yield from _executed(child)


def package_of(module: str) -> str:
    """Return the package or top-level module of longleaf that a dotted name belongs to."""
    names = module.split(".")
    inner = ".".join(names[1:3])
    return inner if inner in HIGHER else names[1] if len(names) > 1 else ""


def graph() -> dict[str, dict[str, list[str]]]:
    """Return, per package, the packages that it imports, and the files that do."""
    known = {path.stem for path in SOURCE.glob("*.py")} | {p.name for p in SOURCE.iterdir() if p.is_dir()}
    known |= {"_core", *HIGHER}
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE)
        source = package_of(".".join(("longleaf", *relative.with_suffix("").parts)))
        if source == "__init__":
            continue
        for module in imported(path):
            target = package_of(module)
            own = target == source or target.startswith(f"{source}.")
            if target in known and not own and target not in ("__init__", "__main__"):
                found.setdefault(source, {}).setdefault(target, []).append(str(relative))
    return found


def reduced(found: dict[str, dict[str, list[str]]]) -> dict[str, set[str]]:
    """Return only the imports that no longer path through other packages implies."""

    def reachable(source: str) -> set[str]:
        direct = set(found.get(source, ()))
        return direct.union(*(reachable(target) for target in direct))

    return {
        source: set(targets) - set().union(*(reachable(target) for target in targets))
        for source, targets in found.items()
    }


WIDTH, HEIGHT, GAP, TOP = 132, 30, 22, 34
STYLE = (
    "text{font:13px sans-serif;fill:#222}rect{fill:#eef3ee;stroke:#3b6b4a}path{fill:none;stroke:#8aa395;"
    "stroke-width:1}path:hover{stroke:#c0392b;stroke-width:2}"
)


def draw(found: dict[str, dict[str, list[str]]]) -> str:
    """Return the graph as SVG: a row per level, an arrow per import that is not implied."""
    widest = max(len(level) for level in LEVELS)
    width, height = widest * (WIDTH + GAP) + GAP, TOP + len(LEVELS) * (HEIGHT + GAP) + GAP
    place = {}
    for row, level in enumerate(LEVELS):
        left = (width - len(level) * (WIDTH + GAP) + GAP) / 2
        for column, name in enumerate(level):
            place[name] = left + column * (WIDTH + GAP), TOP + row * (HEIGHT + GAP)
    arrows, boxes = [], []
    for source, targets in sorted(reduced(found).items()):
        for target in sorted(targets):
            (x1, y1), (x2, y2) = place[source], place[target]
            begin, end = (x1 + WIDTH / 2, y1 + HEIGHT), (x2 + WIDTH / 2, y2)
            bend = (begin[0] + end[0]) / 2 + (
                1.5 * WIDTH if begin[0] == end[0] and y2 - y1 > HEIGHT + GAP else 0
            )
            curve = f"M{begin[0]:g} {begin[1]:g}Q{bend:g} {(begin[1] + end[1]) / 2:g} {end[0]:g} {end[1]:g}"
            arrows.append(
                f'<path d="{curve}"><title>{escape(source)} imports {escape(target)}</title></path>'
            )
    for name, (x, y) in place.items():
        boxes.append(f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>')
        label = f'<text x="{x + WIDTH / 2:g}" y="{y + 20:g}" text-anchor="middle">{escape(name)}</text>'
        boxes.append(label)
    title = '<text x="18" y="20">Imports point down; those implied by a longer path are not drawn.</text>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">'
    background = '<rect x="0" y="0" width="100%" height="100%" style="fill:#fff;stroke:none"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", background, title, *arrows, *boxes, "</svg>"]) + "\n"


if __name__ == "__main__":
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    FIGURE.write_text(draw(graph()), "utf-8")
    print(FIGURE)
