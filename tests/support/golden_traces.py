"""Traces of circuits in Python, in files that tests/app/explorer/golden.mjs compares."""

import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import torch
from javascript import NODE, PAGE, dumped, run_node

from explorer_catalogue import build_menu, describe_recipe, list_parameters, recipe_variants
from lloydformer.app.explorer.server import serve_page
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.norms import zero_sum
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes import learned
from lloydformer.circuits.serialise import deserialise, serialise
from lloydformer.circuits.symmetric import Fixed, symmetric
from lloydformer.circuits.trace import Trace
from lloydformer.paper.verify.known import paired_algorithm
from lloydformer.paper.verify.problems import (
    FAMILIES,
    HARD,
    Problem,
    draw,
    on_sphere,
    with_centers_between,
    with_empty_cluster,
    with_equal_centers,
    with_ties,
)

SCRIPT = Path(__file__).parents[1] / "app" / "explorer" / "golden.mjs"
N_LAYERS = 2


SEVERAL_HEADS = symmetric(
    Fixed(sharpness=(1.0, 4.0), log_belonging=(0.5, 1.0), stride=(0.3, 0.6), nearest=(0.1, -0.2),
          belonging=(1.0, 0.5, -0.5, 2.0), apart_sharpness=(0.5, 2.0), apart=(0.05, 0.1))
)  # fmt: skip
"""A symmetric layer whose heads have different numbers."""


def halfway(rng: np.random.Generator, problem: Problem) -> Problem:
    """Return the problem with centers that are no points, and points halfway between two of them.

    But for rounding they are tied.
    """
    moved = with_centers_between(rng, problem)
    points = moved.points.copy()
    points[::3] = (moved.centers[0] + moved.centers[1]) / 2
    return replace(moved, points=points)


HARD_CENTERS = {
    "between": halfway,
    "ties": lambda _, problem: with_ties(problem),
    "coincident": lambda _, problem: with_equal_centers(problem),
    "empty": with_empty_cluster,
}
"""What a family of problems does to the centers."""


@dataclass(frozen=True)
class Golden:
    """A recipe as JSON, and a problem to run it on."""

    name: str
    recipe: dict[str, Any]
    problem: Problem
    seed: int | None


@cache
def live_variants() -> list[tuple[str, dict[str, Any]]]:
    """Return the names and the JSON of all variants of recipes that the interpreter runs."""
    found = ((name, describe_recipe(recipe)) for name, recipe in recipe_variants())
    live = [(name, page["recipe"]) for name, page in found if page["live"]]
    return [*live, ("several heads", serialise(SEVERAL_HEADS)), ("learned", serialise(learned()))]


whole_menu = cache(build_menu)


def shipped(rng: np.random.Generator, n_problems: int) -> Iterator[Golden]:
    """Yield problems for every variant of every live recipe, in turns; sizes are small."""
    for name in dict.fromkeys(name for name, _ in live_variants()):
        kinds = [recipe for other, recipe in live_variants() if other == name]
        for i in range(n_problems):
            recipe = with_random_parameters(rng, kinds[i % len(kinds)], but="ties")
            family = (*FAMILIES, *HARD)[i % len((*FAMILIES, *HARD))]
            yield Golden(name, recipe, problem_for(rng, recipe, family), i)


def random_recipes(rng: np.random.Generator, count: int) -> Iterator[Golden]:
    """Yield recipes with one to three parts replaced by others of the menu."""
    bases = [recipe for name, recipe in live_variants()
             if recipe["numbers"] is None and name != "learned"]  # fmt: skip
    for i in range(count):
        recipe = bases[rng.integers(len(bases))]
        for _ in range(rng.integers(1, 4)):
            recipe = with_random_part(rng, recipe)
        recipe = with_random_parameters(rng, recipe)
        family = (*FAMILIES, *HARD)[i % len((*FAMILIES, *HARD))]
        fitting = rng.random() < 0.8  # else unit vectors where none are needed, or the reverse
        wanted = recipe if fitting else bases[rng.integers(len(bases))]
        yield Golden(f"random {i}", recipe, problem_for(rng, wanted, family),
                     i if rng.random() < 0.9 else None)  # fmt: skip


