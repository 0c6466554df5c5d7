"""longleaf: the few right labels among millions, the rare ones included."""

__version__ = "0.1.0"
