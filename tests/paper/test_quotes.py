"""Every claim quotes the paper word for word, and every number stands where it is said to."""

from dataclasses import replace
from pathlib import Path

import pytest
from latex_text import numbers_in, passages, plain_words, quotes, words

from lloydformer.paper.artefact import LABELS, load_artefact
from lloydformer.paper.reproduce import load_result
from lloydformer.paper.verdict import Kind, Verdict

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "paper"
PAPER = ROOT.parent / "shared" / "paper" / "paper.tex"
needs_the_paper = pytest.mark.skipif(not PAPER.exists(), reason="paper.tex is not at hand")

SAMPLE = r"""
\begin{document}
\section{One $k$} \label{sec:one}
Here \cref{fig:x} shows~\citep{a, b} that $\demb = d$ is {\em not} enough, % a remark
for $\lambda \in \{1, 0.25\}$ and $k$-means{\tt+\!+}, by 5\%.

Then $10^4$ more.
\begin{table}
\caption{A caption, with $8.35_{\pm 0.14}$.}
\label{tab:x}
\end{table}
\subsection{Two} \label{sec:two}
\begin{theorem}[informal]\label{thm:t u}
It holds.
\begin{equation}\label{eq:z} a \end{equation}
\end{theorem}
Last words.
"""


def all_verdicts() -> list[Verdict]:
    """The verdicts on all published results."""
    found = [(load_artefact(label), load_result(RESULTS, label)) for label in LABELS]
    return [verdict for of, result in found for verdict in of.verdicts(result)]


VERDICTS = all_verdicts()
CLAIMS = [verdict for verdict in VERDICTS if verdict.kind is Kind.CLAIM]
NUMBERS = [verdict for verdict in VERDICTS if verdict.kind is Kind.NUMBER]


@pytest.fixture(scope="module")
def paper() -> dict[str, list[str]]:
    return passages(PAPER.read_text(encoding="utf-8"))


def stands(paper: dict[str, list[str]], verdict: Verdict) -> bool:
    return any(quotes(part, verdict.quote) for part in paper[verdict.label])


def test_plain_words_equal_their_latex():
    found = passages(SAMPLE)
    assert list(found) == ["tab:x", "thm:t u", "sec:one", "sec:two"]
    first, second = (part for part in found["sec:one"] if words(part))
    assert quotes(first, "Here fig:x shows that d_emb = d is not enough, for λ ∈ {1, 0.25}")
    assert quotes(first, "and k-means++, by 5%.")
    assert not quotes(first, "and k-means++, by 5% and more.")
    assert quotes(first, "Here [...] is not enough")
    assert quotes(second, "Then 10^4 more.")
    assert not any(quotes(second, no) for no in ("Then 10^5 more.", "10^4 [...] Then", "A caption"))
    assert not quotes(first, "is enough")
    assert quotes(found["thm:t u"][0], "It holds.")
    assert not any(quotes(part, "It holds.") for part in found["sec:two"])
    assert any(quotes(part, "Last words.") for part in found["sec:two"])
    assert {8.35, 0.14} <= numbers_in(found["tab:x"][0])
    assert words("a~b") == words("a  b") == plain_words("a b") != plain_words("a c")


def test_there_are_claims_numbers_and_findings_in_every_answer():
    assert len(CLAIMS) >= 45
    assert len(NUMBERS) >= 300
    assert {verdict.kind for verdict in VERDICTS} == set(Kind)
    with pytest.raises(ValueError, match="needs quote"):
        replace(CLAIMS[0], quote="")
    assert all(len(verdict.quote) > 40 for verdict in CLAIMS)


@needs_the_paper
@pytest.mark.parametrize("verdict", CLAIMS, ids=lambda verdict: verdict.quote[:30])
def test_the_sentence_stands_in_the_paper_at_its_label(paper, verdict):
    assert verdict.label in paper, f"{verdict.label} is no label of the paper"
    elsewhere = [label for label in paper if stands(paper, replace(verdict, label=label))]
    assert stands(paper, verdict), f"not at {verdict.label}, but at {elsewhere}: {verdict.quote}"


@needs_the_paper
def test_a_changed_sentence_is_found_out(paper):
    for verdict in CLAIMS:
        first, rest = verdict.quote.split(" ", 1)
        for wrong in (f"{first} never {rest}", verdict.quote.replace("e", "a", 1)):
            assert not stands(paper, replace(verdict, quote=wrong)), wrong
        assert not stands(paper, replace(verdict, label="sec:intro"))


@needs_the_paper
def test_numbers_are_printed_where_they_are_said_to_be(paper):
    """But for those of figures, which the text does not print."""
    printed = {label: numbers_in("\n".join(parts)) for label, parts in paper.items()}
    missing = [
        (verdict.label, verdict.about, verdict.paper)
        for verdict in NUMBERS
        if verdict.label not in paper
        or not (verdict.label.startswith("fig:") or verdict.paper in printed[verdict.label])
    ]
    assert missing == []
