"""Settings that all tests share."""

from hypothesis import HealthCheck, settings

# Compiling the kernels makes the first example slow, so no example has a deadline.
settings.register_profile("rposst", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("rposst")
