"""Training: tasks, trained weights, and an estimator that uses them.

Uses every room before it, up to `estimators`. Begin with `training.py`, which trains the paper's
layer, and read on in `trainer.py` (one step), `stacked_layer.py` (the layer), `tasks.py` (the data)
and `pretrained.py` (saved weights). `symmetric/` is the layer for every n, d and k; `estimator.py`
has `LearnedKMeans`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydformer.learning.estimator import LearnedKMeans as LearnedKMeans
    from lloydformer.learning.evaluation import Comparison as Comparison
    from lloydformer.learning.evaluation import compare as compare
    from lloydformer.learning.objective import smoothed_objective as smoothed_objective
    from lloydformer.learning.pretrained import Pretrained as Pretrained
    from lloydformer.learning.pretrained import available as available
    from lloydformer.learning.settings import Run as Run
    from lloydformer.learning.settings import Settings as Settings
    from lloydformer.learning.symmetric.model import SymmetricModel as SymmetricModel
    from lloydformer.learning.symmetric.model import load_pretrained as load_pretrained
    from lloydformer.learning.tasks import Tasks as Tasks
    from lloydformer.learning.trainer import Evaluation as Evaluation
    from lloydformer.learning.training import Trained as Trained
    from lloydformer.learning.training import train as train
else:  # the same names, each imported when it is first used
    from lloydformer.lazy_imports import lazy_names

    _HOMES = {
        "Comparison": "lloydformer.learning.evaluation",
        "Evaluation": "lloydformer.learning.trainer",
        "LearnedKMeans": "lloydformer.learning.estimator",
        "Pretrained": "lloydformer.learning.pretrained",
        "Run": "lloydformer.learning.settings",
        "Settings": "lloydformer.learning.settings",
        "SymmetricModel": "lloydformer.learning.symmetric.model",
        "Tasks": "lloydformer.learning.tasks",
        "Trained": "lloydformer.learning.training",
        "available": "lloydformer.learning.pretrained",
        "compare": "lloydformer.learning.evaluation",
        "load_pretrained": "lloydformer.learning.symmetric.model",
        "smoothed_objective": "lloydformer.learning.objective",
        "train": "lloydformer.learning.training",
    }
    __all__ = [*_HOMES]
    _RENAMED = {"load": "load_pretrained", "load_symmetric": "load_pretrained"}
    __getattr__, __dir__ = lazy_names(__name__, _HOMES, _RENAMED)
