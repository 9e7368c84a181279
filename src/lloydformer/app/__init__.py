"""The program around the package: the command line, the work behind it, and the explorer.

Begin with `cli/app.py`, which lists the commands; each command parses its options in `cli/` and
does its work in `jobs/`. May import every other room; no room imports this one.
"""
