"""An engine whose sessions live in another process and share no memory with the caller.

The worker runs the chunked engine. Every call is one message each way over a pipe; tensors travel
by value. The engine counts messages, bytes, and the host synchronisations of the caller.
"""

import atexit
import io
import pickle
import struct
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import torch

SYNCHRONISING = {
    "item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "nonzero", "equal",
}  # fmt: skip
"""Methods and functions of tensors that a GPU would have to wait for."""


class _Pickler(pickle.Pickler):
    """Tensors by value, without the rest of the storage that they are a view of."""

    def reducer_override(self, value):
        if isinstance(value, torch.Tensor):
            plain = value.as_subclass(torch.Tensor)
            return torch.from_numpy, (plain.detach().cpu().numpy().copy(),)
        return NotImplemented


def send(stream, message) -> int:
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=5).dump(message)
    stream.write(struct.pack("<q", buffer.tell()) + buffer.getvalue())
    stream.flush()
    return buffer.tell()


def receive(stream) -> tuple[object, int]:
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    (size,) = struct.unpack("<q", head)
    return pickle.loads(stream.read(size)), size


@dataclass
class Traffic:
    """What went over the pipe: (name of the call, bytes sent, bytes received), and the waits."""

    calls: list[tuple[str, int, int]] = field(default_factory=list)
    synchronisations: int = 0


class Tracked(torch.Tensor):
    """A summary on the caller's side; counts how often its numbers are read on the host."""

    traffic: Traffic | None = None

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if cls.traffic is not None and getattr(function, "__name__", "") in SYNCHRONISING:
            cls.traffic.synchronisations += 1
        return super().__torch_function__(function, types, args, kwargs or {})


def tracked(value):
    if isinstance(value, torch.Tensor):
        return value.as_subclass(Tracked)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(map(tracked, value))
    return value


class Worker:
    """The other process; it ends with this one."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        atexit.register(self.stop)

    def call(self, *message) -> tuple[object, int, int]:
        sent = send(self.process.stdin, message)
        (status, value), received = receive(self.process.stdout)
        if status == "error":
            raise value
        return value, sent, received

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class RemoteEngine:
    """Opens data in the worker; `traffic` belongs to the session that was opened last."""

    name = "remote"
    worker: Worker | None = None
    traffic: Traffic | None = None
    tracking = False

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads

    @contextmanager
    def open(self, blocks):
        if RemoteEngine.worker is None or RemoteEngine.worker.process.poll() is not None:
            RemoteEngine.worker = Worker()
        RemoteEngine.traffic = traffic = Traffic()
        worker = RemoteEngine.worker
        number, _, _ = worker.call("open", blocks, self.n_threads)
        if self.tracking:
            Tracked.traffic = traffic
        try:
            yield RemoteSession(worker, number, blocks.layout, traffic, self.tracking)
        finally:
            Tracked.traffic = None
            worker.call("close", number)


class RemoteSession:
    """Forwards every method of a session; it holds the layout and nothing of the points."""

    def __init__(self, worker, number, layout, traffic, tracking) -> None:
        self._worker, self._number, self.layout = worker, number, layout
        self._traffic, self._tracking = traffic, tracking

    def _call(self, name, *arguments):
        value, sent, received = self._worker.call(name, self._number, *arguments)
        self._traffic.calls.append((name, sent, received))
        return tracked(value) if self._tracking else value

    def fold(self, fold):
        return self._call("fold", fold)

    def run(self, task):
        return self._call("run", task)

    def gather(self, rows):
        return self._call("gather", rows)

    def draw_by_distance(self, fractions):
        return self._call("draw_by_distance", fractions)

    def draw_by_weight(self, fractions):
        return self._call("draw_by_weight", fractions)

    def labels(self):
        return self._call("labels")

    def trimmed(self):
        return self._call("trimmed")

    def forget(self):
        return self._call("forget")


def serve() -> None:
    """The worker's loop: one message in, one out."""
    from lloydformer.engines.chunked import Chunked

    inbox, outbox = sys.stdin.buffer, sys.stdout.buffer
    sessions, open_sessions = {}, {}
    while True:
        try:
            (name, *arguments), _ = receive(inbox)
        except EOFError:
            return
        try:
            if name == "open":
                blocks, n_threads = arguments
                stack, number = ExitStack(), len(sessions)
                sessions[number] = stack.enter_context(Chunked(n_threads).open(blocks))
                open_sessions[number] = stack
                answer = number
            elif name == "close":
                open_sessions.pop(arguments[0]).close()
                sessions[arguments[0]] = answer = None
            else:
                number, *rest = arguments
                answer = getattr(sessions[number], name)(*rest)
            send(outbox, ("ok", answer))
        except Exception as error:
            send(outbox, ("error", error))


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve()
