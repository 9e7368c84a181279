"""Sizes and columns of tab:med-res."""

from lloydformer.paper.artefact import Record

LABEL = "med-res"
N_STEPS, N_CLUSTERS = 10, 10
GAPS = {"0": 0.0, "0.01": 0.01, "1": 1.0, "1e2": 1e2, "1e4": 1e4, "1e8": 1e8, "1e15": 1e15}
"""The paper's columns: values of the gap delta."""
ENDS = ("0", "1e15")
"""The smallest and the largest gap."""
BETWEEN = [column for column in GAPS if column not in ENDS]


def fasterpam_sample(result: Record) -> str:
    """On what FasterPAM was run, in words."""
    return f"up to {result['fasterpam_rows']} rows, {result['fasterpam_trials']} trials"
