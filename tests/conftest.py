"""What holds for all tests: no example is judged by how long it takes."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("handiwork", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("handiwork")
