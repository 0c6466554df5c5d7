"""A report on one or two models: metrics, plots and examples on one self-contained page."""

from longleaf.report.problem import Problem, Side

__all__ = ["Problem", "Side"]
