"""The command line: one file per command, which declares its options and prints.

Options of `fit`, `predict` and `train` are the fields of a dataclass (`app/options.py`).

The work is done in `jobs`, imported inside of the commands: `--help` and wrong options must not
wait for torch. No other room imports this one. Begin with `app.py`, which lists the commands.
"""
