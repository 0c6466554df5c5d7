"""``longleaf info``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from longleaf.cli import _console, _options
from longleaf.cli._tables import label_model
from longleaf.io.storage import folder_bytes
from longleaf.models import load
from longleaf.tagger import Tagger


def info(
    model: _options.ModelPath,
    as_json: _options.Json = False,
    verify: Annotated[bool, typer.Option("--verify", help="Also verify the checksums of all files.")] = False,
) -> None:
    """Show what a model is and where it came from."""
    facts = _facts(model, verify)
    if as_json:
        _console.print_json(facts)
        return
    origin = facts.pop("origin")
    settings, tuning = origin.pop("settings", {}), origin.pop("tuning", {})
    for name in ("trials", "start", "difference"):  # only in --json
        tuning.pop(name, None)
    if facts.get("encoder"):
        one = facts["encoder"]
        meaning = f"{one['columns']} columns of weight {one['weight']:g}"
        facts["encoder"] = f"{one['name']} ({one['fingerprint']}), {meaning}"
    for name in {"bytes", "records_bytes"} & set(facts):
        facts[name] = f"{facts[name]} ({_console.in_words(facts[name])})"
    for heading, section in (("", facts), ("origin", origin), ("settings", settings), ("tuning", tuning)):
        if heading and section:
            typer.echo(f"\n{heading}")
        for name, value in section.items():
            typer.echo(f"  {name:<16} {value}")


def _facts(path: str, verify: bool) -> dict[str, Any]:
    model = load(path, verify=verify)
    trained = label_model(model)
    facts: dict[str, Any] = {
        "model": model.kind,
        "labels": trained.n_labels_,
        "labels_trained": int((trained.label_counts_ != 0).sum()),
        "features": trained.n_features_in_,
        "rows": trained.n_rows_ or None,  # unknown for an imported model
        "trees": len(trained.trees_),
        "nodes": sum(tree.n_nodes for tree in trained.trees_),
        "weights": sum(int(weights["weights"].sum()) for weights in trained.weights_),
        "refined": 0 if trained.refined_ is None else int(trained.refined_.weights["weights"].sum()),
        "coverage": None if trained.risk_control_ is None else trained.risk_control_.largest,  # by fit-sets
        "bytes": folder_bytes(path),
    }
    if isinstance(model, Tagger):
        facts |= {"estimator": trained.kind, "names": len(model.names or {}), "fields": model.fields_}
        records = model.records_
        facts["records_kept"] = 0 if records is None else len(records)
        facts["records_bytes"] = 0 if records is None else records.n_bytes
        facts["encoder"] = None if model.meaning_ is None else model.meaning_.facts
    return facts | ({"verified": True} if verify else {}) | {"origin": dict(trained.origin_)}
