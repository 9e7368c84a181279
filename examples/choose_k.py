"""Choose the number of clusters: a pipeline with a scaler, and a grid search over k.

The data are 178 wines with 13 measurements on very different scales. Each k is fitted on four
fifths of the wines and scored on the others, with all measurements and with their first two
principal components. The silhouette is always computed on the scaled measurements, so that both
are comparable.

    python choose_k.py [picture.png]

It prints:

    best: {'cluster__n_clusters': 3, 'reduce': 'passthrough'}
    silhouette of wines left out: 0.280
    agreement with the three cultivars (adjusted Rand index): 0.91
"""

import sys

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import lloydformer as lf
from lloydformer.plots.palette import cluster_colour


def silhouette(pipeline, X, y=None):
    return silhouette_score(pipeline["scale"].transform(X), pipeline.predict(X))


wine = load_wine()
ks = [2, 3, 4, 5, 6, 7, 8]
spaces = {"13 measurements": "passthrough", "2 components": PCA(2)}
kmeans = lf.KMeans(n_init=5, random_state=0)
pipeline = Pipeline([("scale", StandardScaler()), ("reduce", PCA(2)), ("cluster", kmeans)])
grid = [{"reduce": [space], "cluster__n_clusters": ks} for space in spaces.values()]
folds = KFold(5, shuffle=True, random_state=0)
search = GridSearchCV(pipeline, grid, scoring=silhouette, cv=folds).fit(wine.data)

best = search.best_estimator_
labels = best["cluster"].labels_
print(f"best: {search.best_params_}")
print(f"silhouette of wines left out: {search.best_score_:.3f}")
agreement = adjusted_rand_score(wine.target, labels)
print(f"agreement with the three cultivars (adjusted Rand index): {agreement:.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
means = search.cv_results_["mean_test_score"].reshape(len(spaces), len(ks))
spreads = search.cv_results_["std_test_score"].reshape(len(spaces), len(ks))
for i, name in enumerate(spaces):
    aside = [k + 0.08 * i for k in ks]  # so that the bars do not hide each other
    colour = cluster_colour(3 * i)
    left.errorbar(aside, means[i], spreads[i], c=colour, marker="o", capsize=3, label=name)
left.set(xlabel="number of clusters k", ylabel="silhouette of wines left out", title="Which k?")
left.legend(frameon=False)
first, second = PCA(2).fit_transform(best["scale"].transform(wine.data)).T
for cluster in range(best["cluster"].n_clusters):
    mine = labels == cluster
    name, colour = f"{mine.sum()} wines", cluster_colour(cluster)
    right.scatter(first[mine], second[mine], s=18, color=colour, label=name)
right.set(xlabel="first component", ylabel="second component", title="The clusters of the best k")
right.legend(frameon=False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "choose_k.png", dpi=120)
