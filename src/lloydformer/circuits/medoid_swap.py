"""An exchange of medoids as a circuit: candidates are drawn, and the best exchange is made.

Every stage is explained and proved in docs/medoids.md. Tokens and heads are those of `relocating`.
"""

from dataclasses import replace

from lloydformer.circuits.activations import Lots, Ranked
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import copy, on
from lloydformer.circuits.relocating import (
    ERROR,
    FIRST,
    HERE,
    NEAREST,
    OBJECTIVE,
    SECOND,
    SECOND_LESS_FIRST,
    SQUARED_ERROR,
    TOTAL_ERROR,
    TWIN,
    UTILITY,
    best,
    choose_lower_objective,
    itself,
    member_sum,
    only_token,
    relocating,
)
from lloydformer.circuits.scores import DotProduct
from lloydformer.circuits.stages import Stage, Staged, Sublayer
from lloydformer.circuits.subspaces import ABSENT, NAME, ONE


def exchange(margin: float) -> Sublayer:
    """Return the best exchange of a drawn point and a medoid, if it lowers the loss."""
    draw = Head(DotProduct(), Lots(1.0, Ranked()), copy(ONE, ERROR), on(ERROR), HERE)
    named_cost = copy(UTILITY, OBJECTIVE) + on(NAME)
    cheapest = Head(DotProduct(), FIRST, -copy(ONE, UTILITY), on(UTILITY), named_cost)
    # a medoid reads the candidate if it is the one that goes (score 1), else itself (score 1/2)
    place = Head(DotProduct(), FIRST, on(NAME), copy(TWIN, NAME) + 0.5 * on(NAME), HERE)
    stages = (
        Stage("assign", "assigned", of=("points",))
        .read("nearest", NEAREST, "centers")
        .then(SQUARED_ERROR),
        Stage("judge", "before", of=("verdict",)).read("total", TOTAL_ERROR, "assigned"),
        Stage("draw", "drawn", of=("draws",), along="verdict").read(
            "point", draw, "assigned", lots="drawn"
        ),
        Stage("take", "candidates", of=("draws",)).read(
            "drawn", best(on(ONE), HERE, ONE), "drawn", across=True
        ),
        # one proposal for each candidate: the medoids, and a spare center at its position
        Stage("each", "candidate", of=("candidates",), along="candidates"),
        Stage("offer", "offer", of=("spares",), along="candidates")
        .read("self", itself(-on(ABSENT)), "offer")
        .read("hear", only_token(HERE), "candidate"),
        Stage("stay", "medoids", of=("centers",), along="candidates"),
        Stage("ahead", "ahead", of=("points",), along="candidates")
        .read("nearest", NEAREST, "medoids", "offer")
        .read("second", SECOND, "medoids", "offer")
        .then(SQUARED_ERROR, *SECOND_LESS_FIRST),
        # the loss with the candidate, plus the utility of a medoid, is the loss after the exchange:
        # points of the candidate stay there, those of the medoid go to the second nearest
        Stage("utility", "medoids").read("sum", member_sum(UTILITY), "ahead"),
        Stage("weigh", "verdicts", of=("verdict",), along="candidates")
        .read("total", TOTAL_ERROR, "ahead")
        .read("least", cheapest, "medoids"),
        Stage("address", "offer").read("hear", only_token(copy(NAME, TWIN)), "verdicts"),
        Stage("replace", "proposals", of=("centers",), along="candidates")
        .read("self", itself(-HERE), "proposals")
        .read("place", place, "proposals", "offer")
        .read("hear", only_token(on(OBJECTIVE)), "verdicts"),
        Stage("stand", "standing", of=("centers",)).read(
            "hear", only_token((1 - margin) * on(OBJECTIVE)), "before"
        ),
        choose_lower_objective("proposals"),
    )
    return Sublayer("exchange", stages)


def medoids_swap(n_draws: int = 4, margin: float = 1e-9) -> Staged:
    r"""Return the recipe that exchanges a medoid with a drawn point if this lowers the loss.

    Candidates are drawn without replacement in proportion to their squared distance to their
    medoid. For every candidate and every medoid, the loss with the candidate in place of the medoid
    is computed; the lowest of all is chosen, unless the loss is as low as it was. A layer of this
    recipe needs a seed, and centers that are points.

    Parameters
    ----------
    n_draws : int, default=4
        Number of candidates; at most the number of points. `KMedoids` draws 32.
    margin : float, default=1e-9
        Fraction by which the loss must fall.

    Returns
    -------
    Staged
        The recipe.

    Raises
    ------
    ValueError
        If a number is not in its range.

    See Also
    --------
    medoids : The paper's sampler.
    relocating : Relocations of means.
    lloydformer.KMedoids : The estimator, whose search makes these exchanges among other moves.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> start = torch.tensor([[0.0], [1.0]])  # both in one cluster
    >>> circuit = lf.Circuit(lf.recipes.medoids_swap(n_draws=6), n_features=1, n_clusters=2)
    >>> circuit(points, start, n_layers=2, seed=0).objective.tolist()
    [303.0, 4.0, 4.0]
    """
    base = relocating(n_draws=n_draws, margin=margin)
    return replace(
        base,
        name="medoids_swap",
        counts=replace(base.counts, spares=1, candidates=1),
        sublayers=(exchange(margin),),
        algorithm="k-medoids by exchanges",
        appendix="docs/medoids.md",
    )
