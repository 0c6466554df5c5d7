"""A report on one model or two: measured, drawn, and put on one page that needs no other file."""

from longleaf.report.problem import Problem, Side

__all__ = ["Problem", "Side"]
