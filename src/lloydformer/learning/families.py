"""Names of the families of mixture distributions; `tasks.QUANTILES` has their functions.

A file of its own, because `lloydformer train --help` lists them and must not import torch.
"""

FAMILIES = ("normal", "cauchy", "gumbel", "laplace", "lognormal")
