"""`lloydformer fit`: from a data file to an output folder.

`settings.py` has what the user asks for, `job.py` the steps: read the table, fit each number of
clusters (`selection.py`), write the files of the best (`outputs.py`, `label_file.py`, `page.py`).
`cluster.py` does the same on a Dask cluster. Begin with `job.py`.
"""
