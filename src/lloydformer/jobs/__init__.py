"""The work behind the commands: fit, predict, train, demo, verify, bench, doctor.

Jobs print nothing. They report progress through callbacks; `cli` prints.
"""
