"""What is known of the memory of the host."""

import mmap

import numpy as np
import pytest
import torch

import lloydformer.data.host_memory as host_memory
import lloydformer.estimators.devices as devices
from lloydformer.data.host_memory import is_file_mapping, pinnable_memory


def test_files_are_told_from_memory(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((4096, 2)))
    rows = np.load(path, mmap_mode="r")
    with path.open("rb") as file:
        raw = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    tensor = torch.from_numpy(np.load(path, mmap_mode="c"))
    for mapped in (rows, np.asarray(rows)[1:], raw, tensor.numpy()):
        assert is_file_mapping(mapped.ctypes.data)
    for anonymous in (np.zeros(3), np.zeros(1 << 20), torch.zeros(5).numpy()):
        assert not is_file_mapping(anonymous.ctypes.data)


def test_memory_is_a_file_where_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(host_memory, "_PROCESS", tmp_path)
    assert is_file_mapping(np.zeros(3).ctypes.data)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 600 kB left, and no control groups."""
    for name, place in {"_PROCESS": "self", "_CGROUP_ROOT": "groups"}.items():
        (tmp_path / place).mkdir()
        monkeypatch.setattr(host_memory, name, tmp_path / place)
    monkeypatch.setattr(host_memory, "_MEMINFO", tmp_path / "meminfo")
    (tmp_path / "meminfo").write_text("MemTotal: 900 kB\nMemAvailable:   600 kB\nHugePages: 0\n")
    return tmp_path


def group(folder, limit, used, droppable, old=False):
    """The files of a control group."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ("limit_in_bytes", "usage_in_bytes") if old else ("max", "current")
    for name, text in zip(names, (limit, used), strict=True):
        (folder / f"memory.{name}").write_text(f"{text}\n")
    total = "total_" if old else ""
    (folder / "memory.stat").write_text(f"anon 1\n{total}inactive_file {droppable}\n")


def test_half_of_what_the_machine_has_left(machine):
    assert pinnable_memory() == 300 * 1024


def test_what_a_container_has_left(machine):
    (machine / "self" / "cgroup").write_text("0::/\n")
    group(machine / "groups", 8192, 6144, 2048)
    assert pinnable_memory() == 2048


def test_the_tightest_of_nested_groups_counts(machine):
    (machine / "self" / "cgroup").write_text("1:name=systemd:/\n0::/slice/job\n")
    group(machine / "groups" / "slice" / "job", "max", 100, 0)
    group(machine / "groups" / "slice", 5000, 4000, 200)
    group(machine / "groups", 9000, 4000, 0)
    assert pinnable_memory() == 600


def test_groups_of_older_systems(machine):
    (machine / "self" / "cgroup").write_text("4:memory:/hidden/job\n0::/\n")
    group(machine / "groups" / "memory", 10_000, 9_000, 0, old=True)
    assert pinnable_memory() == 500


def test_a_container_that_is_full_has_nothing_left(machine):
    (machine / "self" / "cgroup").write_text("0::/\n")
    group(machine / "groups", 4096, 5000, 0)
    assert pinnable_memory() == 0


@pytest.mark.parametrize("text", ["MemTotal: 900 kB\n", None])
def test_nothing_may_be_locked_where_nothing_is_known(machine, text):
    (machine / "meminfo").unlink()
    if text is not None:
        (machine / "meminfo").write_text(text)
    assert pinnable_memory() == 0


def test_only_files_need_it(tmp_path, monkeypatch):
    points = torch.zeros(4, 2)
    monkeypatch.setattr(devices, "pinnable_memory", lambda: 31)
    assert devices.can_pin(points)
    monkeypatch.setattr(devices, "is_file_mapping", lambda address: True)
    assert not devices.can_pin(points)
    assert devices.can_pin(points[:3])
