"""The page: sections and a table of contents, without external resources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files

from longleaf import __version__
from longleaf.report import canvas, named, sections
from longleaf.report.examples import examples
from longleaf.report.markup import Html, counted, folded, join, table, tag, text
from longleaf.report.problem import Problem
from longleaf.report.sections import Plot, Section
from longleaf.report.study import Progress, Study, make_study

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The browser must not load anything for the page."""


@dataclass(frozen=True, eq=False)
class Report:
    """A finished report.

    Attributes
    ----------
    problem : Problem
    studies : list of Study
    sections : list of Section
    """

    problem: Problem
    studies: list[Study]
    sections: list[Section]

    def html(self) -> str:
        """Return the page as one HTML document."""
        style = files("longleaf.report").joinpath("style.css").read_text("utf-8")
        names = " and ".join(study.side.name for study in self.studies)
        head = join(
            [
                Html('<meta charset="utf-8">'),
                Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
                Html('<meta name="color-scheme" content="light dark">'),
                Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
                tag("title", f"longleaf report: {names}"),
                tag("style", Html(style)),
            ]
        )
        contents = join(tag("a", one.title, href=f"#{one.name}") for one in self.sections)
        body = join(
            [
                tag("header", _header(self.problem, self.studies)),
                tag("nav", contents),
                tag("main", join(_section(one, self.studies) for one in self.sections)),
                tag("footer", f"longleaf {__version__}, {date.today().isoformat()}"),
            ]
        )
        return (
            f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'
        )

    def figures(self, forms: Sequence[str] = ("svg", "png")) -> dict[str, bytes]:
        """Return every plot as a file: contents by file name; with two models, names end in -a and -b."""
        found = {}
        for plot in (plot for section in self.sections for plot in section.plots):
            for axes, study in zip(plot.axes, self.studies, strict=True):
                for form in forms:
                    found[f"{_plot_name(plot, study)}.{form}"] = canvas.as_file(axes, form)
        return found


def make_report(
    problem: Problem,
    *,
    samples: int = 1000,
    seed: int = 1,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Evaluate one or two models and create the report.

    Parameters
    ----------
    problem : Problem
        Models, rows and true labels.
    samples : int
        Number of bootstrap resamples for the bands.
    seed : int
        The same seed gives the same bands.
    n_jobs : int, optional
        Threads for prediction; default: those of the model.
    progress : callable, optional
        Called from time to time with the share that is done.
    """
    studies = []
    n_sides = len(problem.sides)
    for number, side in enumerate(problem.sides):
        letter = "AB"[number] if n_sides > 1 else ""

        def report_share(share: float, number: int = number) -> None:
            if progress is not None:
                progress((number + share) / n_sides)

        studies.append(
            make_study(
                problem, side, letter, samples=samples, seed=seed, n_jobs=n_jobs, progress=report_share
            )
        )
    found = [named.overview(problem, studies, samples, seed)]
    if n_sides > 1:
        found.append(named.against(problem, studies, samples, seed))
    rest = (
        sections.reliability, sections.sizes, sections.long_tail, sections.dial, sections.recall,
        named.changed, named.hardest, examples, sections.cost, sections.constants,
    )  # fmt: skip
    found += [one(problem, studies) for one in rest]
    return Report(problem, studies, found)


def _header(problem: Problem, studies: Sequence[Study]) -> Html:
    content: list[object] = [tag("p", "longleaf report", class_="kicker")]
    title = " against ".join(study.side.name for study in studies)
    content.append(tag("h1", title))
    content.append(tag("p", f"evaluated on {counted(problem.n_rows, 'row')} of {problem.data}", class_="sub"))
    for study in studies:
        model, side = study.side.model, study.side
        kind = {"plt": "label trees", "br": "one classifier per label"}.get(model.kind, model.kind)
        if model.kind == "plt":
            kind = counted(len(model.trees_), "label tree")
        facts = (
            f"{kind}, {model.loss} loss, {'words' if side.tagger else 'features'}: {model.n_features_in_:,}, "
            f"labels: {model.n_labels_:,}, trained on {counted(model.n_rows_, 'row')}"
        )
        settings = [(name, value) for name, value in model.origin_.get("settings", {}).items()]
        origin = [(name, value) for name, value in model.origin_.items() if name != "settings"]
        rows = [(name, str(value)) for name, value in origin + settings]
        lead = f"{study.letter}: {facts}" if study.letter else facts
        content.append(folded(lead, table(f"settings{study.letter}", ("setting", "value"), rows, words=2)))
    return join(content)


def _section(section: Section, studies: Sequence[Study]) -> Html:
    figures = [
        tag(
            "figure",
            join(
                [
                    Html(canvas.as_inline(axes, _plot_name(plot, study), text(plot.read))),
                    tag("figcaption", plot.read),
                ]
            ),
        )
        for plot in section.plots
        for axes, study in zip(plot.axes, studies, strict=True)
    ]
    content = [tag("h2", section.title), tag("p", section.lead, class_="lead")]
    if figures:
        content.append(tag("div", join(figures), class_="plots"))
    return tag("section", join([*content, section.body]), id=section.name)


def _plot_name(plot: Plot, study: Study) -> str:
    return f"{plot.name}-{study.letter.lower()}" if study.letter else plot.name
