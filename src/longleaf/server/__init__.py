"""An HTTP service for a model: suggestions, a web page to try them, metrics and hot reload.

Requires the extra ``serve``. `longleaf.server.process.run` starts it, and so does ``longleaf serve``.
"""
