"""A transformer in plain torch that runs a clustering algorithm; copy this file to use it alone.

One residual stream holds the tokens of the points and then those of the centers. Each block is
multi-head attention with W_Q, W_K, W_V and W_O, scores divided by sqrt(d_head), then an optional
norm, then an MLP; both are added to the stream. Nothing here knows an algorithm: it is in the
weights, which `lloydformer.compile_transformer` makes.

A token is [position (d), squared norm (1), code of its cluster (m), is_point (1), is_center (1)].
A token sees itself and all tokens of the other type.
"""

import json
from typing import Any

import torch
from torch import Tensor, nn


class PlainAttention(nn.Module):
    """Heads that read the stream; their sum is added to it. Weights are (heads, in, out)."""

    hard: Tensor

    def __init__(self, d_model: int, d_head: int, hard: list[bool]) -> None:
        super().__init__()
        heads = len(hard)
        self.W_Q = nn.Parameter(torch.zeros(heads, d_model, d_head))
        self.W_K = nn.Parameter(torch.zeros(heads, d_model, d_head))
        self.W_V = nn.Parameter(torch.zeros(heads, d_model, d_head))
        self.W_O = nn.Parameter(torch.zeros(heads, d_head, d_model))
        self.register_buffer("hard", torch.tensor(hard).view(heads, 1, 1), persistent=False)
        # points for hooks: all intermediates pass through a module of their name
        self.q, self.k, self.v = nn.Identity(), nn.Identity(), nn.Identity()
        self.scores, self.pattern, self.result = nn.Identity(), nn.Identity(), nn.Identity()

    def forward(self, stream: Tensor, mask: Tensor) -> Tensor:
        stream = stream.unsqueeze(-3)  # (..., 1, tokens, d_model)
        q, k = self.q(stream @ self.W_Q), self.k(stream @ self.W_K)  # (..., heads, tokens, d_head)
        v = self.v(stream @ self.W_V)
        scores = q @ k.mT / q.shape[-1] ** 0.5  # (..., heads, tokens, tokens)
        scores = self.scores(scores.masked_fill(~mask, -torch.inf))
        soft = scores.softmax(dim=-1)
        best = (scores == scores.amax(dim=-1, keepdim=True)).to(soft)
        pattern = self.pattern(torch.where(self.hard, best / best.sum(-1, keepdim=True), soft))
        return self.result(pattern @ v @ self.W_O).sum(dim=-3)  # (..., tokens, d_model)


class PlainMLP(nn.Module):
    """Two matrices with the square of relu between them, as in Primer (So et al., 2021)."""

    def __init__(self, d_model: int, d_mlp: int) -> None:
        super().__init__()
        self.W_in = nn.Parameter(torch.zeros(d_model, d_mlp))
        self.W_out = nn.Parameter(torch.zeros(d_mlp, d_model))
        self.hidden = nn.Identity()

    def forward(self, stream: Tensor) -> Tensor:
        return self.hidden((stream @ self.W_in).relu().square()) @ self.W_out


class PlainNorm(nn.Module):
    """Divides the first d numbers by their length; "layer" subtracts their mean first."""

    def __init__(self, kind: str, n_features: int) -> None:
        super().__init__()
        self.kind, self.n_features = kind, n_features

    def forward(self, stream: Tensor) -> Tensor:
        position, rest = stream[..., : self.n_features], stream[..., self.n_features :]
        if self.kind == "layer":
            position = position - position.mean(dim=-1, keepdim=True)
        return torch.cat([position / position.norm(dim=-1, keepdim=True), rest], dim=-1)


class PlainBlock(nn.Module):
    """Attention, norm and MLP."""

    def __init__(self, config: dict[str, Any], hard: list[bool], norm: str | None) -> None:
        super().__init__()
        self.attention = PlainAttention(config["d_model"], config["d_head"], hard)
        self.norm = PlainNorm(norm, config["n_features"]) if norm else nn.Identity()
        self.mlp = PlainMLP(config["d_model"], config["d_mlp"])
        self.middle, self.out = nn.Identity(), nn.Identity()

    def forward(self, stream: Tensor, mask: Tensor) -> Tensor:
        stream = self.middle(self.norm(stream + self.attention(stream, mask)))
        return self.out(stream + self.mlp(stream))


class PlainTransformer(nn.Module):
    """Maps points (n, d) and initial centers (k, d) to the last centers and the labels.

    config: the sizes, and for each block which heads are hard and the norm.
    """

    codes: Tensor

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config = config
        self.blocks = nn.ModuleList(
            PlainBlock(config, hard, norm)
            for hard, norm in zip(config["hard"], config["norms"], strict=True)
        )
        # embedding and unembedding of a token; the identity unless disguised
        self.W_E = nn.Parameter(torch.eye(config["d_model"]))
        self.W_U = nn.Parameter(torch.eye(config["d_model"]))
        self.embedded = nn.Identity()
        self.register_buffer("codes", torch.zeros(config["n_clusters"], config["code_size"]))

    def tokens(self, points: Tensor, centers: Tensor) -> Tensor:
        """Return the stream before the first block: n points, then k centers."""
        n, k = points.shape[-2], centers.shape[-2]
        position = torch.cat([points, centers], dim=-2)
        is_center = (torch.arange(n + k, device=points.device) >= n).to(points).unsqueeze(-1)
        is_center = is_center.expand(*position.shape[:-1], 1)
        none = points.new_zeros(*points.shape[:-1], self.codes.shape[-1])  # not assigned yet
        own = self.codes.to(points).expand(*centers.shape[:-1], -1)
        code = torch.cat([none, own], dim=-2)
        square = position.square().sum(dim=-1, keepdim=True)
        return torch.cat([position, square, code, 1 - is_center, is_center], dim=-1) @ self.W_E

    def mask(self, n: int, k: int, device: torch.device) -> Tensor:
        """Return which tokens (columns) a token (row) sees."""
        number = torch.arange(n + k, device=device)
        is_center = number >= n
        return (is_center[:, None] != is_center) | (number[:, None] == number)

    def forward(self, points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
        n = points.shape[-2]
        stream = self.embedded(self.tokens(points, centers))
        mask = self.mask(n, centers.shape[-2], points.device)
        for block in self.blocks:
            stream = block(stream, mask)
        stream = stream @ self.W_U
        d, m = self.config["n_features"], self.config["code_size"]
        code = stream[..., :n, d + 1 : d + 1 + m]
        labels = (code @ self.codes.to(code).mT).argmax(dim=-1)
        return stream[..., n:, :d], labels


def read(path: str) -> PlainTransformer:
    """Return the model of a file that `lloydformer.compile_transformer(...).save` has written."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        model = PlainTransformer(json.loads(file.metadata()["plain_transformer"]))
    model.load_state_dict(weights, assign=True)
    return model
