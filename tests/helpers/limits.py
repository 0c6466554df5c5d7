"""Limits that a process sets on itself."""

import resource
from pathlib import Path


def limit_memory(spare_bytes):
    """Let the process have so much address space beside what it has; a sanitizer has a lot."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + spare_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
