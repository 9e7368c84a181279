"""Data on a Dask cluster: collections become parts on the workers, and questions become tasks.

Nothing here is imported before a dask collection is passed to an estimator.
"""
