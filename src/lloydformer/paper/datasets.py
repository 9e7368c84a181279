"""The real data sets of the paper by name, from a folder or from OpenML, scaled to [0, 1]."""

from jaxtyping import Float
from torch import Tensor

from lloydformer.data import open as open_points
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.paths import in_data_folder

OPENML = {
    "gina-agnostic": "1038", "musk": "1116", "mfeat-factors": "12", "mfeat-fourier": "14",
    "mfeat-karhunen": "16", "germancredit": "GermanCredit", "ionosphere": "59",
    "ada-agnostic": "1043", "optdigits": "28", "sonar": "40", "sylva-agnostic": "1036",
    "oil-spill": "311", "ailerons": "734", "pc4": "1049", "pc3": "1050", "twonorm": "1507",
    "ringnorm": "1496", "pendigits": "32", "sylvine": "41146",
}  # fmt: skip
"""The number or name of each set on OpenML."""

REPAIRED = "ringnorm-zscored"
"""ringnorm with the decimal points that the public copy has lost. It is not on OpenML."""

OTHER_DATA = ("pendigits", "ringnorm", "sylvine")
"""Sets for which the authors seem to have used other rows or other values."""


def scaled(name: str) -> Float[Tensor, "n d"]:
    """The points of a set in float64, each column scaled to [0, 1]; constant columns are 0."""
    if name not in (*OPENML, REPAIRED):
        raise ValueError(f"name: found {name!r}; pass one of {', '.join((*OPENML, REPAIRED))}")
    path = in_data_folder(name)
    blocks = _from_openml(name) if path is None else open_points(path, scale="minmax")
    assert blocks.scaling is not None
    return blocks.scaling.apply(blocks.points.double())


def _from_openml(name: str) -> TensorBlocks:
    """Download the set; raises ValueError that says how to provide it as a file."""
    repair = f"set LLOYDFORMER_DATA to a folder that holds {name}.npz, with the points as X"
    if name not in OPENML:
        raise ValueError(f"{name}: neither in LLOYDFORMER_DATA nor on OpenML; {repair}")
    try:
        return open_points(f"openml:{OPENML[name]}", scale="minmax")
    except ValueError as error:
        raise ValueError(f"{name}: not in LLOYDFORMER_DATA, and {error}; {repair}") from None
