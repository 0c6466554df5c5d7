"""Everything that a caller can get wrong is caught here."""


class ModelError(ValueError):
    """A model folder that cannot be read or written as asked; the message is one sentence for the user."""


class ModelExistsError(ModelError, FileExistsError):
    """The path of a new model is taken."""
