"""What the demo's page says."""

LEAD = (
    "Below run seven transformers. Nothing in them was learned: every weight was written down. "
    "Their tokens are points and cluster centers, and **one layer does exactly one iteration** of "
    "a clustering algorithm.",
    "In a layer, each point attends to the centers and notes down the one that it belongs to "
    "(encoder). Then each center attends to the points that are its own and moves among them "
    "(decoder). Self-attention wipes out the old notes and positions, so that only the new ones "
    "remain. Replace one part, and the transformer runs another algorithm.",
)

POINTS = (
    "Centers start at a circle ● and are at a triangle ▲ after each layer. A point has the colour "
    "of the center that it attends to. It is full if it counts for the center's next position, "
    "and hollow if it does not. **Press Play**, or move the slider, to go through the layers."
)

MAPS = (
    "**The maps** show the attention of the four heads. Rows are the tokens that ask, columns the "
    "tokens that answer; points are in the order of their final clusters. Hover over a map to "
    "read a weight and to see whose it is.",
    "**The row** is the recipe's in the paper's table: for each head, the score (ℓ2 for Euclidean "
    "distance, ⟨,⟩ for dot product) and the activation; whether there is a norm, and whether a "
    "feed-forward network.",
    "**The equation:** A₂ is attention by Euclidean distance, A⟨⟩ by dot product, with the "
    "activation in brackets; then come who asks, who answers, and the query, key and value "
    "matrices. I[x] keeps a token's position, I[y] its assignment.",
)

ABOUT = {
    "lloyd": "Each point attends to its nearest center, and each center to the mean of its points. "
    "The recipes below replace parts of this one; **what they replace is marked** in their rows.",
    "lloyd_dot": "The same algorithm with dot products alone. Tokens also carry their squared "
    "norm, from which dot products make distances, and a small network renews it in each layer.",
    "spherical": "Dot products of unit vectors, and a norm after the decoder: centers move on the "
    "circle, and points are told apart by their direction.",
    "soft": "Soft-max in the encoder and linear attention in the decoder: a point belongs to "
    "several centers in part. Where clusters meet, colours mix.",
    "trimmed": "Norm-max in the decoder: the farthest 5 percent of each cluster do not count. "
    "They are the hollow points, and outliers are among them.",
    "robust": "Sparsemax of distances in the decoder: the farther a point is from its center, the "
    "less it counts, and outliers do not count at all.",
    "medoids": "Gumbel attention in the decoder draws one point of the cluster at random, near "
    "ones being likelier. So a center is always one of the points, and the others are hollow.",
}

CHECKED = (
    "Each circuit runs layer by layer beside the plain algorithm, written without any attention, "
    "in double precision and from the same centers. Distances between centers are given in units "
    "of the data's spread; 1e-16 is rounding."
)

OBJECTIVE = (
    "What each recipe does to the k-means objective, the sum of squared distances to the nearest "
    "center. Lloyd's algorithm, Euclidean or spherical, never lets it rise; the others promise no "
    "such thing. The dot-product form lies on the Euclidean one."
)

WEIGHTS = (
    "The twelve matrices of the first circuit. Each reads subspaces of a token (columns) and "
    "writes them (rows): blue is 1, red is −1, white is 0. Every layer has the same ones."
)

SNIPPET = """import torch, lloydformer as lf

points = torch.randn(200, 2)
circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=5)
trace = circuit(points, points[:5], n_layers=10, keep=("layers.3.*",))

trace.centers                                # (11, 5, 2): before each layer, and after the last
trace.labels                                 # (10, 200)
trace["layers.3.encoder_cross.attention"]    # (200, 5)"""
