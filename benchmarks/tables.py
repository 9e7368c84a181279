"""Writes tables and sentences of README.md and docs/*.md, and charts, from the results.

Pages with a script of their own (paper.py, medoids_page.py and so on) are not among them.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

from records import read_register, write_pages

from lloydformer.app.jobs.bench.result import format_seconds, load_result, write_output
from lloydformer.app.jobs.interp import load_scores, write_scores
from lloydformer.data.storage.atomic_files import atomic_write_text
from lloydformer.interp.benchmark import mean_areas

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "speed.md"
README = HERE.parent / "README.md"
# The pages that are filled; their marks name TABLES or results of `lloydformer bench`.
PAGES = (
    README,
    *(
        HERE.parent / "docs" / f"{name}.md"
        for name in (
            *("speed", "choose-k", "learning", "soft-clustering", "outliers", "guarantees"),
            *("large-data", "errata", "mixtures", "interpretability"),
        )
    ),
)
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
            f"real ({numbers['real, problems']:.0f}): index",
        ],
        ["---"] * 9,
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
        table.append([name, *cells])
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


def describe_soft(result: dict[str, Any]) -> str:
    """Return a sentence on the default of SoftKMeans."""
    own = result["soft"]
    return (
        f"On {own['problems']} planted problems (d 2 to 32, k 3 to 12, sizes and widths equal or "
        f"not), the adjusted Rand index differs from that of `KMeans` by {own['mean']:+.4f} on "
        f"average, and is at most {-own['least']:.3f} below it (`benchmarks/defaults.py`).\n"
    )


def describe_robust(result: dict[str, Any]) -> str:
    """Return two items on the defaults of TrimmedKMeans and RobustKMeans."""
    own, trials = result["robust"], result["trials"]
    starts = ", ".join(f"`{name}` in {n} of {trials}" for name, n in result["starts"].items())
    return (
        "- On four clusters 8 apart, with one row in ten uniform within 60 of the origin, "
        f"`TrimmedKMeans` found the planted centers with {starts}.\n"
        f"- On {own['problems']} planted problems with 10 % outliers, the adjusted Rand index of "
        f"`RobustKMeans` (over the other rows) is {own['mean']:.2f} above that of `KMeans` on "
        f"average, and at most {-own['least']:.3f} below it (`benchmarks/defaults.py`).\n"
    )


def describe_engines(result: dict[str, Any]) -> str:
    """Return a sentence on fits of two engines that end differently."""
    found, fits = result["engines"], result["fits"]
    return (
        f"In `benchmarks/defaults.py` it happened in {found['noise, float32']} of {fits} fits of "
        f"30,000 rows of normal noise, in {found['noise, float64']} of {fits} in float64, and with "
        f"clear clusters in {found['clusters, float32']} of {fits}.\n"
    )


def describe_command(result: dict[str, Any]) -> str:
    """Return a sentence on the whole command `fit` beside a script, which is faster."""
    ours, peer = (
        result["rows"][name]["median_s"] for name in ("lloydformer", "pandas and scikit-learn")
    )
    word = "slower" if ours > peer else "faster"
    n, d, k = (result["settings"][name] for name in "ndk")
    return (
        f"The whole command `lloydformer fit` on a CSV file of {n:,} × {d}, k {k}, is {word} than "
        f"a script of pandas and scikit-learn with one start: {ours:.1f} s against {peer:.1f} s. "
        "The script writes nothing; the command also writes labels, centers, summary and model.\n"
    )


def describe_memory(result: dict[str, Any]) -> str:
    """Return a sentence on the memory of fits of a file."""
    rows = [row for name, row in result["rows"].items() if name.startswith("fit, ")]
    most = max(row["anonymous_bytes_above_import"] for row in rows)
    slow, fast = (f(row["seconds"] for row in rows) for f in (max, min))
    n, d, k = (result["settings"][name] for name in "ndk")
    return (
        f"A fit of {n // 10**6} million × {d} float32 with k = {k} takes up to "
        f"{most / 1e6:.0f} MB of anonymous memory more than `import lloydformer`. Its ten "
        f"iterations and the start take {fast:.0f} to {slow:.0f} s, by the start and by whether "
        "the file is in the page cache.\n"
    )


# Names of the starts in the record, and the rates of learning that the page leaves out.
STARTS = {
    "learned layer, random": "learned layer, random",
    "learned layer, constructed": "learned layer, constructed",
    "lloyd, straight-through 100": "`lloyd()`, straight-through 100",
    "lloyd, straight-through 30": "`lloyd()`, straight-through 30",
    "lloyd, straight-through 10": "`lloyd()`, straight-through 10",
    "lloyd, softened 30": "`lloyd()`, softened 30",
    "lloyd as it is": "`lloyd()` as it is",
}


def table_of_starts(result: dict[str, Any]) -> str:
    """Return the relative objective of each seed at some steps, for each start."""
    steps = ("0", "250", "1000", "2000", "5000")
    table = [["start", *(f"step {step}" for step in steps)], ["---"] * (len(steps) + 1)]
    for name, words in STARTS.items():
        found = result["result"][name]["relative"]
        cells = (", ".join(f"{value:.3f}" for value in found.get(step, [])) for step in steps)
        table.append([words, *cells])
    return _join(table)


def table_of_families(result: dict[str, Any]) -> str:
    """Return tab:mix-res with the paper's numbers in brackets, and what it is a mean of."""
    paper = json.loads(PAPER_NUMBERS.read_text("utf-8"))["mix-res"]
    columns = [name for name in ("initial", "lloyd", "transformer") if name in paper["columns"]]
    table = [["family", "initial", "Lloyd", "transformer"], ["---"] * 4]
    for family, row in result["rows"].items():
        theirs = dict(zip(paper["columns"], paper["rows"][family], strict=True))
        table.append([family, *(f"{row[c]:.3f} ({theirs[c]:.3f})" for c in columns)])
    layers = result["n_layers"]
    about = "the layer in the package" if layers == 1 else f"the mean of {layers} trained layers"
    return f"Over {result['n_tasks']} tasks a family; {about}.\n\n{_join(table)}"


