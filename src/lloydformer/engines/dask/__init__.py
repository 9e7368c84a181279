"""Data on a Dask cluster: collections become partitions on the workers, requests become tasks.

Begin with `collections.py::Opener`, which opens a collection; `transport.py` sends requests to the
workers and runs them there. May import `engines/partitioned`. Nothing here is imported before a
dask collection is passed to an estimator, but for `chunks.py`, which looks for one.
"""
