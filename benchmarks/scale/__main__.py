"""``python -m benchmarks.scale``: see :mod:`benchmarks.scale.study`."""

from benchmarks.scale.study import main

main()
