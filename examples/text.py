"""Text: spherical k-means on the documentation of NumPy, SciPy and scikit-learn.

The docstring of each public function or class of eight modules is a document. TF-IDF turns the
documents into a matrix, which stays sparse; spherical k-means compares only the direction of rows,
so that long and short documents count the same.

    python text.py [picture.png]

It prints:

    550 documents, 2398 words, 65 in a document
    mean cosine with the center: 0.41
    agreement with the modules (adjusted Rand index): 0.55
      55 documents,  41 of scipy.ndimage      mode constant extended wrap reflect
      84 documents,  84 of scipy.signal       frequency transfer gain poles zpk
      45 documents,  24 of sklearn.metrics    labels index ndimage cluster score
      61 documents,  61 of sklearn.metrics    score pred average labels target
      77 documents,  40 of scipy.signal       fft transform fourier axes window
      72 documents,  55 of scipy.interpolate  spline coefficients polynomial degree knots
      57 documents,  57 of numpy.random       random distribution generator drawn code
      99 documents,  69 of scipy.optimize     matrix linalg root args vector
"""

import importlib
import inspect
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
        text = inspect.cleandoc(getattr(module, name).__doc__ or "").partition("References\n")[0]
        if len(text) > 300:
            texts.append(text)
            origins.append(module.__name__)

words = TfidfVectorizer(
    sublinear_tf=True, stop_words="english", token_pattern=r"[a-zA-Z]{3,}", min_df=3, max_df=0.2
)
X = words.fit_transform(texts)  # CSR
model = lf.SphericalKMeans(len(modules), n_init=10, random_state=0).fit(X)

vocabulary = words.get_feature_names_out()
print(f"{X.shape[0]} documents, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} in a document")
print(f"mean cosine with the center: {1 - model.inertia_ / X.shape[0]:.2f}")
agreement = adjusted_rand_score(origins, model.labels_)
print(f"agreement with the modules (adjusted Rand index): {agreement:.2f}")

figure, axes = plt.subplots(2, 4, figsize=(12, 5), layout="constrained", sharex=True)
for j, (ax, center) in enumerate(zip(axes.flat, model.cluster_centers_, strict=True)):
    top = np.argsort(-center)[:7]
    members = Counter(origins[i] for i in np.flatnonzero(model.labels_ == j))
    module, count = members.most_common(1)[0]
    print(f"{members.total():4} documents, {count:3} of {module:18}", *vocabulary[top[:5]])
    ax.barh(vocabulary[top], center[top], color=cluster_colour(j))
    ax.invert_yaxis()
    ax.set_title(f"{members.total()} documents,\n{count} of {module}", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
figure.supxlabel("weight in the center")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "text.png", dpi=120)
