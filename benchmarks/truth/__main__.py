"""``python -m benchmarks.truth``: see :mod:`benchmarks.truth.study`."""

from benchmarks.truth.study import main

main()
