"""The work behind the commands: fit, predict, train, demo, verify, check, bench, doctor, explore.

Jobs print nothing: they report progress through callbacks, and `cli` prints. They raise ValueError
in the words of the command line. May import every room but `cli`. Begin with `fit/job.py`.
"""
