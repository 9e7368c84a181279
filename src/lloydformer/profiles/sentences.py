"""The result of a clustering in a few sentences, for readers who do not know the algorithm."""

import torch

from lloydformer.profiles.clustering import Clustering
from lloydformer.profiles.words import format_count, join_words

# A row is between two groups if it is in the middle fifth of the way from one center to another.
# Chosen so that groups 8 standard deviations apart have 0.1 % such rows, 5 apart 2 %, and k-means
# of one group 10 % (uniform, k = 2), 13 % (normal, k = 2; 10 % of 2,000 rows in 30 columns) or
# more. The silhouette falls with every column of noise and cannot tell that.
_MIDDLE = 0.4
_CLEAR, _MOSTLY = 0.03, 0.07  # largest shares of such rows for which groups are called separate
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
    names = clustering.names or {}
    described = [
        f"{sizes[j]:,} ({', '.join([*filter(None, [names.get(j)]), _percent(shares[j])])})"
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


def share_between(clustering: Clustering) -> float:
    """Return the share of the sample in the middle fifth of the way between two centers."""
    kept, centers = clustering.kept_sample, clustering.centers
    points = clustering.sample.points[kept]
    labels = clustering.assignment.clusters[clustering.sample.rows[kept]].long()
    squares = torch.cdist(points, centers).square()
    ways = torch.cdist(centers, centers).square()[labels]
    own = squares.gather(1, labels[:, None])
    # Where a row is projected on the way from its own center (0) to another one (1). Centers at the
    # same place have no way between them; nor has a center to itself.
    place = torch.where(ways > 0, (own + ways - squares) / (2 * ways.clamp(min=1e-300)), 0.0)
    return (place.amax(dim=1) > _MIDDLE).double().mean().item()


def _judge_separation(clustering: Clustering) -> list[str]:
    """Return how separate the groups are; nothing if all rows of the sample are in one."""
    silhouette = clustering.silhouette
    if silhouette is None:
        return []
    between = share_between(clustering)
    words = f"{_percent(between)} of the rows lie between two groups"
    if between <= _CLEAR:
        judged = (
            f"The groups are clearly separate: {words if between else 'no row lies between two'}"
        )
    elif between <= _MOSTLY:
        judged = f"Most rows are clearly in one group: {words}"
    else:
        judged = f"The groups touch: {words}"
    return [f"{judged} (mean silhouette {silhouette:.2f})."]
