"""Memory of the host that GPUs read: who uses it, and when it is given back. Without a GPU."""

import ctypes

import pytest
import torch

import lloydformer.engines.cuda.pinned_memory as pinned_memory
from lloydformer.engines.cuda.pinned_memory import MemoryRegister


class Driver:
    """Remembers what is registered, as CUDA does, and by which flags."""

    def __init__(self, refused=()):
        self.known, self.asked, self.refused = {}, [], refused

    def cuMemHostRegister_v2(self, address, size, flags):  # noqa: N802
        self.asked.append(flags)
        start, stop = address.value, address.value + size.value
        overlaps = any(start < b and a < stop for a, b in self.known.items())
        if overlaps or flags in self.refused:
            return 712
        self.known[start] = stop
        return 0

    def cuMemHostUnregister(self, address):  # noqa: N802
        del self.known[address.value]
        return 0


@pytest.fixture
def driver(monkeypatch):
    found = Driver()
    found.waited = []
    monkeypatch.setattr(pinned_memory, "driver", lambda: found)
    monkeypatch.setattr(pinned_memory, "is_file_mapping", lambda address: False)
    monkeypatch.setattr(torch.cuda, "synchronize", found.waited.append)
    return found


def test_the_last_user_gives_it_back(driver):
    memory, users = (4096, 100), MemoryRegister()
    assert users.take(memory, 0)
    assert users.take(memory, 0)
    assert users.take(memory, 1)
    assert len(driver.asked) == 1
    users.give_back(memory, 0)
    users.give_back(memory, 1)
    assert driver.known == {4096: 4196}
    users.give_back(memory, 0)
    assert driver.known == {}
    assert driver.waited == [0, 1, 0]
    assert users.take(memory, 0)


def test_memory_of_which_a_part_is_registered_is_refused(driver):
    users = MemoryRegister()
    assert users.take((4096, 100), 0)
    assert not users.take((4096, 200), 0)
    assert not users.take((4100, 10), 0)
    users.give_back((4096, 100), 0)
    assert users.take((4096, 200), 0)


def test_it_is_given_back_although_the_gpu_has_failed(driver, monkeypatch):
    def fails(gpu):
        raise RuntimeError("the GPU has failed")

    users = MemoryRegister()
    users.take((4096, 100), 0)
    monkeypatch.setattr(torch.cuda, "synchronize", fails)
    with pytest.raises(RuntimeError, match="the GPU has failed"):
        users.give_back((4096, 100), 0)
    assert driver.known == {}


@pytest.mark.parametrize(("of_a_file", "asked"), [(False, [11, 3]), (True, [11])])
def test_files_are_registered_for_reading_alone(driver, of_a_file, asked, monkeypatch):
    driver.refused = (11,)
    monkeypatch.setattr(pinned_memory, "is_file_mapping", lambda address: of_a_file)
    assert MemoryRegister().take((4096, 100), 0) == (not of_a_file)
    assert driver.asked == asked


def test_rows_are_kept_until_the_gpu_has_read_them(driver, monkeypatch):
    users = MemoryRegister()
    monkeypatch.setattr(pinned_memory, "_REGISTER", users)
    points = torch.ones(4, 2)
    memory = points.data_ptr(), points.nbytes
    users.take(memory, 0)
    kept = pinned_memory.PinnedRows(points, 0)
    assert memory[0] in driver.known
    del points
    assert ctypes.cast(memory[0], ctypes.POINTER(ctypes.c_float))[0] == 1
    del kept
    assert driver.known == {}
    assert driver.waited == [0]
