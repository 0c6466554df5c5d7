"""A model behind HTTP: suggestions, a page to try them on, metrics and hot reload.

Needs the extra ``serve``. `longleaf.server.process.run` starts it; the command line is ``longleaf serve``.
"""
