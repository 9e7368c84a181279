"""The parts that all fits share: driver, runs, rules, seeding, checkpoints, batches of problems.

It imports plans and engines. Begin with `driver.py` (the loop over restarts and iterations),
`run.py` (what an algorithm supplies) and `rules.py` (when a fit stops).
"""
