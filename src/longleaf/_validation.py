"""Everything that a caller can get wrong is caught here."""


class DataError(ValueError):
    """Data that cannot be used; the message is one sentence that says where and what was found."""
