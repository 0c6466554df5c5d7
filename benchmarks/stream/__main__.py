"""``python -m benchmarks.stream``: see :mod:`benchmarks.stream.study`."""

from benchmarks.stream.study import main

main()
