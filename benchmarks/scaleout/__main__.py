"""``python -m benchmarks.scaleout``: see :mod:`benchmarks.scaleout.study`."""

from benchmarks.scaleout.study import main

main()
