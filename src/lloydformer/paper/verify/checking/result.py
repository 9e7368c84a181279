"""The result of `lloydformer.check`."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lloydformer.circuits.stages import AnyRecipe
from lloydformer.fork_safety import cached_property
from lloydformer.paper.verify.checking.differences import FirstDifference, TrialOutcome
from lloydformer.paper.verify.checking.report import (
    as_json_values,
    difference_lines,
    json_number,
    snippet,
    verdict_lines,
)
from lloydformer.paper.verify.checking.shrink import shrink


@dataclass(frozen=True, repr=False)
class CheckResult:
    """The comparison of a recipe with a plain algorithm; true if they agree.

    Parameters
    ----------
    recipe : Recipe or Staged
        The recipe.
    outcomes : tuple of TrialOutcome
        The comparison on each problem.
    is_known : bool
        Whether the algorithm is the one that the recipe is named after.

    Attributes
    ----------
    agrees : bool
        True if no difference was found.
    families : dict of str to dict
        Number of problems, of those that agree, and the largest deviation, by family.
    deviation : float
        Largest difference of centers, in spreads of the points, where rounding does not decide.
    difference : FirstDifference or None
        The first difference.
    smallest : FirstDifference or None
        A difference of the same kind on a small problem.

    See Also
    --------
    check : Returns it.

    Examples
    --------
    >>> import lloydformer as lf
    >>> result = lf.check(lf.recipes.lloyd(), families="integer", n_problems=2)
    >>> result.agrees, result.difference
    (True, None)
    """

    recipe: AnyRecipe
    outcomes: tuple[TrialOutcome, ...]
    is_known: bool

    def __bool__(self) -> bool:
        return self.agrees

    @property
    def agrees(self) -> bool:
        """True if no difference was found.

        See Also
        --------
        CheckResult.difference : The first difference.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.check(lf.recipes.soft(2.0), families="uniform", n_problems=1).agrees
        True
        """
        return self.difference is None

    @property
    def difference(self) -> FirstDifference | None:
        """The first difference: of the first problem that has one, in its first layer.

        See Also
        --------
        CheckResult.smallest : A small problem with such a difference.

        Examples
        --------
        >>> import lloydformer as lf
        >>> from lloydformer.algorithms import Lloyd
        >>> shared = lf.recipes.lloyd(ties="average")
        >>> lf.check(shared, Lloyd(ties="first"), families="ties").difference.kind
        'assignment'
        """
        return next((o.difference for o in self.outcomes if o.difference is not None), None)

    # cached: shrinking runs up to 400 comparisons, and repr, snippet and as_dict all need it
    @cached_property
    def smallest(self) -> FirstDifference | None:
        """A difference of the same kind as the first, on a problem small enough to read.

        Points, centers, features and layers are removed and numbers are rounded as long as the
        difference stays. It takes up to a few seconds.

        See Also
        --------
        CheckResult.snippet : Code for this problem.

        Examples
        --------
        >>> import lloydformer as lf
        >>> from lloydformer.algorithms import Lloyd
        >>> shared = lf.recipes.lloyd(ties="average")
        >>> result = lf.check(shared, Lloyd(ties="first"), families="ties")
        >>> result.smallest.trial.problem.points.tolist()
        [[0.0], [1.0]]
        >>> result.smallest.trial.problem.centers.tolist()
        [[0.0], [2.0]]
        """
        return None if self.difference is None else shrink(self.difference)

    @property
    def deviation(self) -> float:
        """Largest difference of centers, in spreads of the points, where rounding does not decide.

        See Also
        --------
        CheckResult.families : The same for each family.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.check(lf.recipes.lloyd(), families="clustered", n_problems=1).deviation < 1e-9
        True
        """
        return float(np.max([o.deviation for o in self.outcomes]))

    @property
    def families(self) -> dict[str, dict[str, Any]]:
        """Number of problems, of those that agree, and the largest deviation, by family.

        `undefined` is the number of problems on which the algorithm's centers are not numbers from
        the first iteration on.

        See Also
        --------
        check : Its parameter `families` chooses some.

        Examples
        --------
        >>> import lloydformer as lf
        >>> list(lf.check(lf.recipes.spherical(), n_problems=1).families)
        ['clustered', 'uniform', 'integer', 'between', 'duplicates', 'coincident', 'axes']
        """
        rows = {}
        for name in dict.fromkeys(o.trial.problem.family for o in self.outcomes):
            outcomes = [o for o in self.outcomes if o.trial.problem.family == name]
            undefined = sum(o.undefined == o.trial.n_layers for o in outcomes)
            rows[name] = {
                "problems": len(outcomes),
                "agree": sum(o.difference is None for o in outcomes) - undefined,
                "undefined": undefined,
                # np.max and not max, which may lose a NaN
                "deviation": float(np.max([o.deviation for o in outcomes])),
            }
        return rows

    @property
    def snippet(self) -> str | None:
        """Python code that runs recipe and algorithm on the smallest problem; None if they agree.

        It uses the names `recipe` and `algorithm`.

        See Also
        --------
        CheckResult.smallest : The problem.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.check(lf.recipes.lloyd(), families="clustered", n_problems=1).snippet is None
        True
        """
        return None if self.smallest is None else snippet(self.smallest, self.is_known)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as values that JSON can hold.

        Returns
        -------
        dict
            Verdict, families, deviation, the first difference and the smallest one.

        See Also
        --------
        CheckResult.families : A part of it.

        Examples
        --------
        >>> import lloydformer as lf
        >>> result = lf.check(lf.recipes.soft(), families="uniform", n_problems=1)
        >>> result.as_dict()["agrees"]
        True
        """
        first, smallest = self.difference, self.smallest
        return {
            "recipe": self.recipe.name,
            "algorithm": repr(self.outcomes[0].trial.algorithm),
            "agrees": self.agrees,
            "problems": len(self.outcomes),
            "deviation": json_number(self.deviation),
            "undecided": sum(o.undecided for o in self.outcomes),
            "rows": {
                name: {**row, "deviation": json_number(row["deviation"])}
                for name, row in self.families.items()
            },
            "first": None if first is None else as_json_values(first),
            "smallest": None if smallest is None else as_json_values(smallest),
            "snippet": self.snippet,
        }

    def __repr__(self) -> str:
        lines = verdict_lines(self.recipe, self.outcomes, self.families)
        if self.difference is not None and self.smallest is not None and self.snippet is not None:
            lines += difference_lines(self.difference, self.smallest, self.snippet)
        return "\n".join(lines)
