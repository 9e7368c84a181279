"""A process that forks for each command it reads, so that every run can be killed.

Input: one JSON object a line: {"action", "arguments", "stop_at", "delay"}. The fork runs the
action. It kills itself before file operation number `stop_at` (null: never), or is killed after
`delay` seconds (null: never). Output: one JSON object a line: {"status", "operations", "seconds"}.
A fork is much faster than a new process, which has to import torch.
"""

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from threading import Timer

OPERATIONS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.chmod",
              "os.truncate", "fcntl.flock"}  # fmt: skip
"""Audit events of Python: each is raised before the operation."""


def watch(stop_at: int | None, folder: str) -> list[int]:
    """Count operations in this process, and kill it before number `stop_at`."""
    count = [0]

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event not in OPERATIONS or (event == "open" and not written(arguments, folder)):
            return
        count[0] += 1
        if count[0] == stop_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hear)
    return count


def written(arguments: tuple[object, ...], folder: str) -> bool:
    """Whether a file of the folder is opened; others are not what a kill can harm."""
    return str(arguments[0]).startswith(folder)


def fit(folder: str, k: int) -> None:
    """`lloydformer fit --force`, the same data with k clusters."""
    from lloydformer.app.cli.app import main

    out = Path(folder)
    arguments = ["fit", str(out.parent / "points.csv"), "-k", str(k), "-o", folder, "--force"]
    arguments += ["--report"] if k % 2 else ["--labels", "parquet"]
    sys.argv = ["lloydformer", *arguments]
    main()


def save(folder: str, k: int) -> None:
    """`save_pretrained` of a model with k clusters."""
    import lloydformer as lf

    points = [[float(i)] for i in range(k)]
    lf.KMeans(k, init=points).fit(points).save_pretrained(folder, force=True)


def train_layer(folder: str, seed: int) -> None:
    """A short training that goes on from its checkpoint, if it is of this seed, and its export."""
    from lloydformer.learning import Run, Settings, Tasks, train
    from lloydformer.learning.checkpoint import load_checkpoint
    from lloydformer.learning.export import compare_runs, export_runs

    tasks = Tasks(n_features=2, n_clusters=3, n_points=12)
    settings = Settings(tasks, n_steps=12 + seed, evaluate_every=1, n_validation=2)
    found = Path(folder) / "checkpoint"
    resume = (found / "config.json").exists() and load_checkpoint(found).runs == (Run(seed),)
    trained = train(settings, [Run(seed)], device="cpu", folder=folder, resume=resume,
                    force=not resume)  # fmt: skip
    export_runs(Path(folder), trained, compare_runs(trained, n_tasks=2, n_steps=2))


ACTIONS = {"fit": fit, "save": save, "train": train_layer}


def run(action: str, arguments: list[object], stop_at: int | None, result: int) -> None:
    """In the fork: do it, and write the number of file operations."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    count = watch(stop_at, str(Path(str(arguments[0])).parent))
    try:
        ACTIONS[action](*arguments)
    except SystemExit as error:
        if error.code:
            raise
    os.write(result, str(count[0]).encode())


def killed(action: str, arguments: list[object], stop_at: int | None, delay: float | None) -> str:
    reading, result = os.pipe()
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run(action, arguments, stop_at, result)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(result)
    timer = Timer(delay or 0, lambda: os.kill(child, signal.SIGKILL))
    if delay is not None:
        timer.start()
    _, status = os.waitpid(child, 0)
    timer.cancel()
    seconds = time.perf_counter() - began
    operations = os.read(reading, 100).decode()
    os.close(reading)
    found = {"status": os.waitstatus_to_exitcode(status), "seconds": seconds}
    return json.dumps({**found, "operations": int(operations or 0)})


def warm_up() -> None:
    """Import and compile in this process what every fork would have to."""
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(sys.stderr):
        (Path(place) / "points.csv").write_text("a\n1\n2\n5\n9\n")
        for name, action in ACTIONS.items():
            with contextlib.suppress(SystemExit):
                action(f"{place}/{name}", 3)


if __name__ == "__main__":
    warm_up()
    print("ready", flush=True)
    for line in sys.stdin:
        print(killed(**json.loads(line)), flush=True)
