"""Settings that all tests share."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Compiling the kernels makes the first example slow, so no example has a deadline.
settings.register_profile("rposst", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("rposst")


@pytest.fixture(autouse=True)
def same_backends_for_every_test() -> Iterator[None]:
    """Taking a backend out of the table and putting it back changes the table's order, and order decides `auto`."""
    from rposst_opt.backends import BACKENDS

    before = dict(BACKENDS)
    yield
    BACKENDS.clear()
    BACKENDS.update(before)
