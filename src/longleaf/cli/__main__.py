"""Run the command line with ``python -m longleaf.cli``."""

import sys

from longleaf.cli import main

sys.exit(main())
