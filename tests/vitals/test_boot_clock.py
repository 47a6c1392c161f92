"""A clock that goes on while a machine is suspended."""

import time

from vitals.boot_clock import seconds_since_boot


def test_clock_is_that_of_the_boot_where_there_is_one() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    found = seconds_since_boot()
    assert before <= found <= time.clock_gettime(time.CLOCK_BOOTTIME)
