"""Lines for scripts that measure their own peak of memory."""

import sys

import pytest

USED = """
def used():
    with open("/proc/self/status") as lines:  # ru_maxrss would count the parent before the exec
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
"""
"""Defines used(): the peak so far, in bytes."""


def skip_without_proc() -> None:
    if sys.platform != "linux":
        pytest.skip("peaks of memory are read from /proc, which Linux has")
