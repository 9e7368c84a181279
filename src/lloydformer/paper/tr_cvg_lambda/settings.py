"""The training settings of fig:tr-cvg-lambda."""

from lloydformer.paper.training_curves import TrainingSetting
from lloydformer.paper.training_runs import TEMPERATURES

LABEL = "tr-cvg-lambda"
LOW = tuple(TrainingSetting(4, 6, temperature) for temperature in TEMPERATURES)
HIGH = tuple(TrainingSetting(32, 6, temperature) for temperature in TEMPERATURES)
"""All temperatures for d = 4 (LOW) and for d = 32 (HIGH)."""
