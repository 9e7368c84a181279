"""An engine whose sessions are in parts in this process, which may lose their state."""

from contextlib import contextmanager

import numpy as np

from lloydformer.engines.parts.cuts import cuts
from lloydformer.engines.parts.in_process import open_parts


class PartsEngine:
    """Cuts blocks at random places, and gives the parts to some holders in turn.

    Parameters
    ----------
    n_parts, n_holders, n_threads : int
        Parts at most, who holds them, and the threads of each.
    inside : str
        The engine that opens a part.
    loses : float
        The probability that a part loses its state before a question.
    seed : int
        Of the cuts and losses.
    """

    name = "parts"

    def __init__(
        self, n_parts=5, n_holders=2, n_threads=1, inside="native", loses=0.0, seed=0
    ) -> None:
        self.n_parts, self.n_holders, self.n_threads = n_parts, n_holders, n_threads
        self.inside, self.loses, self.seed = inside, loses, seed
        self.asked = []

    @contextmanager
    def open(self, blocks):
        rng = np.random.default_rng(self.seed)
        at = np.sort(rng.integers(0, blocks.n_rows + 1, self.n_parts - 1))
        lengths = np.diff(np.concatenate([[0], at, [blocks.n_rows]])).tolist()
        parts = cuts(lengths, blocks.leaf)
        with open_parts(blocks, parts, self.n_holders, self.n_threads, self.inside) as session:
            ask = session._transport.ask

            def asks(question):
                self.asked.append(question)
                for holder in session._transport.holders:
                    for part in holder.parts.values():
                        if rng.random() < self.loses:
                            part.close()
                            part.version = -1
                return ask(question)

            session._transport.ask = asks
            yield session
