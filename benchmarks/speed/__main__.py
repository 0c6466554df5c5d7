"""``python -m benchmarks.speed``: see :mod:`benchmarks.speed.study`."""

from benchmarks.speed.study import main

main()
