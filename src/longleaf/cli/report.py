"""``longleaf report``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from longleaf._validation import DataError
from longleaf.cli import _console, _options
from longleaf.cli._data import STANDARD_INPUT, check_new_file
from longleaf.cli._groups import takes
from longleaf.cli._names import NameFile, name_file
from longleaf.cli._tables import check_both_match, given, given_fields, label_model
from longleaf.io.streams import open_replacing
from longleaf.io.tag_names import TagNames
from longleaf.models import load
from longleaf.propensity import check_constants
from longleaf.tagger import Tagger


@takes(names=name_file)
def report(
    model: _options.ModelPath,
    data: _options.DataPath,
    out: Annotated[
        str,
        typer.Option("-o", "--out", metavar="FILE", help="HTML page to write.", callback=_options.not_empty),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="MODEL",
            help="Second model, shown side by side on the same rows.",
            callback=_options.not_empty,
        ),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            "--figures",
            metavar="DIR",
            help="Also write every plot to this folder, as SVG and PNG.",
            callback=_options.not_empty,
        ),
    ] = None,
    k: _options.Places = "1,3,5",
    propensity: _options.Propensity = None,
    *,
    names: NameFile | None,
    samples: _options.Samples = 1000,
    seed: _options.Seed = 1,
    threads: _options.Threads = None,
    text: _options.TextFields = None,
    tags: _options.TagsField = None,
    id: _options.IdField = None,
    separator: _options.Separator = None,
    strict: _options.Strict = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing output.")] = False,
) -> None:
    """Evaluate a model on DATA and write a self-contained HTML page of plots, tables and examples."""
    try:
        import_module("matplotlib")
    except ImportError:
        raise DataError("A report needs matplotlib; install longleaf with the extra 'report'.") from None
    from longleaf.report.page import make_report

    places = _options.parse_places(k)
    check_new_file(out, force)
    folder = None if figures is None else _check_folder(figures, force)
    paths = [model] if against is None else [model, against]
    if len(paths) > 1 and data == STANDARD_INPUT:
        raise typer.BadParameter("DATA must be a file, as two models read it; got standard input.")
    models = [load(path) for path in paths]
    constants = check_constants(_options.parse_propensity(propensity, label_model(models[0])))
    fields = given_fields(text=text, tags=tags, separator=separator, id=id)
    check_both_match(data, dict(zip(paths, models, strict=True)), fields | given(strict=strict))
    named = TagNames(()) if names is None else names.read()
    if names is not None and isinstance(models[0], Tagger):
        names.note_unused(named, models[0].classes_)
    with _console.waiting(f"reading {data}"):
        problem = _read(models, _titles(paths), data, named, fields, strict, constants, places)
    with _console.progress_bar("judging") as progress:
        found = make_report(problem, samples=samples, seed=seed, n_jobs=threads, progress=progress)
    with _console.waiting("drawing"):
        page = found.html().encode()
        pictures = {} if folder is None else found.figures()
    _write(Path(out), page)
    for name, content in pictures.items():
        assert folder is not None
        folder.mkdir(exist_ok=True)
        _write(folder / name, content)
    rows = "1 row" if problem.n_rows == 1 else f"{problem.n_rows} rows"
    where = f"{out}: {rows} evaluated, {_console.in_words(len(page))}"
    typer.echo(where + (f"; {len(pictures)} pictures in {figures}" if pictures else ""))


def _read(
    models: list[Any],
    titles: list[str],
    data: str,
    named: TagNames,
    fields: dict[str, Any],
    strict: bool,
    constants: Any,
    places: tuple[int, ...],
) -> Any:
    from longleaf.cli._report_data import read_features, read_texts

    if not isinstance(models[0], Tagger):
        return read_features(models, titles, data, named, constants, places)
    for tagger in models:
        tagger.names = named or tagger.names
    return read_texts(models, titles, data, fields, strict, constants, places)


def _titles(paths: list[str]) -> list[str]:
    """Return the models' folder names, or their whole paths if those are the same."""
    names = [Path(path).resolve().name for path in paths]
    return paths if len(set(names)) < len(names) else names


def _check_folder(path: str, force: bool) -> Path:
    """Reject, before any work, a folder that cannot or must not be written to."""
    folder = Path(path)
    if not folder.exists():
        if not folder.parent.is_dir():
            raise DataError(f"{path} cannot be created: its parent folder does not exist.")
    elif not folder.is_dir():
        raise DataError(f"{path} must be a folder for the figures; got a file.")
    elif any(folder.iterdir()) and not force:
        raise DataError(f"{path} must be a new or empty folder; use --force to write into it anyway.")
    return folder


def _write(path: Path, content: bytes) -> None:
    with open_replacing(path) as file:
        file.write(content)
