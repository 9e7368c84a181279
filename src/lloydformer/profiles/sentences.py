"""The result of a clustering in a few sentences, for readers who do not know the algorithm."""

from lloydformer.profiles.clustering import Clustering
from lloydformer.profiles.words import format_count, format_number, join_words

# Bands of the mean silhouette (Kaufman and Rousseeuw, "Finding Groups in Data", 1990, table 4).
_CLEAR = (
    (0.70, "The groups are clearly separate"),
    (0.50, "Most groups are separate"),
    (0.25, "The groups overlap at their edges"),
    (-1.0, "The groups are hardly separate: many rows are about as near to another group"),
)
_FEW = 5  # groups whose sizes are all named
# A column whose variance the clusters explain by less is not named as one that sets them apart.
_MATTERS = 0.1


def summarize_clusters(clustering: Clustering) -> list[str]:
    """Return sentences: how many groups, how large, what sets them apart, how separate they are."""
    sentences = [_count_groups(clustering)]
    if clustering.n_clusters > 1:
        sentences += [_name_differences(clustering), *_judge_separation(clustering)]
    if clustering.totals.left_out is not None:
        count = sum(clustering.totals.left_out)
        verb = "was" if count == 1 else "were"
        sentences.append(f"{format_count(count, 'row')} {verb} left out as far from every group.")
    return sentences


def _count_groups(clustering: Clustering) -> str:
    """Return the number of groups and their sizes."""
    k, sizes, shares = clustering.n_clusters, clustering.totals.sizes, clustering.shares
    left_out = clustering.totals.left_out is not None
    some = "" if not left_out else f"{sum(sizes):,} of "
    start = f"{some}{format_count(clustering.n_rows, 'row')} with "
    start += format_count(len(clustering.columns), "column")
    if k == 1:
        return f"{start} are in one group."
    order = sorted(range(k), key=lambda j: -sizes[j])
    described = [
        f"{'' if clustering.names is None else clustering.name(j) + ': '}"
        f"{sizes[j]:,} ({_percent(shares[j])})"
        for j in order
    ]
    if k <= _FEW:
        return f"{start} fall into {k} groups of {join_words(described)} rows."
    largest, smallest = described[0], described[-1]
    return (
        f"{start} fall into {k} groups, the largest of {largest}, the smallest of {smallest} rows."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.095 or share == 0 else f"{100 * share:.1g}%"


def _name_differences(clustering: Clustering) -> str:
    """Return the columns that set the groups apart most."""
    pairs = [(share, name) for name, share in rank_columns(clustering) if share >= _MATTERS]
    if not pairs:
        return "No single column sets them apart."
    if len(clustering.columns) == 1:
        return f"They differ in {pairs[0][1]}."
    names = [name for _, name in pairs[:3]]
    few = "" if len(pairs) <= 3 else ", and less in others"
    return f"They differ most in {join_words(names)}{few}."


def rank_columns(clustering: Clustering) -> list[tuple[str, float]]:
    """Return columns and the share of their variance that the clusters explain, largest first."""
    statistics = clustering.statistics
    order = (-statistics.explained).argsort(kind="stable").tolist()
    names = [clustering.columns[i] for i in statistics.chosen]
    return [(names[i], float(statistics.explained[i])) for i in order]


def _judge_separation(clustering: Clustering) -> list[str]:
    """Return how separate the groups are, by the mean silhouette; nothing without one."""
    mean = clustering.silhouette
    if mean is None:
        return []
    words = next(words for least, words in _CLEAR if mean > least or least == -1.0)
    return [f"{words} (mean silhouette {format_number(round(mean, 2), 2)}; 1 is best, 0 is none)."]
