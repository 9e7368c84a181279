"""The same circuit, learned: tasks, training, trained weights and an estimator that uses them."""

from lloydformer.learning.estimator import LearnedKMeans
from lloydformer.learning.evaluation import Comparison, compare
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.pretrained import Pretrained, available, load
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.tasks import Tasks
from lloydformer.learning.training import Evaluation, Trained, train

__all__ = [
    "Comparison",
    "Evaluation",
    "LearnedKMeans",
    "Pretrained",
    "Run",
    "Settings",
    "Tasks",
    "Trained",
    "available",
    "compare",
    "load",
    "smoothed_objective",
    "train",
]
