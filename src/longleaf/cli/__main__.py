"""Run the command line by ``python -m longleaf.cli``."""

import sys

from longleaf.cli import main

sys.exit(main())