def table_of_trainings() -> str:
    """Return the relative objective at the end of the trainings in the package, for each seed."""
    logs = [json.loads(path.read_text("utf-8")) for path in LOGS.glob("*.json")]
    rows = dict[str, list[str]]()
    for log in sorted(
        logs, key=lambda log: (log["codes"] is None, log["n_features"], log["n_clusters"])
    ):
        d, k = log["n_features"], log["n_clusters"]
        for run in log["runs"]:
            if run["loss_temperature"] != 0.1 and log["codes"] is None:
                continue
            words = f"d {d}, k {k}" + (", d_emb = d" if log["codes"] is None else "")
            if run["loss_temperature"] != 0.1:
                words += f", λ {run['loss_temperature']:g}"
            rows.setdefault(words, []).append(f"{run['relative'][-1]:.3g}")
    table = [["setting", "relative objective, five seeds"], ["---"] * 2]
    return _join([*table, *([words, ", ".join(found)] for words, found in rows.items())])


def table_of_real_sets(result: dict[str, Any]) -> str:
    """Return the mean excess of the symmetric layer on real sets, beside Lloyd's algorithm."""
    ways = {
        "lloyd 10": "Lloyd, 10 iterations",
        "lloyd 20": "Lloyd, 20 iterations",
        "learned 10": "learned, 10 steps",
        "learned 10 + 10": "learned, 10 steps, and 10 of Lloyd's",
        "learned 20": "learned, 20 steps",
    }
    own = result["real"]["all"]
    table = [["", f"mean of {own['sets']} sets", "sets below Lloyd's"], ["---"] * 3]
    for name, words in ways.items():
        below = own["sets below lloyd"].get(name.removeprefix("learned "))
        share = f"{below} of {own['sets']}" if name.startswith("learned") and below else ""
        table.append([words, f"{own['excess'][name]:.2f}", share])
    return _join(table)


