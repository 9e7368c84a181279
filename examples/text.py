"""Text: spherical k-means on the documentation of NumPy, SciPy and scikit-learn.

Each public function or class of eight modules is a document, its docstring. TF-IDF turns them
into a sparse matrix, which stays sparse; spherical k-means compares rows by their direction
alone, so that long and short documents count the same.

    python text.py [picture.png]
"""

import importlib
import sys
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score

import lloydformer as lf
from lloydformer.plots.palette import cluster_colour

modules = [
    "numpy.fft", "numpy.linalg", "numpy.random", "scipy.interpolate", "scipy.ndimage",
    "scipy.optimize", "scipy.signal", "sklearn.metrics",
]  # fmt: skip
texts, origins = [], []
for module in map(importlib.import_module, modules):
    for name in module.__all__:
        text = (getattr(module, name).__doc__ or "").partition("References\n")[0]
        if len(text) > 300:
            texts.append(text)
            origins.append(module.__name__)

words = TfidfVectorizer(
    sublinear_tf=True, stop_words="english", token_pattern=r"[a-zA-Z]{3,}", min_df=3, max_df=0.2
)
X = words.fit_transform(texts)
model = lf.SphericalKMeans(8, n_init=10, random_state=0).fit(X)
print(f"{X.shape[0]} documents, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} of them in each")
print(f"agreement with the modules: {adjusted_rand_score(origins, model.labels_):.2f}")
vocabulary = words.get_feature_names_out()
for j in range(8):
    print(j, Counter(np.array(origins)[model.labels_==j]).most_common(3), vocabulary[model.cluster_centers_[j].argsort()[::-1][:7]])
