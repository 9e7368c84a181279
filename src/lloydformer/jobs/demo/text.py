"""The texts of the demo's page."""

LEAD = (
    "This page runs seven transformers. Nothing in them was learned: every weight was set by hand. "
    "Their tokens are points and cluster centers, and **one layer does exactly one iteration** of "
    "a clustering algorithm.",
    "In a layer, each point attends to the centers and stores which one is nearest (encoder). "
    "Then each center attends to its own points and moves to their mean (decoder). "
    "Self-attention cancels the old assignments and positions, so that only the new ones "
    "remain. Replace one part, and the transformer runs another algorithm.",
)

POINTS = (
    "A circle ● marks the start of a center, a triangle ▲ its position after each layer. A point "
    "has the colour of the center that it attends to. It is filled if the center's next position "
    "uses it, and hollow if not. **Press Play**, or move the slider, to step through the layers."
)

MAPS = (
    "**The maps** show the attention of the four heads. Rows are queries, columns are keys; points "
    "are sorted by their final cluster. Hover over a map to read a weight and its two tokens.",
    "**The row** is the recipe's row in the paper's table: for each head, the score (ℓ2 for "
    "Euclidean distance, ⟨,⟩ for dot product) and the activation; then whether the layer has a "
    "norm and a feed-forward network.",
    "**The equation:** A₂ is attention by Euclidean distance, A⟨⟩ by dot product, with the "
    "activation in brackets; its arguments are the tokens of the queries, the tokens of the keys, "
    "and the query, key and value matrices. I[x] keeps a token's position, I[y] its assignment.",
)

ABOUT = {
    "lloyd": "Each point attends to its nearest center, and each center to the mean of its points. "
    "The recipes below replace parts of this one; **what they replace is marked** in their rows.",
    "lloyd_dot": "The same algorithm with dot products only. Tokens also carry their squared norm, "
    "so that a dot product gives a distance; a small network updates it in each layer.",
    "spherical": "Dot products of unit vectors, and a norm after the decoder: centers move on the "
    "circle, and points are compared by direction.",
    "soft": "Soft-max in the encoder and linear attention in the decoder: a point belongs partly "
    "to several centers. Between clusters, the colours mix.",
    "trimmed": "Norm-max in the decoder: the farthest 5 percent of each cluster do not count. "
    "They are the hollow points; the outliers are among them.",
    "robust": "Sparsemax of distances in the decoder: the farther a point is from its center, the "
    "less it counts, and outliers do not count at all.",
    "medoids": "Gumbel attention in the decoder draws one point of the cluster at random, with "
    "higher probability for near points. So a center is one of the points; the others are hollow.",
}

CHECKED = (
    "Each circuit is compared layer by layer with the plain algorithm, which is written without "
    "attention, in double precision and from the same centers. Distances between centers are in "
    "units of the data's spread; 1e-16 is rounding."
)

OBJECTIVE = (
    "The k-means objective, the sum of squared distances to the nearest center, after each layer. "
    "It never rises with Lloyd's algorithm, Euclidean or spherical; with the others it can. The "
    "curve of the dot-product form lies on that of the Euclidean form."
)

OUTSIDE = (
    "Some numbers come from outside: no attention computes them. Most are there because a computer "
    "rounds, and the paper's equations are for exact numbers. `trace.outside` holds them for every "
    "layer, and `Circuit(..., as_printed=True)` runs without them."
)

WEIGHTS = (
    "The twelve matrices of the first circuit. A matrix reads subspaces of a token (columns) and "
    "writes subspaces (rows): blue is 1, red is −1, white is 0. Every layer has the same ones."
)

SNIPPET = """import torch, lloydformer as lf

points = torch.randn(200, 2)
circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=5)
trace = circuit(points, points[:5], n_layers=10, keep=("layers.3.*",))

trace.centers                                # (11, 5, 2): before each layer, and after the last
trace.labels                                 # (10, 200)
trace["layers.3.encoder_cross.attention"]    # (200, 5)"""
