"""Files that survive kills and full disks, and reading that survives damaged files.

Imports nothing else of this package. Begin with `atomic_files` (one file), `atomic_folders` (the
files of a run together) and `model_folder` (a model: config.json and its tensors); `bounded_read`
and `pickles` read what others may have written.
"""
