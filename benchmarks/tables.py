"""Writes tables of README.md and of pages of docs/, and charts, from the results."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

from lloydformer.app.jobs.bench.result import format_seconds, load_result, write_output
from lloydformer.app.jobs.interp import load_scores, write_scores
from lloydformer.data.storage.atomic_files import atomic_write_text
from lloydformer.interp.benchmark import mean_areas

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "speed.md"
README = HERE.parent / "README.md"
CHOOSE_K = HERE.parent / "docs" / "choose-k.md"
MIXTURES = HERE.parent / "docs" / "mixtures.md"
INTERP = HERE.parent / "docs" / "interpretability.md"
# Questions whose results are drawn as well.
CHARTS = ("iteration", "gpu")
# The packages that README compares, by their names in the results, and what their own documentation
# says of them. Everything else in that table is measured.
PACKAGES = (
    *("lloydformer", "scikit-learn", "scikit-learn-intelex", "faiss-cpu", "flash-kmeans"),
    "kmedoids",
)
FEATURES = {
    "algorithms": (
        "k-means; soft, spherical, trimmed, robust; k-medoids; mixtures",
        "k-means, mini-batch, bisecting; mixtures",
        "k-means",
        "k-means, spherical",
        "k-means, cosine",
        "k-medoids",
    ),
    "scikit-learn estimators": ("yes", "yes", "yes", "no", "no", "yes"),
    "runs on": (
        "CPU, NVIDIA GPU, cluster",
        "CPU",
        "CPU, Intel GPU",
        "CPU; NVIDIA GPU as faiss-gpu",
        "NVIDIA GPU",
        "CPU",
    ),
}

# A comment in a Markdown page that names a result file, the table below it, and its end.
_TABLE = re.compile(r"(<!-- table of (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def markdown_table(result: dict[str, Any]) -> str:
    """Return a Markdown table: a row for each case, the median of each contender."""
    rows = result["rows"]
    names = list(dict.fromkeys(name for row in rows.values() for name in row["contenders"]))
    versions = result["provenance"]["versions"]
    # A time of a peer means nothing without its version; ours is that of the page.
    heads = [f"{n} {versions[n]}" if n != "lloydformer" and n in versions else n for n in names]
    table = [["data", *heads, "ahead"], ["---"] * (len(names) + 2)]
    for case, row in rows.items():
        times = {name: format_seconds(m["median"]) for name, m in row["contenders"].items()}
        ahead = "" if row["ahead"] is None else f"{row['ahead']:.2f}"
        table.append([case, *(times.get(name, "") for name in names), ahead])
    return _join(table)


def comparison_table(results: Path) -> str:
    """Return the table of README: features, times and objectives of each package."""
    iteration, gpu, predict = (
        load_result(results / f"bench_{name}.json") for name in ("iteration", "gpu", "predict")
    )
    relocating, medoids = (
        json.loads((results / f"{name}.json").read_text("utf-8"))
        for name in ("relocating", "medoids")
    )
    versions = medoids["provenance"]["runs"]["versions"] | gpu["provenance"]["versions"]
    versions |= iteration["provenance"]["versions"]
    # Whole fits: a batch of many small problems and seeding are other questions.
    fits = {n: row for n, row in gpu["rows"].items() if re.match(r"(mixture|normal), \d+M", n)}
    one_row = next(row for name, row in predict["rows"].items() if "one row" in name)
    labels = {n: format_seconds(m["median"]) for n, m in one_row["contenders"].items()}
    sets, medoid_sets = (
        [key for key in result["runs"] if key.endswith(end)]
        for result, end in ((relocating, "/50"), (medoids, "/sqeuclidean/50"))
    )
    measured = {
        f"time of an iteration, {len(iteration['rows'])} problems": _times(iteration["rows"]),
        f"time of a fit on one H200, {len(fits)} problems": _times(fits),
        "time to label one row": labels,
        f"objective above the best known, {len(sets)} data sets, k 50": {
            "lloydformer": _quality(relocating, sets, "ours") + ", `RelocatingKMeans`",
            "scikit-learn": _quality(relocating, sets, "k-means++ 10") + ", ten starts",
        },
        f"loss of k-medoids above the best known, {len(medoid_sets)} data sets, k 50": {
            "lloydformer": _quality(medoids, medoid_sets, "ours"),
            "kmedoids": _quality(medoids, medoid_sets, "FasterPAM"),
        },
    }
    heads = [n if n == "lloydformer" else f"{n} {versions[n]}" for n in PACKAGES]
    rows = [["", *heads], ["---"] * (len(heads) + 1)]
    rows += [[name, *cells] for name, cells in FEATURES.items()]
    rows += [[name, *(of.get(n, "") for n in PACKAGES)] for name, of in measured.items()]
    return _join(rows)


def _times(rows: dict[str, Any]) -> dict[str, str]:
    """Return the times of each package relative to ours, from the best to the worst problem."""
    found = {"lloydformer": "1"}
    for name in PACKAGES[1:]:
        times = [r["contenders"][name]["times"] for r in rows.values() if name in r["contenders"]]
        if times:
            found[name] = f"{min(times):.1f} to {max(times):.1f}"
    return found


def _quality(result: dict[str, Any], keys: list[str], name: str) -> str:
    """Return the mean objective above the lowest of all runs, and the geometric mean time."""
    above, took = list[float](), list[float]()
    for key in keys:
        # Runs are lists of objective and seconds; studies of parameters may have found lower ones.
        parts = [result.get(part, {}).get(key, {}) for part in ("runs", "ablations", "effort")]
        every = [runs for part in parts for other, runs in part.items() if other != "history"]
        best = min(run[0] for runs in every for run in runs)
        above.append(fmean(run[0] for run in result["runs"][key][name]) / best - 1)
        took.append(fmean(run[1] for run in result["runs"][key][name]))
    return f"{100 * fmean(above):.2f} % in {1e3 * geometric_mean(took):.0f} ms"


def _join(rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def table_of_ways(result: dict[str, Any]) -> str:
    """Return a row for each way to choose k, with shares of the right k and mean indices."""
    summary, version = result["summary"], result["provenance"]["versions"]["scikit-learn"]
    numbers = next(iter(summary.values()))
    table = [
        [
            *("way", f"planted ({numbers['planted, problems']:.0f}): right k", "index"),
            *("with 2 clusters or more: right k", "index"),
            f"noise ({numbers['noise, problems']:.0f}): false clusters",
            *(f"published ({numbers['published, problems']:.0f}): right k", "index"),
            *(f"real ({numbers['real, problems']:.0f}): index", "seconds"),
        ],
        ["---"] * 10,
    ]
    names = [
        *("planted, right k", "planted, mean index"),
        *("planted from 2, right k", "planted from 2, mean index", "noise, false clusters"),
        *("published, right k", "published, mean index", "real, mean index"),
    ]
    for way, own in summary.items():
        cells = [
            "-"
            if name not in own
            else f"{own[name]:.3f}"
            if name.endswith("index")
            else f"{100 * own[name]:.1f} %"
            for name in names
        ]
        name = way.replace("scikit-learn", f"scikit-learn {version}")
        table.append([name, *cells, f"{own['planted, mean seconds']:.2f}"])
    return _join(table)


def table_of_kinds(result: dict[str, Any]) -> str:
    """Return the share of planted problems with the right k, for each kind and way."""
    rows = [row for row in result["rows"].values() if row["kind"] == "planted"]
    ways = [w for w in result["summary"] if all(w in row["found"] for row in rows)]
    table = [["problems", "number", *ways], ["---"] * (len(ways) + 2)]
    for fact in rows[0]["facts"]:
        for value in dict.fromkeys(row["facts"][fact] for row in rows):
            own = [row for row in rows if row["facts"][fact] == value]
            right = (fmean(row["found"][way][0] == row["k"] for row in own) for way in ways)
            cells = (f"{100 * share:.0f} %" for share in right)
            table.append([f"{fact}: {value}", str(len(own)), *cells])
    return _join(table)


def table_of_mixtures(result: dict[str, Any]) -> str:
    """Return the times of mixtures and how many times as long scikit-learn takes."""
    kinds = {"diag": "diagonal", "full": "full"}
    table = [
        ["rows", "covariances", "precision", "iteration", "`predict_proba`", "`score_samples`"],
        ["---"] * 6,
    ]
    for row in result["rows"]:
        times = (
            f"{row['lloydformer'][what]:.3g} ms ({ratio:.1f})"
            for what, ratio in row["ratios"].items()
        )
        size = f"{row['n']:,} x {row['d']}, k {row['k']}"
        table.append([size, kinds[row["kind"]], row["dtype"], *times])
    for dtype in ("float32", "float64"):
        own = [row["ratios"] for row in result["rows"] if row["dtype"] == dtype]
        means = (f"({geometric_mean(row[what] for row in own):.1f})" for what in own[0])
        table.append(["geometric mean", "", dtype, *means])
    return _join(table)


def table_of_areas(result: dict[str, Any]) -> str:
    """Return the mean areas of methods that find circuits, by form and temperature."""
    methods = result["methods"]
    table = [["circuits", "inverse temperature", *methods], ["---"] * (len(methods) + 2)]
    for form, gamma, areas in mean_areas([*result["rows"].values()]):
        last = "their own" if form == "trained" else "the limit"
        level = last if gamma is None else f"{gamma:g}"
        table.append([form, level, *(f"{areas[method]:.2f}" for method in methods)])
    return _join(table)


def table_of_hard_circuits(result: dict[str, Any]) -> str:
    """Return the areas of every recipe in the limit, plain / disguised."""
    methods, rows = result["methods"], result["rows"].values()
    table = [["recipe", "edges", *methods], ["---"] * (len(methods) + 2)]
    hard = [row for row in rows if row["inverse_temperature"] is None and row["form"] != "trained"]
    for name in dict.fromkeys(row["name"] for row in hard):
        own = [row for row in hard if row["name"] == name]
        edges = " / ".join(f"{row['n_in_circuit']} of {row['n_edges']}" for row in own)
        areas = (" / ".join(f"{row['area'][method]:.2f}" for row in own) for method in methods)
        table.append([f"`{name}`", edges, *areas])
    return _join(table)


# How a table is made, if it is not one of times, and the result that it is made of.
TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "choose_k": ("choose_k", table_of_ways),
    "choose_k_kinds": ("choose_k", table_of_kinds),
    "mixtures_time": ("mixtures_time", table_of_mixtures),
    "interp": ("interp", table_of_areas),
    "interp_hard": ("interp", table_of_hard_circuits),
}


def fill_tables(page: str, results: Path) -> str:
    """Return a Markdown page with the table of each result file that its comments name.

    A table is empty where the file does not exist. "comparison" is made from several files.
    """

    def fill(mark: re.Match[str]) -> str:
        path = results / f"{mark[2]}.json"
        if mark[2] == "comparison":
            return mark[1] + comparison_table(results) + mark[4]
        if mark[2] in TABLES:
            name, make_table = TABLES[mark[2]]
            path = results / f"{name}.json"
            table = make_table(json.loads(path.read_text("utf-8"))) if path.exists() else ""
            return mark[1] + table + mark[4]
        return mark[1] + (markdown_table(load_result(path)) if path.exists() else "") + mark[4]

    return _TABLE.sub(fill, page)


if __name__ == "__main__":
    for path in (README, PAGE, CHOOSE_K, MIXTURES, INTERP):
        atomic_write_text(path, fill_tables(path.read_text(encoding="utf-8"), HERE / "results"))
    for question in CHARTS:
        result = json.loads((HERE / "results" / f"bench_{question}.json").read_text("utf-8"))
        write_output(result, PAGE.parent / "pictures" / f"bench-{question}.svg")
    scores = load_scores(HERE / "results" / "interp.json")
    write_scores(scores, PAGE.parent / "pictures" / "interp.svg")
