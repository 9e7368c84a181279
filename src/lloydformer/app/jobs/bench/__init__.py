"""`lloydformer bench`: time fits of several libraries on the same data, start and threads.

Each question has cases and contenders. Begin with `questions.py`; `measure.py` has the timing,
`result.py` the files and tables. May import everything below `app`.
"""

# The keys of `questions.QUESTIONS`: `--help` and a wrong name must not import numpy or torch.
QUESTION_NAMES = (
    *("iteration", "convergence", "small", "large_k", "seeding", "predict", "sparse"),
    *("minibatch", "algorithms", "growth", "tails", "gpu"),
)


def check_question(name: str) -> None:
    """Raise ValueError if there is no question of this name."""
    if name not in QUESTION_NAMES:
        raise ValueError(f"--question: found {name!r}; pass one of {', '.join(QUESTION_NAMES)}")
