"""Numbers that define the searches for better centers and medoids, each with its reason.

Circuits, plain algorithms, plans and the solver read them from here, so that all make the same
decision on the same data; the C++ kernels repeat them. There is no code here: the plain algorithms,
which everything else is compared with, share definitions with production code and nothing more.

Rounding, for comparison (60 random problems with up to 300,000 rows, float64): an objective summed
in another order differs by up to 7e-16 of its value, the gain of a split by up to 2e-12.
"""

# Gains, costs and objectives that differ by no more than this fraction count as equal, and the
# first of them is used. Such ties are common, and must not be decided by rounding: both halves of a
# split have the same gain, and two centers that are each other's second nearest cost the same.
TIE = 1e-9

# Centers are settled if a step of Lloyd's algorithm lowers the objective by at most this fraction.
# Above rounding and below every other number here: a step that is ignored decides nothing.
SETTLED = 1e-12

# A relocation is kept if it lowers the objective or loss by more than this fraction. Chosen by
# hand, far above rounding: a kept relocation resets the patience, so smaller gains would prolong
# a search without visible effect.
RELOCATION_GAIN = 1e-6

# An exchange of medoids is made if it lowers the loss by more than this fraction. Exchanges are
# cheap, so this one is just a tie; it makes the search end where gains are rounding.
EXCHANGE_GAIN = TIE

# Solutions of a pool whose objectives differ by at most this fraction count as the same one. It is
# not below RELOCATION_GAIN: a difference that no relocation would keep is no new solution.
SAME_SOLUTION = 1e-6

# Clusters are drawn for a split with probability proportional to their error to this power. Among
# about eighty settings that were tried it mattered little (docs/relocating.md).
SPLIT_SHARPNESS = 2.0

# Centers whose removal is tried: those with the least utility. It bounds the sums of a relocation
# to 64 k d numbers (docs/relocating.md).
REMOVAL_CANDIDATES = 64
