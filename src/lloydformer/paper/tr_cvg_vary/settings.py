"""The training settings of fig:tr-cvg-vary."""

from lloydformer.paper.training_curves import TrainingSetting

LABEL = "tr-cvg-vary"
BY_CLUSTERS = tuple(TrainingSetting(32, k) for k in (6, 10, 16, 25))
BY_FEATURES = tuple(TrainingSetting(d, 6) for d in (4, 8, 16, 32))
ALL = tuple(dict.fromkeys(BY_CLUSTERS + BY_FEATURES))
"""Each setting once."""