def with_random_part(rng: np.random.Generator, recipe: dict[str, Any]) -> dict[str, Any]:
    """Return the recipe with a part, or a whole head, of the menu."""
    slots = whole_menu()
    slot = slots[rng.integers(len(slots))]
    if "choices" in slot:
        path, choices = slot["slot"], slot["choices"]
    elif rng.random() < 0.3:
        path, choices = slot["slot"], slot["heads"]
    else:
        field = rng.choice(list(slot["parts"]))
        path, choices = f"{slot['slot']}.{field}", slot["parts"][field]
    return replaced(recipe, path, choices[rng.integers(len(choices))]["part"])


def with_random_parameters(
    rng: np.random.Generator, recipe: dict[str, Any], but: str = ""
) -> dict[str, Any]:
    """Return the recipe with other values for most of its parameters, `but` one kind of them."""
    for parameter in list_parameters(recipe):
        if rng.random() < 0.7 and parameter["path"].rpartition(".")[2] != but:
            recipe = replaced(recipe, parameter["path"], random_value(rng, parameter))
    return recipe


def random_value(rng: np.random.Generator, parameter: dict[str, Any]) -> Any:
    if "choices" in parameter:
        return str(rng.choice(parameter["choices"]))
    if parameter.get("optional") and rng.random() < 0.5:
        return None
    low, high = parameter["least"], parameter["most"]
    match parameter["scale"]:
        case "integer":
            return int(rng.integers(low, high, endpoint=True))
        case "log":
            return float(np.exp(rng.uniform(np.log(low), np.log(high))))
    return float(rng.uniform(low, high))


