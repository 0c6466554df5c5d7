"""What is raised for data and models that cannot be used; also ValueErrors."""

from __future__ import annotations


class DataError(ValueError):
    """Data that cannot be used; the message is one sentence that says where and what was found."""


class ModelError(ValueError):
    """A model folder that cannot be read or written as asked; the message is one sentence for the user."""


class ModelExistsError(ModelError, FileExistsError):
    """The path of a new model is taken."""
