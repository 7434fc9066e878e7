"""The number of cases and the seed of the fuzz tests."""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, seed, settings

CASES = int(os.environ.get("HANDIWORK_FUZZ_CASES") or 500)
"""A sample; ``make test-fuzz`` sets 10,000."""

SEED = int(os.environ.get("HANDIWORK_FUZZ_SEED") or random.SystemRandom().randrange(2**32))
"""Each fuzz test prints it; HANDIWORK_FUZZ_SEED repeats a run."""

print(f"HANDIWORK_FUZZ_SEED={SEED}")

fuzz_settings = settings(
    max_examples=CASES, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True
)
fuzz_seed = seed(SEED)
