"""Worker processes of a Dask cluster that tests kill."""

import time


def wait_for_two_workers(client):
    """A worker that was killed is started again by its nanny; now and then a nanny does not."""
    began, more = time.monotonic(), 0
    while len(client.nthreads()) < 2:
        waited = time.monotonic() - began
        assert waited < 120, "a worker does not start"
        if waited > 8 * (more + 1):
            more += 1
            client.cluster.scale(len(client.cluster.workers) + 1)
        time.sleep(0.1)
