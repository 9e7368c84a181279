"""Runs actions in a process that can be killed; see killed_actor.py."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any


class Killer:
    """Run actions of killed_actor.py, and kill them at an operation or after a delay."""

    def __init__(self) -> None:
        path = Path(__file__).with_name("killed_actor.py")
        self.process = subprocess.Popen(
            [sys.executable, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.answer()

    def __enter__(self) -> "Killer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.process.kill()
        self.process.communicate()

    def answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the process that forks has ended"
        return line

    def run(
        self, action: str, *arguments: Any, stop_at: int | None = None, delay: float | None = None
    ) -> dict[str, Any]:
        """Run to the end, unless it is killed; returns its status, operations and seconds."""
        plain = [str(each) if isinstance(each, Path) else each for each in arguments]
        command = {"action": action, "arguments": plain, "stop_at": stop_at, "delay": delay}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.answer())
        return found
