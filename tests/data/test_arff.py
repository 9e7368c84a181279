"""ARFF files: numbers, listed words, quotes and missing values."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.data.openml import read_arff

TEXT = """% a comment
@RELATION 'some data'

@ATTRIBUTE height REAL
@attribute 'the \\'weight\\'' numeric
@attribute "kind, or so" {small, 'very large', "it's", ?}
@attribute note string
@attribute count{1,2}
@data
1.5, -2e3, 'very large', "a, b", 1
% another comment

?,4,it\\'s,'it\\'s',2
3,5,?,c,2
"""


def test_columns_are_numbers_and_words_are_their_place_in_the_list():
    text = TEXT.replace("it\\'s,'it", "\"it's\",'it")
    names = ["count", "the 'weight'", "kind, or so", "height"]
    points = read_arff(text, names)
    wanted = [[0, -2000, 1, 1.5], [1, 4, 2, np.nan], [1, 5, np.nan, 3]]
    np.testing.assert_array_equal(points, wanted)


HEAD = "@attribute a real\n@attribute b {x,y}\n@attribute c string\n@data\n"
WRONG = {
    "a word": (HEAD + "one,x,t\n", "column a: could not convert string to float: 'one'"),
    "a word that is not listed": (HEAD + "1,z,t\n", "column b: 'z'"),
    "too few values": (HEAD + "1,x,t\n1,x\n", "line 2 of the data has 2 values for 3 columns"),
    "sparse rows": (HEAD + "{0 1}\n", "its rows are sparse"),
    "no data": ("@attribute a real\n", "no line @data"),
    "no text": ("\0\0\0", "no line @data"),
    "a missing column": ("@attribute b {x}\n@data\nx\n", "it has no column a"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_damaged_files_are_refused(fault):
    text, words = WRONG[fault]
    with pytest.raises(ValueError, match=f"not a readable ARFF file .*{words}"):
        read_arff(text, ["a", "b"])


def test_columns_of_text_are_refused_if_they_are_wanted():
    with pytest.raises(ValueError, match=r"column c holds no numbers .string.; choose another set"):
        read_arff(HEAD + "1,x,t\n", ["a", "c"])


WORDS = st.text("ab,'\"\\{} %?é", min_size=1, max_size=6).filter(lambda w: w.strip() == w != "?")


@given(st.lists(WORDS, min_size=1, max_size=5, unique=True), st.data())
def test_quoted_words_come_back(words, data):
    def quoted(word):
        return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"

    rows = data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=5))
    listed = ", ".join(map(quoted, words))
    text = "\n".join(
        [f"@attribute {quoted('the ' + words[0])} {{{listed}}}", "@attribute n real", "@data"]
        + [f"{quoted(word)},{i}" for i, word in enumerate(rows)]
    )
    found = read_arff(text, [f"the {words[0]}", "n"])
    assert found[:, 0].tolist() == [words.index(word) for word in rows], json.dumps(text)
    assert found[:, 1].tolist() == [*range(len(rows))]
