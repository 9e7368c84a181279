"""The paper reproduced: its tables and figures by label, its theorems and its errata.

`<label>.py` holds one table or figure as the functions of an `artefact.Artefact`: what is measured,
the verdicts, the tables and the pictures; labels.toml has its title and the sentences of the paper.
Code that several labels share is beside them; labels never import each other.
`verify/` checks the statements of the text, and holds `lloydformer.check`.

May import every room but `app`. Begin with `artefact.py`, then read `mix_res.py`, the shortest
label that trains a layer; `reproduce.py` runs the labels.
"""
