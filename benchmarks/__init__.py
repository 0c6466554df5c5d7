"""Measurements of longleaf and its peers; nothing here is part of the library."""