def table_of_layers(result: dict[str, Any]) -> str:
    """Return mean log objectives of the paper's layers and of the symmetric one, by family."""
    others = json.loads((HERE / "results" / "paper" / "mix-res.json").read_text("utf-8"))["rows"]
    heads = ["family", "Lloyd", "the paper's layers", "symmetric", "best of 20 k-means++"]
    table = [heads, ["---"] * len(heads)]
    for family, row in result["tasks"]["rows"].items():
        values = (
            row["lloyd"],
            others[family]["transformer"],
            row["learned"],
            row["best of 20"],
        )
        table.append([family, *(f"{value:.3f}" for value in values)])
    return _join(table)


def describe_steps(result: dict[str, Any]) -> str:
    """Return a sentence on the time of a learned step beside an iteration."""

    def span(engine: str) -> str:
        rows = result["time"]["steps"].items()
        ratios = [row["ratio"] for name, row in rows if name.startswith(engine)]
        return f"{min(ratios):.1f} to {max(ratios):.1f} times with the {engine} engine"

    return (
        f"**In equal time.** A step takes longer than an iteration of Lloyd's algorithm: "
        f"{span('native')}, {span('chunked')}.\n"
    )


def table_of_equal_time(result: dict[str, Any]) -> str:
    """Return the excess of learned fits, and of KMeans that is restarted for as long."""
    heads = [
        *("data", "learned, random start", "`KMeans`, random starts"),
        *("learned, k-means++", "`KMeans`, k-means++"),
    ]
    table = [heads, ["---"] * len(heads)]
    for name, row in result["time"]["equal time"].items():
        cells = []
        for start in ("random", "k-means++"):
            cells += [
                row[f"learned from {start}"],
                row[f"KMeans from {start}, time of learned from {start}"],
            ]
        table.append([name, *(f"{value:.2f}" for value in cells)])
    return _join(table)


def table_of_printed(result: dict[str, Any]) -> str:
    """Return what layers between the text's model and the authors' reach, seed by seed."""
    heads = ["model", "objective relative to a Lloyd step", "log objective after 20 steps"]
    table = [heads, ["---"] * len(heads)]
    for name, row in result["rows"].items():
        relative = ", ".join(f"{value:.3f}" for value in row["relative_objective"])
        table.append([name, relative, ", ".join(f"{value:.3f}" for value in row["transformer"])])
    lloyd = next(iter(result["rows"].values()))["lloyd"]
    return _join([*table, ["Lloyd's algorithm", "1", f"{lloyd:.3f}"]])


def describe_printed(result: dict[str, Any]) -> str:
    """Return what the model of the text and that of the runs reach in tab:mix-res."""
    paper = json.loads(PAPER_NUMBERS.read_text("utf-8"))["mix-res"]
    column = paper["columns"].index("transformer")
    authors = json.loads((HERE / "results" / "paper" / "mix-res-authors.json").read_text("utf-8"))
    own_tasks = json.loads((HERE / "results" / "printed_model.json").read_text("utf-8"))["rows"]
    random = own_tasks["as the text prints it, its tasks"]["transformer"]
    rows, theirs = result["rows"], {f: row[column] for f, row in paper["rows"].items()}

    def off(values: dict[str, float]) -> str:
        return f"{max(abs(values[family] - theirs[family]) for family in theirs):.3f}"

    printed = {family: row["printed"] for family, row in rows.items()}
    above = [family for family, row in rows.items() if row["printed"] >= row["lloyd"]]
    by_authors = {family: row["transformer"] for family, row in authors["rows"].items()}
    return (
        "We also trained the model that the text prints, on the same tasks and with "
        f"{len(result['curves']['normal']['printed']['by_layer'])} seeds. In tab:mix-res it "
        f"reaches {', '.join(f'{printed[family]:.3f} ({family})' for family in printed)}, and is "
        f"up to {off(printed)} from the paper's numbers; the model of the runs is up to "
        f"{off({family: row['transformer'] for family, row in rows.items()})} from them, and "
        f"{off(by_authors)} by the authors' evaluation (ten seeds, dropout left on). The model of "
        f"the text is not below Lloyd's algorithm for {' and '.join(above)}; the table has this "
        "for Cauchy alone. So the numbers of the paper are those of the runs. On normal mixtures "
        f"the model of the text ends lower ({printed['normal']:.3f} against "
        f"{rows['normal']['transformer']:.3f}), even if it is trained on tasks of random weights "
        f"and scales ({min(random):.3f} to {max(random):.3f}, on 320 other tasks of equal ones).\n"
    )


