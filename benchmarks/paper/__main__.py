"""``python -m benchmarks.paper``: see :mod:`benchmarks.paper.study`."""

from benchmarks.paper.study import main

main()
