"""The paper's tables and figures, reproduced: one folder for each label, shared modules above.

Every folder has `experiment` (what is run), `verdicts`, `tables` and, for a figure,
`pictures`; `settings` holds what these share. Its `ARTEFACT` puts them together. Folders import
shared modules and never each other.
"""
