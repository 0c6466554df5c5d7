"""How hard Hypothesis tries: HYPOTHESIS_PROFILE=quick for slow builds, thorough for a long look."""

import os
import signal

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]  # brute forces are slow by intention
settings.register_profile("standard", max_examples=60, deadline=None, suppress_health_check=SLOW)
settings.register_profile("quick", parent=settings.get_profile("standard"), max_examples=15)
settings.register_profile("thorough", parent=settings.get_profile("standard"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "standard"))

# A shell starts what runs in its background deaf to Ctrl-C, and children inherit that; some tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)
