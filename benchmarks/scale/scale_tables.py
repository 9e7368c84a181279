"""The tables of docs/scale.md and docs/notes/cluster-costs.md, measured and simulated."""

from collections.abc import Callable
from typing import Any

from cost_model import Problem, lloyd_pass, shares, subtrees
from fitted import compare_fits, load_cluster, loopback, sharing, worker_of

Result = dict[str, Any]


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def seconds(value: float) -> str:
    """Two digits and a unit: 3.1 ms, 45 s, 2.1 h."""
    for unit, size in (("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)):
        limit = {"s": 120.0, "min": 7200.0}.get(unit, 1000 * size)
        if value < 0.9995 * limit or unit == "h":
            return (
                f"{value / size:.2g} {unit}"
                if value < 99.5 * size
                else f"{value / size:.0f} {unit}"
            )
    raise AssertionError


def amount(value: float) -> str:
    """Bytes with a unit."""
    for unit, size in (("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)):
        if value < 1000 * size or unit == "TB":
            return f"{value / size:.3g} {unit}"
    raise AssertionError


def power(rows: int) -> str:
    return f"10^{len(str(rows)) - 1}"


def counts(measured: Result, simulated: Result) -> str:
    """Operations and bytes of an iteration, for some sizes."""
    rows = []
    for n, d, k, size in (
        (10**6, 16, 64, 2),
        (10**9, 16, 64, 100),
        (10**12, 16, 64, 10_000),
        (10**9, 128, 1000, 100),
        (10**12, 128, 1000, 10_000),
    ):
        problem = Problem(n, d, k)
        one, leaves = lloyd_pass(problem), problem.n_leaves
        most = max(subtrees(*share, leaves) for share in shares(leaves, size))
        rows.append(
            [
                power(n),
                f"{d}, {k}",
                f"{size:,}",
                f"{n // size * one.products:.1e}",
                amount(n // size * problem.row_bytes),
                amount(one.summary),
                str(most),
                amount((size - 1) * most * one.summary),
                amount(one.summary * most),
            ]
        )
    head = [
        "points",
        "d, k",
        "workers",
        "products a worker",
        "rows of a worker",
        "summary",
        "subtrees, at most",
        "a rank receives",
        "a worker sends up a tree",
    ]
    return table(head, rows)


def runs(measured: Result, simulated: Result) -> str:
    """Iterations on 1 and 2 ranks, measured and simulated."""
    rows = [
        [
            f"{n:,}",
            f"{d}, {k}",
            str(size),
            seconds(took),
            seconds(expected),
            f"{round(100 * (expected / took - 1)):+d} %",
        ]
        for n, d, k, size, took, expected in compare_fits(measured)
    ]
    return table(["points", "d, k", "ranks", "measured", "simulated", "difference"], rows)


def constants(measured: Result, simulated: Result) -> str:
    """The fitted numbers."""
    worker, network = worker_of(measured), loopback(measured)
    return (
        f"A row takes {1e9 * worker.per_row:.1f} ns, each of its numbers "
        f"{1e9 * worker.per_number:.2f} ns, each product with a number of a center "
        f"{1e12 * worker.per_product:.1f} ps, and a pass {1e3 * worker.per_pass:.2f} ms whatever "
        f"its size, {1e3 * sharing(measured):.2f} ms more with several ranks. An all-gather of "
        f"2 ranks takes {1e3 * network.latency:.2f} ms and "
        f"{1e-9 * network.bandwidth:.2f} GB go through it in a second. "
        f"{1e-9 * measured['adding']:.0f} GB of summaries are added in a second.\n"
    )


def iterations(measured: Result, simulated: Result) -> str:
    rows = [
        [
            f"{row['d']}, {row['k']}",
            power(row["rows"]),
            f"{row['workers']:,}",
            seconds(row["map"]) + ("" if row["in_memory"] else ", disk"),
            *(seconds(row[name]) for name in ("tree", "ring")),
            seconds(row["map"] + row["tree"]),
            seconds(row["map"] + row["ring"]),
            seconds(row["scheduled"]),
        ]
        for row in simulated["iterations"]
    ]
    head = [
        "d, k",
        "points",
        "workers",
        "map",
        "tree",
        "all-gather",
        "iteration, tree",
        "iteration, ranks",
        "iteration, a task a worker",
    ]
    return table(head, rows)


def takeovers(measured: Result, simulated: Result) -> str:
    rows = [
        [
            f"{row['d']}, {row['k']}",
            power(row["rows"]),
            *(_about(row[name]) for name in ("ring", "scheduler", "tree")),
        ]
        for row in simulated["takeovers"]
    ]
    return table(["d, k", "points", "all-gather of ranks", "a task a worker", "tree"], rows)


def two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):g}"


def _about(count: int) -> str:
    """Two digits; `simulate.takeovers` does not look beyond ten million."""
    return "over 10,000,000" if count >= 10**7 else f"{int(float(f'{count:.2g}')):,}"


def fan_ins(measured: Result, simulated: Result) -> str:
    found = {(r["d"], r["k"], r["workers"], r["fan_in"]): r for r in simulated["fan_ins"]}
    rows = []
    for d, k, size in dict.fromkeys((d, k, size) for d, k, size, _ in found):
        cells = [found.get((d, k, size, fan_in)) for fan_in in (2, 4, 16, 64, size)]
        words = (f"{seconds(c['seconds'])} ({c['depth']})" if c else "" for c in cells)
        rows.append([f"{d}, {k}", f"{size:,}", *words])
    head = ["d, k", "workers", *(f"fan-in {f}" for f in (2, 4, 16, 64)), "all to one"]
    return table(head, rows)


def seedings(measured: Result, simulated: Result) -> str:
    rows = [
        [
            f"{r['d']}, {r['k']}",
            f"{r['workers']:,}",
            f"{seconds(r['plusplus'])} ({r['plusplus_passes']:,})",
            f"{seconds(r['parallel'])} ({r['parallel_passes']})",
        ]
        for r in simulated["seedings"]
    ]
    return table(["d, k", "workers", "k-means++ (passes)", "k-means\\|\\| (passes)"], rows)


def troubles(measured: Result, simulated: Result) -> str:
    rows = [
        [
            f"{r['workers']:,}",
            seconds(r["seconds"]),
            f"{r['jitter']:.2f}",
            f"{r['slow']:.2f}",
            two_digits(r["failures_a_day"]),
            f"{r['replaced']:.3f}",
            f"{r['restarted']:.2f}",
            seconds(r["interval"]),
        ]
        for r in simulated["troubles"]
    ]
    head = [
        "workers",
        "iteration",
        "jitter",
        "slow workers",
        "failures a day",
        "rows go elsewhere",
        "all start again",
        "between checkpoints",
    ]
    return table(head, rows)


def on_dask(measured: Result, simulated: Result) -> str:
    """Iterations in one process and on worker processes, by us and by dask-ml."""
    found = load_cluster()
    names = {
        "native": "one process, two threads",
        "cluster": "Dask, two processes of one thread",
        "dask_ml": f"dask-ml {found['provenance']['versions']['dask-ml']}, the same processes",
    }
    rows = []
    for size in sorted({int(key.split(", ")[1].split()[0]) for key in found["rows"]}):
        first = None
        for way, words in names.items():
            runs = [run for key, run in found["rows"].items() if key.startswith(f"{way}, {size} ")]
            if runs:
                took = _median([_mean(run["seconds_an_iteration"]) for run in runs])
                first = took if first is None else first
                grown = [run["client_bytes_above_import"] for run in runs if way == "cluster"]
                memory = amount(max(grown)) if grown else ""
                rows.append([f"{size:,}", words, seconds(took), f"{took / first:.2f}", memory])
    head = ["rows", "where", "an iteration", "times that of one process", "memory of the client"]
    return table(head, rows)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def right_and_wrong(measured: Result, simulated: Result) -> str:
    """Fits of four points by both libraries."""
    rows = [
        [name, *(_centers(case[library]) for library in ("lloydformer", "dask-ml"))]
        for name, case in load_cluster()["cases"].items()
    ]
    return table(["points 20, 21, 30, 31", "centers of lloydformer", "of dask-ml"], rows)


def _centers(told: Any) -> str:
    return f"`{told}`" if isinstance(told, str) else ", ".join(f"{c:g}" for c in told)


# By their names in the page; each takes what was measured, and what was simulated.
TABLES: dict[str, Callable[[Result, Result], str]] = {
    "counts": counts,
    "runs": runs,
    "constants": constants,
    "iterations": iterations,
    "takeovers": takeovers,
    "fan_ins": fan_ins,
    "seedings": seedings,
    "troubles": troubles,
    "on_dask": on_dask,
    "right_and_wrong": right_and_wrong,
}
