"""The size of leaves: fixed ranges of global rows, whose sums are merged along one binary tree."""

import torch

LEAF = 8192
"""Rows of a leaf on the CPU, unless its sums would be large."""
_FEWEST = 1024
_SUMS = 1 << 17
"""Numbers k d of a leaf's sums beyond which leaves get longer, so that merging stays cheap."""
_CPU_SCORES = 1 << 20
"""Scores that are computed together on the CPU: they stay in cache."""
_GPU_LEAF = 1 << 20
_GPU_SCORES = 1 << 27


def leaf_rows(device: torch.device, n_features: int, n_clusters: int) -> int:
    """Rows of a leaf. On the CPU this depends on k and d alone, not on the engine or on n."""
    if device.type != "cpu":
        return min(_GPU_LEAF, _GPU_SCORES // max(n_clusters, n_features))
    sums = n_features * n_clusters
    return LEAF if sums <= _SUMS else 1 << (sums // 16 - 1).bit_length()


def part_rows(device: torch.device, n_features: int, n_clusters: int) -> int:
    """Rows of a leaf that are processed together, so that their scores take little memory."""
    leaf = leaf_rows(device, n_features, n_clusters)
    if device.type != "cpu":
        return leaf
    return max(_FEWEST, min(leaf, _CPU_SCORES // max(n_clusters, n_features)))