def replaced(part: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    field, _, rest = path.partition(".")
    return {**part, field: replaced(part[field], rest, value) if rest else value}


def problem_for(rng: np.random.Generator, recipe: dict[str, Any], family: Any) -> Problem:
    """Draw a small problem; unit vectors, with zero sums for layer norm, if there is a norm."""
    problem = draw(rng, family, n=(6, 24), d=(2, 4), k=(2, 5))
    if recipe["norm"] is None:
        return HARD_CENTERS.get(family, lambda _, same: same)(rng, problem)
    problem = on_sphere(rng, problem)
    if recipe["norm"]["part"] == "RMSNorm":
        return problem
    lift = lambda rows: zero_sum(torch.tensor(rows)).numpy()  # noqa: E731
    return Problem(lift(problem.points), lift(problem.centers), problem.family)


class Numbers:
    """Arrays of float64 in one file; each is known by its first number and its shape."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.size = 0

    def add(self, array: Any) -> list[int]:
        array = np.ascontiguousarray(array, dtype=np.float64)
        self.arrays.append(array.reshape(-1))
        start, self.size = self.size, self.size + array.size
        return [start, *array.shape]


def traced(golden: Golden, numbers: Numbers) -> dict[str, Any]:
    """Run the circuit in Python; return what JavaScript needs, and what it must find."""
    points, centers = golden.problem.points, golden.problem.centers
    asked = {
        "name": golden.name, "family": golden.problem.family, "recipe": golden.recipe,
        "nFeatures": points.shape[1], "nClusters": len(centers), "nLayers": N_LAYERS,
        "seed": golden.seed, "points": numbers.add(points), "centers": numbers.add(centers),
        "spread": golden.problem.spread,
    }  # fmt: skip
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            circuit = Circuit(deserialise(golden.recipe), points.shape[1], len(centers)).eval()
            trace = circuit(
                torch.tensor(points),
                torch.tensor(centers),
                N_LAYERS,
                names_filter="*",
                seed=golden.seed,
            )
    except ValueError as error:
        return {**asked, "refusal": str(error)}
    return {
        **asked,
        "refusal": None,
        "weights": free_weights(circuit, numbers),
        "warning": str(warned[0].message) if warned else None,
        "names": list(trace.names),
        "values": {name: numbers.add(value) for name, value in trace.kept.items()},
        "newCenters": [numbers.add(c) for c in trace.centers],
        "objective": numbers.add(trace.objective[None]),
        "labels": trace.labels.tolist(),
        "plain": plain_steps(golden, circuit.schedule[0], trace, numbers),
        "sure": [sure_labels(trace, t).tolist() for t in range(N_LAYERS)],
    }


def free_weights(circuit: Circuit, numbers: Numbers) -> dict[str, dict[str, list[int]]]:
    """Return the matrices of a recipe that leaves them free, by head and name; none of others."""
    found: dict[str, dict[str, list[int]]] = {}
    for name, weight in circuit.layers[0].state_dict().items() if circuit.schedule[0].free else ():
        head, _, which = name.rpartition(".")
        found.setdefault(head, {})[which] = numbers.add(weight.reshape(-1, weight.shape[-1]))
    return found


def plain_steps(
    golden: Golden, recipe: Recipe, trace: Trace, numbers: Numbers
) -> list[list[int]] | None:
    """Return the plain algorithm's centers after each iteration from the trace's centers.

    None if the package has no plain algorithm for the recipe.
    """
    if golden.name.startswith("random"):
        return None
    try:
        algorithm = paired_algorithm(recipe, golden.seed or 0)
    except (KeyError, ValueError):
        return None
    points, found = trace.points.numpy(), []
    for t, centers in enumerate(trace.centers[:-1].numpy()):
        weights = algorithm.weigh(points, centers, algorithm.assign(points, centers), t)
        found.append(numbers.add(algorithm.place(points, weights)))
    return found


def sure_labels(trace: Trace, t: int) -> torch.Tensor:
    """Return which labels rounding cannot change: by scores, and by the weights from them."""
    scores, weights = (
        trace[f"layers.{t}.encoder_cross.{name}"].sort(dim=-1, descending=True).values
        for name in ("scores", "attention")
    )
    tokens = [trace[f"layers.{t}.{side}_tokens"] for side in ("encoder", "decoder")]
    reach = max(each.square().sum(dim=-1).max().item() for each in tokens)
    bound = 16 * (tokens[0].shape[1] + 3) * 2**-52 * max(2 * reach, scores.abs().max().item())
    apart = weights[:, 0] - weights[:, 1]
    clear = (apart > 1e-12) | (apart == 0)
    return clear & (scores[:, 0] - scores[:, 1] > bound)


def compare(folder: Path, n_problems: int, n_random: int, browser: int) -> None:
    """Write the traces of all cases, and what one run of JavaScript finds, to found.json."""
    rng, numbers = np.random.default_rng(20), Numbers()
    drawn = [*shipped(rng, n_problems), *random_recipes(rng, n_random)]
    cases = [traced(golden, numbers) for golden in drawn]
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    np.concatenate(numbers.arrays).tofile(folder / "numbers.bin")
    found = in_chromium(folder) if browser else json.loads(run_node(str(SCRIPT), str(folder)))
    both = [{**case, **said} for case, said in zip(cases, found, strict=True)]
    (folder / "found.json").write_text(json.dumps(both), encoding="utf-8")


PAGE_OF_CASES = """<!doctype html>
<script type="application/json" id="initial-state">{}</script>
<script type="module">
import * as interpreter from "./page/interpreter/index.js";
import { compared } from "./golden_compare.js";
const [cases, bytes] = [await fetch("cases.json"), await fetch("numbers.bin")];
const numbers = new Float64Array(await bytes.arrayBuffer());
const found = JSON.stringify(compared(await cases.json(), numbers, interpreter));
document.body.appendChild(document.createElement("pre")).textContent = found;
</script>
"""


def in_chromium(folder: Path) -> list[dict[str, Any]]:
    """Return what a page in headless Chromium finds, where there is no Node."""
    shutil.copytree(PAGE, folder / "page")
    shutil.copy(SCRIPT.with_name("golden_compare.mjs"), folder / "golden_compare.js")
    (folder / "index.html").write_text(PAGE_OF_CASES, encoding="utf-8")
    with serve_page({}, folder=folder) as server:
        document = dumped(server.address, folder / "profile")
    return json.loads(unescape(re.search(r"<pre>(.*?)</pre>", document, re.S)[1]))


def compared(
    folder: Path, n_problems: int, n_random: int, browser: bool = NODE is None
) -> list[dict[str, Any]]:
    """`compare` in a process of its own: shapes of every call are not checked there, for speed."""
    command = [sys.executable, __file__, str(folder), str(n_problems), str(n_random),
               str(int(browser))]  # fmt: skip
    # The parts of the page are listed in tools/explorer_catalogue.py.
    paths = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "tools")}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=paths
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "found.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    compare(Path(sys.argv[1]), *map(int, sys.argv[2:]))
