"""The simulator: tiny clusters by hand, closed forms, and that nothing is lost or counted twice."""

import pytest
from cost_model import (
    Network,
    Pass,
    Problem,
    Worker,
    lloyd_pass,
    ring_seconds,
    slow_worker_factor,
    tree_seconds,
)
from simulator import Clock, Cluster, Port, Trouble

LEAF = 8192
SECOND_A_LEAF = Worker(per_row=1 / LEAF, per_number=0.0, per_product=0.0)
PASS = Pass(products=0, summary=10, broadcast=0)


def cluster(n_workers, n_leaves=None, network=None, **settings):
    problem = Problem((n_leaves or n_workers) * LEAF, 2, 3)
    network = network or Network(latency=0.0, bandwidth=float("inf"))
    worker = settings.pop("worker", SECOND_A_LEAF)
    return Cluster(problem, n_workers, worker, network, **settings)


def test_events_run_in_the_order_of_their_times():
    clock, seen = Clock(), []
    for time, word in ((2.0, "late"), (1.0, "early"), (1.0, "early too")):
        clock.at(time, lambda word=word: seen.append((clock.now, word)))
    clock.run()
    assert seen == [(1.0, "early"), (1.0, "early too"), (2.0, "late")]


def test_a_port_does_one_thing_at_a_time():
    port = Port()
    assert [port.use(0, 2), port.use(1, 2), port.use(10, 1)] == [2, 4, 11]


@pytest.mark.parametrize("exchange", ["ring", "tree"])
def test_one_worker_needs_no_network(exchange):
    network = Network(latency=9.0, bandwidth=1.0)
    account = cluster(1, 4, network, exchange=exchange).run([PASS, PASS])
    assert account.seconds == [4.0, 4.0]
    assert (account.messages, account.sent) == (0, 0)


def test_two_workers_by_hand():
    # 3 leaves: worker 0 has one, worker 1 has two. Centers arrive at 1 + 4/10, it maps for 2
    # seconds and sends two subtrees, [1, 2) and [2, 3): 1 + 20/10 seconds.
    network, one = Network(1.0, 10.0), Pass(0, 10, 4)
    account = cluster(2, 3, network, exchange="tree").run([one])
    assert account.seconds == [pytest.approx(1.4 + 2 + 3)]
    assert (account.messages, account.sent, account.received) == (2, 24, 24)
    # around a ring nobody sends centers, and 0 waits for 1
    account = cluster(2, 3, network, exchange="ring").run([one])
    assert account.seconds == [pytest.approx(2 + 3)]
    assert (account.messages, account.sent, account.received) == (2, 30, 30)


def test_messages_to_one_worker_queue_up():
    network = Network(1.0, 10.0)
    assert cluster(4, None, network, fan_in=4).run([PASS]).seconds == [1 + 1 + (1 + 3 * 1)]
    # of fan-in 2: 1 and 3 send to 0 and 2, then 2 to 0; centers take one latency a level
    assert cluster(4, None, network, fan_in=2).run([PASS]).seconds == [2 + 1 + (1 + 1) + (1 + 1)]


def test_the_scheduler_hands_out_one_task_after_the_other():
    network = Network(0.0, float("inf"), per_task=0.5)
    assert cluster(8, None, network, fan_in=8).run([PASS]).seconds == [8 * 0.5 + 1]


@pytest.mark.parametrize(("depth", "fan_in"), [(1, 8), (2, 4), (3, 2), (5, 2), (2, 16)])
def test_full_trees_take_what_the_closed_form_says(depth, fan_in):
    network = Network(0.25, 40.0)
    n_workers = fan_in**depth
    up = Pass(0, 10, 0)
    found = cluster(n_workers, None, Network(0.0, 40.0), fan_in=fan_in).run([up]).seconds[0]
    assert found == pytest.approx(1 + tree_seconds(depth, fan_in, 10, Network(0.0, 40.0)))
    down = Pass(0, 0, 10)
    found = cluster(n_workers, None, network, fan_in=fan_in).run([down]).seconds[0]
    # summaries of 0 bytes still take a latency for each level
    assert found == pytest.approx(
        1 + tree_seconds(depth, fan_in, 10, network) + tree_seconds(depth, fan_in, 0, network)
    )


@pytest.mark.parametrize("n_workers", [2, 4, 16])
def test_rings_take_what_the_closed_form_says(n_workers):
    network = Network(0.25, 40.0)
    account = cluster(n_workers, None, network, exchange="ring").run([PASS])
    assert account.seconds[0] == pytest.approx(1 + ring_seconds(n_workers, 10, network))
    assert account.messages == n_workers * (n_workers - 1)


def test_adding_takes_time():
    worker = Worker(1 / LEAF, 0.0, 0.0, adding=10.0)
    ring = cluster(4, worker=worker, exchange="ring").run([PASS])
    assert ring.seconds == [pytest.approx(1 + 4 * 1)]
    tree = cluster(4, worker=worker, exchange="tree").run([PASS])
    assert tree.seconds == [pytest.approx(1 + 1 + 1)]


@pytest.mark.parametrize("exchange", ["ring", "tree"])
@pytest.mark.parametrize("fan_in", [2, 3, 16])
def test_every_row_is_counted_once_and_every_byte_arrives(exchange, fan_in):
    problem = Problem(37 * LEAF - 5000, 4, 7)
    trouble = Trouble(jitter=0.3, share=0.2, factor=4.0, failures=0.01, noticed=1.0, seed=3)
    for n_workers in (1, 2, 5, 16, 50):  # 50: some have no rows
        network = Network(0.01, 1e5, per_task=1e-3)
        found = Cluster(problem, n_workers, SECOND_A_LEAF, network, exchange, fan_in, trouble)
        account = found.run([lloyd_pass(problem)] * 3)
        assert account.rows == [problem.n_rows] * 3
        assert account.sent == account.received
        each = n_workers * (n_workers - 1) if exchange == "ring" else 2 * (n_workers - 1)
        assert account.messages == 3 * each


def test_slow_workers_cost_what_the_closed_form_says():
    trouble = Trouble(share=0.03, factor=3.0, seed=1)
    account = cluster(20, trouble=trouble).run([PASS] * 2000)
    mean = sum(account.seconds) / 2000
    assert mean == pytest.approx(slow_worker_factor(20, 0.03, 3.0), rel=0.03)


def test_a_failure_costs_the_lost_work_the_notice_and_the_rows():
    trouble = Trouble(failures=0.5, noticed=0.5, reload=LEAF * 8 * 2, seed=0)
    account = cluster(1, trouble=trouble).run([PASS] * 4000)
    assert account.failures > 1000
    # a try of 1 second fails with p = 1 - exp(-1/2); it then costs 1 second and the time until it
    p = 1 - 2.718281828**-0.5
    until = 1 / 0.5 - 1 * (1 - p) / p
    expected = 1 + p / (1 - p) * (1 + until)
    assert sum(account.seconds) / 4000 == pytest.approx(expected, rel=0.03)


def test_the_same_seed_gives_the_same_times():
    trouble = Trouble(jitter=0.2, failures=0.1, noticed=1.0, seed=5)
    first, second = (cluster(9, trouble=trouble).run([PASS] * 3) for _ in range(2))
    assert first.seconds == second.seconds
