"""Exchanges between ranks: threads stand for processes, and a barrier for the network."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from lloydformer.engines.ranks.group import RankError, Ranks, pickled


class Network:
    """All-gathers of some threads; keeps the sizes of their messages."""

    def __init__(self, size):
        self.barrier, self.messages, self.sizes = threading.Barrier(size), [b""] * size, []

    def gather(self, ranks, message, room):
        self.messages[ranks.rank] = len(message).to_bytes(8, "little") + message[:room]
        if ranks.rank == 0:
            self.sizes.append(room)
        self.barrier.wait(5)
        found = [one + bytes(8 + room - len(one)) for one in self.messages]
        self.barrier.wait(5)
        return found


def on_ranks(size, program):
    """What a program returns on each rank, and the sizes of the messages."""
    network = Network(size)

    class Threads(Ranks):
        def _all_gather(self, message, room):
            return network.gather(self, message, room)

    with ThreadPoolExecutor(size) as pool:
        running = [pool.submit(program, Threads(rank, size)) for rank in range(size)]
        return [one.result(20) for one in running], network.sizes


def test_everyone_gets_the_values_of_all():
    found, sizes = on_ranks(3, lambda ranks: ranks.gather((ranks.rank, torch.arange(ranks.rank))))
    for values in found:
        assert [rank for rank, _ in values] == [0, 1, 2]
        assert [len(tensor) for _, tensor in values] == [0, 1, 2]
    assert len(sizes) == 1


def test_a_longer_message_takes_a_second_exchange_once_for_its_kind():
    def program(ranks):
        for _ in range(3):
            assert ranks.gather(b"x" * 5000 * ranks.rank, "long") == [b"", b"x" * 5000]
        assert ranks.gather(1, "short") == [1, 1]

    _, sizes = on_ranks(2, program)
    assert sizes == [1024, sizes[1], sizes[1], sizes[1], 1024]


def test_an_error_is_raised_everywhere():
    def fail(ranks):
        def work():
            if ranks.rank == 1:
                raise KeyError("it")
            return ranks.rank

        with pytest.raises((KeyError, RankError)) as raised:
            ranks.gather_results(work)
        assert ranks.gather(7) == [7, 7, 7]  # all go on together
        return raised.value

    (first, own, last), _ = on_ranks(3, fail)
    assert isinstance(own, KeyError)
    assert str(first) == str(last) == "rank 1: KeyError: 'it'"


def test_a_value_error_stays_one_and_rank_0_may_work_for_all():
    def program(ranks):
        assert ranks.from_first(lambda: f"by {ranks.rank}") == "by 0"
        with pytest.raises(ValueError) as raised:
            ranks.from_first(lambda: int("x"))
        return str(raised.value)

    (own, other), _ = on_ranks(2, program)
    assert other == f"rank 0: {own}"


def test_tensors_are_sent_without_the_storage_that_they_are_a_view_of():
    assert len(pickled(torch.zeros(10_000)[:10])) < 1000


def test_one_rank_needs_no_network():
    assert Ranks().gather(1) == [1]
    with pytest.raises(ZeroDivisionError):
        Ranks().gather_results(lambda: 1 // 0)
