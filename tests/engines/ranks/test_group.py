"""Exchanges between ranks: threads stand for processes, and a barrier for the network."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from lloydformer.engines.ranks.group import MessageKind, RankError, Ranks, dump_data


class Network:
    """All-gathers of some threads; keeps the sizes of their messages."""

    def __init__(self, size):
        self.barrier, self.messages, self.sizes = threading.Barrier(size), [b""] * size, []

    def gather(self, ranks, message, size):
        self.messages[ranks.rank] = message + bytes(size - len(message))
        if ranks.rank == 0:
            self.sizes.append(size)
        self.barrier.wait(5)
        found = list(self.messages)
        assert len({len(one) for one in found}) == 1, "an all-gather of different sizes"
        self.barrier.wait(5)
        return found


def on_ranks(size, program):
    """What a program returns on each rank, and the sizes of the messages."""
    network = Network(size)

    class Threads(Ranks):
        def _all_gather(self, message, size):
            return network.gather(self, message, size)

    with ThreadPoolExecutor(size) as pool:
        running = [pool.submit(program, Threads(rank, size)) for rank in range(size)]
        return [one.result(20) for one in running], network.sizes


def test_everyone_gets_the_values_of_all():
    found, sizes = on_ranks(3, lambda ranks: ranks.gather((ranks.rank, torch.arange(ranks.rank))))
    for values in found:
        assert [rank for rank, _ in values] == [0, 1, 2]
        assert [len(tensor) for _, tensor in values] == [0, 1, 2]
    assert len(sizes) == 1


def test_a_longer_message_takes_a_second_exchange_once():
    def program(ranks):
        for _ in range(3):
            assert ranks.gather(b"x" * 5000 * ranks.rank) == [b"", b"x" * 5000]
        assert ranks.gather(1) == [1, 1]

    _, sizes = on_ranks(2, program)
    head = sizes[0] - 1024
    assert sizes[0] + sizes[1] > 5000
    assert sizes[2:] == [sizes[2]] * 3
    assert sizes[2] - head > 5000


def test_small_messages_do_not_become_as_large_as_the_largest():
    def program(ranks):
        for _ in range(2):
            assert ranks.gather(b"x" * 10**6) == [b"x" * 10**6] * 2
        assert ranks.gather(1) == [1, 1]

    _, sizes = on_ranks(2, program)
    assert len(sizes) == 5  # the large ones take two each
    assert sizes[-1] < 300_000


def out_of_step(ranks):
    """Ranks that do not ask the same: rank 1 another question, then others about other values."""
    words = []
    for kind in (
        MessageKind("Nearest" if ranks.rank != 1 else "Measure"),
        MessageKind.of("Nearest", torch.zeros(2) + (ranks.rank == 2)),
    ):
        with pytest.raises(RankError) as raised:
            ranks.gather(b"x" * 9999 * ranks.rank, kind)
        words.append(str(raised.value))
    assert ranks.gather(7) == [7, 7, 7]  # all go on together
    return words


def test_ranks_that_are_out_of_step_get_the_same_error():
    found, _ = on_ranks(3, out_of_step)
    assert found[0] == found[1] == found[2]
    kind, value = found[0]
    assert "rank 0 is at exchange 1 (Nearest) and rank 1 at exchange 1 (Measure)" in kind
    assert "rank 2 at exchange 2 (Nearest) with other values" in value


def test_what_fails_on_one_rank_fails_on_all():
    def work(ranks, failing):
        with ranks.together("work"):
            assert ranks.gather(ranks.rank) == [0, 1, 2]
            if ranks.rank in failing:
                raise ZeroDivisionError(f"on {ranks.rank}")
            return ranks.gather(b"x" * 9999)

    def program(ranks):
        found = []
        for failing in ((1,), (0, 2), (0, 1, 2), ()):
            try:
                found.append(len(work(ranks, failing)))
            except (RankError, ZeroDivisionError) as error:
                found.append(repr(error))
        return found

    found, _ = on_ranks(3, program)
    one = "RankError('rank 1: ZeroDivisionError: on 1')"
    first = "RankError('rank 0: ZeroDivisionError: on 0')"
    for rank, told in enumerate(found):
        mine = f"ZeroDivisionError('on {rank}')"
        assert told == [mine if rank == 1 else one, mine if rank != 1 else first, mine, 3]


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
    assert len(dump_data(torch.zeros(10_000)[:10])) < 1000


def test_one_rank_needs_no_network():
    assert Ranks().gather(1) == [1]
    with pytest.raises(ZeroDivisionError):
        Ranks().gather_results(lambda: 1 // 0)
