"""No page, docstring, help text or error has a phrase that puzzled readers (tools/prose.py)."""

from pathlib import Path

import pytest

from prose import SOURCE, Text, docstring_texts, examine, findings, page_text, sources


def found_in(words: str, is_first: bool = False) -> list[str]:
    return [finding.phrase for finding in examine(Text(Path("page.md"), 1, words, is_first))]


def test_nothing_is_found():
    paths = sources()
    assert len(paths) > 200
    assert [str(finding) for finding in findings(paths)] == []


@pytest.mark.parametrize(
    ("puzzling", "plain"),
    [
        ("prints what stands below it", "produces the output shown"),
        ("What a callback hears", "Progress passed to the callback"),
        ("lets it go on after a kill", "lets an interrupted fit resume"),
        ("The host seldom waits", "Host synchronisation is rare"),
        ("for want of memory", "if memory prevents it"),
        ("An address where nobody answers is an error", "Fails if the scheduler does not respond"),
        ("steps that the numbers no longer bear out", "steps that no longer match"),
        ("What stands outside of the transformer", "Values that attention does not compute"),
        ("a plain algorithm, also one of your own", "any reference implementation"),
        ("a mixture of proposals is none", "this recipe cannot be softened"),
        ("one host synchronisation an iteration", "one host synchronisation per iteration"),
        ("it stands beside others", "this slot has several heads"),
        ("Make the paper's tables again", "Reproduce the paper's tables"),
        ("any threads give\nthe same bits", "results are bit-identical for any number of threads"),
        ("a page on which one sees a transformer", "a page that shows a transformer"),
        ("self-attention wipes the old one", "self-attention erases the old one"),
    ],
)
def test_a_puzzling_phrase_is_found_and_its_rewrite_is_not(puzzling, plain):
    assert found_in(puzzling)
    assert not found_in(plain)


@pytest.mark.parametrize(
    "first", ["What is kept of a point.", "Are rows near?", "The same, added up.", "Those kept."]
)
def test_the_first_sentence_of_a_docstring_says_what_it_is(first):
    assert found_in(first, is_first=True)
    assert not found_in("Upper bound of the squared norms.", is_first=True)


def test_code_addresses_and_comments_are_no_prose(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# T\n\n```\nstands in\n```\n<!-- stands in -->\n`stands in` [a](stands in)\n")
    assert list(examine(page_text(page))) == []
    page.write_text("```\na\nb\n```\nIt stands\nin line five, and `code` stands in it.\n")
    assert [finding.line for finding in examine(page_text(page))] == [5, 6]


def test_help_texts_and_errors_are_examined(tmp_path):
    module = tmp_path / "module.py"
    module.write_text("def f(x=option(help='nobody')):\n    raise ValueError(f'{x}: nobody', 1)\n")
    assert [len(list(examine(text))) for text in docstring_texts(module)] == [1, 1]
    assert (SOURCE / "__init__.py").is_file()
