"""``python -m benchmarks.load``: see :mod:`benchmarks.load.study`."""

from benchmarks.load.study import main

main()
