"""Many small problems in one call; begin with `fit.py`."""