def describe_training(result: dict[str, Any]) -> str:
    """Return a sentence on the time of training on one GPU."""
    found = result["result"]
    many = found["together"][-1]
    return (
        f"On one {found['gpu'].removeprefix('NVIDIA ')}, one run of 10,000 steps with 200 "
        f"evaluations takes {found['one_run_s']:.0f} s. {many['n_runs']} runs together take "
        f"{many['s_a_run']:.1f} s each (extrapolated from {many['steps']} steps), the paper's 260 "
        f"runs {many['minutes_for_the_papers_runs']:.0f} minutes.\n"
    )


def describe_training_on_cpu(result: dict[str, Any]) -> str:
    """Return a sentence on the speed of training on two cores."""
    return (
        f"On two CPU cores training does {result['result']['median_ratio']:.1f} times as many "
        "steps per second as a plain loop that draws tasks one by one and computes scores with "
        "`torch.cdist` (`python benchmarks/training.py`).\n"
    )


PAPER_NUMBERS = HERE.parent / "src" / "lloydformer" / "paper" / "paper_numbers.json"
LOGS = HERE.parent / "src" / "lloydformer" / "paper" / "training_logs"
# How a table or a sentence is made, if it is not a table of times, and the result that it is of.
TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "choose_k": ("choose_k", table_of_ways),
    "choose_k_kinds": ("choose_k", table_of_kinds),
    "mixtures_time": ("mixtures_time", table_of_mixtures),
    "interp": ("interp", table_of_areas),
    "interp_hard": ("interp", table_of_hard_circuits),
    "defaults_soft": ("defaults", describe_soft),
    "defaults_robust": ("defaults", describe_robust),
    "defaults_engines": ("defaults", describe_engines),
    "fit_command": ("fit_command", describe_command),
    "out_of_core": ("out_of_core", describe_memory),
    "starts": ("starts", table_of_starts),
    "families": ("paper/mix-res", table_of_families),
    "real_sets": ("symmetric", table_of_real_sets),
    "layers": ("symmetric", table_of_layers),
    "steps": ("symmetric", describe_steps),
    "equal_time": ("symmetric", table_of_equal_time),
    "errata_21": ("paper/mix-res", describe_printed),
    "printed_model": ("printed_model", table_of_printed),
    "training_cuda": ("training-cuda", describe_training),
    "training_cpu": ("training-cpu", describe_training_on_cpu),
}


def fill_tables(page: str, results: Path) -> str:
    """Return a Markdown page with the table of each result file that its comments name.

    A table is empty where the file does not exist. "comparison" is made from several files.
    """

    def fill(mark: re.Match[str]) -> str:
        path = results / f"{mark[2]}.json"
        if mark[2] == "comparison":
            return mark[1] + comparison_table(results) + mark[4]
        if mark[2] == "trainings":  # the package has their logs
            return mark[1] + table_of_trainings() + mark[4]
        if mark[2] in TABLES:
            name, make_table = TABLES[mark[2]]
            path = results / f"{name}.json"
            table = make_table(json.loads(path.read_text("utf-8"))) if path.exists() else ""
            return mark[1] + table + mark[4]
        return mark[1] + (markdown_table(load_result(path)) if path.exists() else "") + mark[4]

    return _TABLE.sub(fill, page)


if __name__ == "__main__":
    for path in PAGES:
        atomic_write_text(path, fill_tables(path.read_text(encoding="utf-8"), HERE / "results"))
    for question in CHARTS:
        result = json.loads((HERE / "results" / f"bench_{question}.json").read_text("utf-8"))
        write_output(result, PAGE.parent / "pictures" / f"bench-{question}.svg")
    scores = load_scores(HERE / "results" / "interp.json")
    write_scores(scores, PAGE.parent / "pictures" / "interp.svg")
    write_pages(read_register())  # the table of records, and notes on stale ones
