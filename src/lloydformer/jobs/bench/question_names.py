"""Names of the questions of the benchmark, for `--help`; `questions` has the questions."""

QUESTION_NAMES = (
    "iteration", "convergence", "small", "large_k", "predict", "sparse", "minibatch", "algorithms",
    "growth", "gpu",
)  # fmt: skip


def check_question(name: str) -> None:
    """Raise ValueError if there is no question of this name."""
    if name not in QUESTION_NAMES:
        raise ValueError(f"--question: found {name!r}; pass one of {', '.join(QUESTION_NAMES)}")
