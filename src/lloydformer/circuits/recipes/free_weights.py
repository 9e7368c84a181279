"""The layer whose weights are learned."""

from dataclasses import replace
from typing import Literal

from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import Dense
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.robust_kmeans import Weighting, choose_activation
from lloydformer.circuits.scores import DotProduct, Euclidean, Scaled, Score
from lloydformer.circuits.tokens import Binary, plain, positions_only


def learned(
    codes: Literal["onehot", "binary"] | None = "onehot",
    bias: bool = True,
    scaled: bool = True,
    activation: Weighting = "softmax",
    dropout: float = 0.01,
    decoder: Literal["euclidean", "dot"] = "euclidean",
) -> Recipe:
    r"""Return the recipe of the layer whose weights are learned.

    Section sec:results:train. The defaults are those of the authors' runs: Euclidean scores in all
    four heads, and maps with a bias. The text's own model, eq:l2-trf-updates, is
    `learned(decoder="dot", bias=False)`. Tokens are embedded again before each layer.

    Parameters
    ----------
    codes : {"onehot", "binary"} or None, default="onehot"
        How clusters are written into tokens. None leaves these dimensions out: tokens are
        positions, $d_{emb} = d$.
    bias : bool, default=True
        Whether queries, keys and values have a bias.
    scaled : bool, default=True
        Whether scores are divided by $\sqrt{d_{emb}}$.
    activation : {"sparsemax", "softmax"}, default="softmax"
        Activation of all heads.
    dropout : float, default=0.01
        Fraction of the attention weights that are set to zero during training.
    decoder : {"euclidean", "dot"}, default="euclidean"
        Scores of the decoder's two heads.

    Returns
    -------
    Recipe
        The recipe, without weights. A `Circuit` draws them with its `seed`.

    Raises
    ------
    ValueError
        If `codes` or `decoder` is not one of those named.

    See Also
    --------
    symmetric : A learned layer that respects the symmetries of k-means.
    lloydformer.LearnedKMeans : The estimator.

    Examples
    --------
    >>> import lloydformer as lf
    >>> circuit = lf.Circuit(lf.recipes.learned(), n_features=2, n_clusters=3, trainable=True)
    >>> sum(weight.numel() for weight in circuit.parameters())  # 12 matrices and biases
    360
    """
    tokens = {"onehot": plain(), "binary": plain(Binary()), None: positions_only()}
    if codes not in tokens:
        raise ValueError(f'codes: found {codes!r}; pass "onehot", "binary" or None')
    scores: dict[str, Score] = {"euclidean": Euclidean(), "dot": DotProduct()}
    if decoder not in scores:
        raise ValueError(f'decoder: found {decoder!r}; pass "euclidean" or "dot"')
    score, free = Scaled(Euclidean()) if scaled else Euclidean(), Dense(bias)
    head = Head(score, choose_activation(activation, 1.0), free, free, free, dropout=dropout)
    center_score = Scaled(scores[decoder]) if scaled else scores[decoder]
    center_head = replace(head, score=center_score)
    return Recipe(
        name="learned",
        tokens=tokens[codes],
        encoder_cross=head,
        encoder_self=head,
        decoder_cross=center_head,
        decoder_self=center_head,
        algorithm="learned",
        appendix="asec:trf-train",
        embeds_again=True,
    )
