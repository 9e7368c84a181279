"""Training: tasks, trained weights, and an estimator that uses them."""

from lloydformer.learning.cards import available
from lloydformer.learning.estimator import LearnedKMeans
from lloydformer.learning.evaluation import Comparison, compare
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.pretrained import Pretrained, load
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.symmetric.model import SymmetricModel, load_symmetric
from lloydformer.learning.tasks import Tasks
from lloydformer.learning.training import Evaluation, Trained, train

__all__ = [
    "Comparison",
    "Evaluation",
    "LearnedKMeans",
    "Pretrained",
    "Run",
    "Settings",
    "SymmetricModel",
    "Tasks",
    "Trained",
    "available",
    "compare",
    "load",
    "load_symmetric",
    "smoothed_objective",
    "train",
]
