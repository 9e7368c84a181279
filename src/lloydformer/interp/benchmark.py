"""A benchmark of methods that find circuits: every recipe, plain and disguised, soft to hard.

A case is a recipe at an inverse temperature. All its heads have soft-max at this temperature, and
in the limit they choose: there no gradient passes a choice. The truth is that of the recipe
(`layer_graph.truth`). The truth about a trained layer is not known, and all of its edges carry
something; there the half of them with the largest exact effects counts as the circuit.
"""

import inspect
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes import MAKERS, softened
from lloydformer.circuits.tokens import Binary
from lloydformer.interp.disguises import disguise_circuit
from lloydformer.interp.finders import METHODS, area_under_curve, score_edges
from lloydformer.interp.layer_graph import truth
from lloydformer.interp.layer_problem import LayerProblem, resampled_pairs
from lloydformer.learning.pretrained import SYMMETRIC, available, load
from lloydformer.numerics.checks import check_count

FORMS = ("plain", "disguised", "trained")
# Recipes whose truth is known; `soft` and `soft_dot` keep self-attention in the limit, which the
# softened `lloyd` and `lloyd_dot` do not.
RECIPES = (
    *("lloyd", "lloyd_dot", "lloyd_binary", "spherical", "soft", "soft_dot"),
    *("trimmed", "robust", "robust_lifted", "medoids"),
)
TEMPERATURES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
# Those of the quick form, which takes minutes on two cores.
QUICK_TEMPERATURES = (0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class FindingCase:
    """A circuit for the benchmark.

    Parameters
    ----------
    name : str
        Name of a recipe, or of trained weights.
    form : {"plain", "disguised", "trained"}
        Whether the heads are those of the recipe, those of `disguise_circuit`, or trained ones.
    inverse_temperature : float or None
        That of all heads; None is the limit. Trained layers have their own, and None.

    See Also
    --------
    list_cases : All of them.

    Examples
    --------
    >>> from lloydformer.interp.benchmark import FindingCase
    >>> str(FindingCase("lloyd", "plain", None)), str(FindingCase("soft", "disguised", 0.1))
    ('lloyd, plain, limit', 'soft, disguised, 0.1')
    """

    name: str
    form: str
    inverse_temperature: float | None

    def __str__(self) -> str:
        gamma = self.inverse_temperature
        level = "trained" if self.form == "trained" else "limit" if gamma is None else f"{gamma:g}"
        return f"{self.name}, {self.form}" + ("" if level == "trained" else f", {level}")


def list_cases(
    recipes: Sequence[str] = RECIPES,
    temperatures: Sequence[float] = TEMPERATURES,
    trained: Sequence[str] | None = None,
) -> list[FindingCase]:
    """Return the cases of these recipes, and of trained layers.

    Parameters
    ----------
    recipes : sequence of str, default=RECIPES
        Names of recipes.
    temperatures : sequence of float, default=TEMPERATURES
        Inverse temperatures; the limit is added where the recipe has one.
    trained : sequence of str or None, default=None
        Names of trained weights; None for all of one d and k.

    Returns
    -------
    list of FindingCase
        The cases.

    Raises
    ------
    ValueError
        If there is no such recipe, or no such weights.

    See Also
    --------
    measure_case : Measures one.

    Examples
    --------
    >>> from lloydformer.interp.benchmark import list_cases
    >>> [str(case) for case in list_cases(["lloyd_binary"], trained=[])]
    ['lloyd_binary, plain, limit', 'lloyd_binary, disguised, limit']
    """
    known = [name for name in available() if name != SYMMETRIC]
    for what, names, there in (("recipes", recipes, RECIPES), ("trained", trained or (), known)):
        for name in names:
            if name not in there:
                raise ValueError(f"{what}: found {name!r}; there are {', '.join(there)}")
    cases = [
        FindingCase(name, form, gamma)
        for form in FORMS[:2]
        for name in recipes
        for gamma in _levels(name, temperatures)
    ]
    names = known if trained is None else trained
    return cases + [FindingCase(name, "trained", None) for name in names]


def _levels(name: str, temperatures: Sequence[float]) -> list[float | None]:
    """Return the inverse temperatures at which a recipe exists; None is the limit."""
    recipe = MAKERS[name]()
    assert isinstance(recipe, Recipe)
    if isinstance(recipe.tokens.codes, Binary):  # they cannot hold shares of clusters
        return [None]
    # the limit of soft k-means is the recipe of Lloyd's algorithm
    return [*temperatures] if name.startswith("soft") else [*temperatures, None]


def recipe_at(name: str, inverse_temperature: float | None) -> Recipe:
    """Return a recipe whose heads have soft-max at this inverse temperature.

    Parameters
    ----------
    name : str
        Name of the recipe.
    inverse_temperature : float or None
        The inverse temperature; None is the recipe as it is, whose heads choose.

    Returns
    -------
    Recipe
        The recipe. Sparsemax of robust k-means stays, at this inverse temperature.

    See Also
    --------
    lloydformer.recipes.softened : Finite temperatures for any recipe.

    Examples
    --------
    >>> from lloydformer.interp.benchmark import recipe_at
    >>> recipe_at("lloyd", 2.0).name, recipe_at("lloyd", None).name, recipe_at("soft", 2.0).name
    ('lloyd_softened', 'lloyd', 'soft')
    """
    make = MAKERS[name]
    if inverse_temperature is None:
        recipe = make()
    else:
        own = "inverse_temperature" in inspect.signature(make).parameters and name != "trimmed"
        recipe = make(inverse_temperature=inverse_temperature) if own else make()
        if not name.startswith("soft"):
            recipe = softened(recipe, inverse_temperature, inverse_temperature)
    assert isinstance(recipe, Recipe)
    return recipe


def measure_case(case: FindingCase, n_pairs: int = 4, seed: int = 0) -> dict[str, Any]:
    """Return how well each method finds the circuit of a case.

    Parameters
    ----------
    case : FindingCase
        The case.
    n_pairs : int, default=4
        Number of pairs of a clean and a corrupted input.
    seed : int, default=0
        Seed of inputs, noise and disguise.

    Returns
    -------
    dict
        Numbers of edges (`n_edges`, `n_in_circuit`), and for each method the area under the curve
        (`area`), the part of the circuit's edges with a score above 0 (`found`) and `seconds`.

    See Also
    --------
    score_edges : The methods.

    Examples
    --------
    >>> from lloydformer.interp.benchmark import FindingCase, measure_case
    >>> row = measure_case(FindingCase("lloyd", "plain", None), n_pairs=2)
    >>> row["area"]["activation patching"], row["area"]["edge attribution"]
    (1.0, 0.75)
    """
    check_count("n_pairs", n_pairs)
    in_circuit: list[bool] | None = None
    if case.form == "trained":
        circuit = load(case.name).circuit().double()
        recipe = circuit.schedule[0]
        assert isinstance(recipe, Recipe)
        sizes = (4 * circuit.n_clusters, circuit.n_features, circuit.n_clusters)
        problem = LayerProblem(circuit, resampled_pairs(recipe, n_pairs, *sizes, seed=seed))
    else:
        recipe = recipe_at(case.name, case.inverse_temperature)
        pairs = resampled_pairs(recipe, n_pairs, seed=seed)
        circuit = Circuit(recipe, pairs[0].clean[0].shape[1], len(pairs[0].clean[1]))
        known = truth(recipe)
        if case.form == "disguised":
            hidden = disguise_circuit(circuit, seed=seed)
            circuit, known = hidden.circuit, hidden.truth()
        edges = set(map(str, known.edges))
        problem = LayerProblem(circuit, pairs, seed=seed)
        in_circuit = [str(edge) in edges for edge in problem.edges]
    scores, seconds = dict[str, torch.Tensor](), dict[str, float]()
    for method in METHODS:
        begin = time.perf_counter()
        scores[method] = score_edges(problem, method)
        seconds[method] = time.perf_counter() - begin
    if in_circuit is None:
        exact = scores["activation patching"]
        in_circuit = (exact > exact.median()).tolist()
    inside = torch.tensor(in_circuit)
    return {
        "name": case.name,
        "form": case.form,
        "inverse_temperature": case.inverse_temperature,
        "n_edges": problem.n_edges,
        "n_in_circuit": sum(in_circuit),
        "area": {m: area_under_curve(s, in_circuit) for m, s in scores.items()},
        "found": {m: (s[inside] > 0).double().mean().item() for m, s in scores.items()},
        "seconds": seconds,
    }


def mean_areas(
    rows: Sequence[dict[str, Any]],
) -> Iterator[tuple[str, float | None, dict[str, float]]]:
    """Yield form, inverse temperature and the mean area of each method over the recipes.

    Parameters
    ----------
    rows : sequence of dict
        Results of `measure_case`.

    Yields
    ------
    form : str
        As in the rows.
    inverse_temperature : float or None
        As in the rows; the limit, None, comes last.
    areas : dict of str to float
        By method; rows without an area are left out.

    See Also
    --------
    measure_case : Makes a row.

    Examples
    --------
    >>> from lloydformer.interp.benchmark import mean_areas
    >>> rows = [{"form": "plain", "inverse_temperature": 1.0, "area": {"x": a}} for a in (0.5, 1.0)]
    >>> list(mean_areas(rows))
    [('plain', 1.0, {'x': 0.75})]
    """
    levels = {(row["form"], row["inverse_temperature"]) for row in rows}

    def order(level: tuple[str, float | None]) -> tuple[int, bool, float]:
        form, gamma = level
        return FORMS.index(form), gamma is None, gamma or 0.0

    for form, gamma in sorted(levels, key=order):
        here = [r for r in rows if (r["form"], r["inverse_temperature"]) == (form, gamma)]
        yield (
            form,
            gamma,
            {
                method: fmean(areas)
                for method in here[0]["area"]
                if (areas := [r["area"][method] for r in here if r["area"][method] is not None])
            },
        )
