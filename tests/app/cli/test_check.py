"""`lloydformer check`: names, files, JSON, exit status and errors."""

import json

import pytest

from lloydformer.circuits import recipes
from lloydformer.circuits.serialise import serialise

MINE = '''
from dataclasses import replace
import numpy as np
import lloydformer as lf
from beside import lloyd_step

base = lf.recipes.lloyd()
right = replace(base, name="mine")

def wrong():
    head = replace(base.decoder_cross, value=-base.decoder_cross.value)
    return replace(base, name="wrong", decoder_cross=head)

class Algorithm:
    """Lloyd's, by its three methods."""
    def __init__(self):
        from lloydformer.algorithms import Lloyd
        plain = Lloyd()
        self.assign, self.weigh, self.place = plain.assign, plain.weigh, plain.place

def make():
    return Algorithm()

number = 3
'''
BESIDE = """
import numpy as np
def lloyd_step(points, centers):
    labels = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    own = [points[labels == j] for j in range(len(centers))]
    return np.stack([(x if len(x) else points).mean(axis=0) for x in own])
"""
FEW = ("--problems", "1", "--layers", "2", "--families", "clustered,ties")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two modules and recipes as JSON, which is the current one."""
    files = {"mine.py": MINE, "beside.py": BESIDE, "broken.py": "x = 1\ny = 1 / 0\n",
             "unfinished.py": "x = (\n", "ends.py": "import sys\nsys.exit(3)\n",
             "soft.json": json.dumps(serialise(recipes.soft(2.0))), "list.json": "[1, 2]",
             "cut.json": "{", "head.json": json.dumps(serialise(recipes.soft().decoder_self)),
             }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


AGREE = {
    "a name": ("trimmed",),
    "a file of JSON": ("soft.json",),
    "a value, and a function of a module beside it": (
        "mine.py:right", "--algorithm", "mine.py:lloyd_step"),
    "a class": ("lloyd", "--algorithm", "mine.py:Algorithm"),
    "a function that makes an algorithm": ("lloyd", "--algorithm", "mine.py:make"),
    "an object of a module": ("mine:right", "--algorithm", "lloydformer.algorithms:Lloyd"),
    "a function that makes a recipe": ("lloydformer.recipes:lloyd_dot",),
    "float32": ("lloyd", "--dtype", "float32"),
}  # fmt: skip


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("case", AGREE)
def test_recipes_that_agree(command, case):
    status, out, err = command("check", *AGREE[case], *FEW)
    assert (status, err) == (0, "")
    assert " agrees with " in out.splitlines()[0]


@pytest.mark.usefixtures("folder")
def test_a_recipe_that_differs_is_status_1(command):
    given = ("mine.py:wrong", "--algorithm", "mine.py:lloyd_step", *FEW)
    status, out, err = command("check", *given)
    assert (status, err) == (1, "")
    assert out.startswith("wrong differs from lloyd_step on 2 of 2 problems, 2 layers each\n")
    assert "First difference: clustered problem 0 of seed 0" in out
    assert "points   (0) (1)" in out
    status, out, err = command("check", *given, "--json")
    assert (status, err) == (1, "")
    found = json.loads(out)
    assert (found["recipe"], found["algorithm"]) == ("wrong", "lloyd_step")
    assert not found["agrees"]
    assert list(found["rows"]) == ["clustered", "ties"]
    assert found["smallest"]["points"] == [[0.0], [1.0]]
    assert found["first"]["family"] == "clustered"
    assert "lf.Circuit(recipe, n_features=1" in found["snippet"]


def test_json_of_an_agreement(command):
    status, out, _ = command("check", "lloyd", "--json", *FEW)
    found = json.loads(out)
    assert status == 0
    assert (found["agrees"], found["first"], found["snippet"]) == (True, None, None)
    assert found["rows"]["ties"]["agree"] == found["rows"]["ties"]["problems"] == 1


WRONG = {
    "an unknown name": (("fuzzy",), "RECIPE: found 'fuzzy'; pass one of lloyd, lloyd_dot, "),
    "no file": (("no.py:x",), "RECIPE: there is no file 'no.py'"),
    "no module": (("no.such:x",), "RECIPE: no.such raised ModuleNotFoundError: No module named"),
    "no such name": (("mine.py:rigth",), "RECIPE: mine.py has no 'rigth'; did you mean 'right'?"),
    "no name": (("mine.py:",), "RECIPE: found 'mine.py:'; pass file.py:name or package.module"),
    "an error in the file": (("broken.py:x",), "broken.py raised ZeroDivisionError in line 2: div"),
    "a syntax error": (("unfinished.py:x",), "unfinished.py raised SyntaxError in line 1: "),
    "a file that exits": (("ends.py:x",), "ends.py raised SystemExit in line 2: 3"),
    "not a recipe": (("mine.py:number",), "RECIPE: mine.py:number is 3, and not a recipe"),
    "not a maker": (("mine.py:lloyd_step",), "lloyd_step() raised TypeError: lloyd_step() missing"),
    "no JSON": (("no.json",), "RECIPE: there is no file 'no.json'"),
    "half of a JSON": (("cut.json",), "RECIPE: cut.json: is not JSON (Expecting property name"),
    "a list": (("list.json",), "RECIPE: list.json is (1, 2), and not a recipe"),
    "a head": (("head.json",), "and not a recipe"),
    "a learned recipe": (("learned",), "recipe: found 'learned', whose matrices are learned"),
    "a recipe of one's own alone": (("mine.py:right",), "algorithm: found None for the recipe"),
    "no such algorithm": (("lloyd", "--algorithm", "x"), "--algorithm: found 'x'; pass file.py"),
    "not an algorithm": (("lloyd", "--algorithm", "mine.py:number"), "algorithm: found 3; pass a"),
    "a precision": (("lloyd", "--dtype", "half"), "--dtype: found 'half'; pass float64 or float32"),
    "a family": (("lloyd", "--families", "x"), "families: found ('x',); 'lloyd' has clustered"),
    "no problems": (("lloyd", "--problems", "0"), "--problems"),
}  # fmt: skip


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("fault", WRONG)
def test_bad_input_is_one_line_and_status_2(command, fault):
    arguments, complaint = WRONG[fault]
    status, out, err = command("check", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("lloydformer: ")
    assert err.count("\n") == 1
    assert complaint in err


def test_ctrl_c_prints_how_many_problems_are_done(command, monkeypatch):
    def stopped(*given, callback, **settings):
        callback(1, 2)
        raise KeyboardInterrupt

    monkeypatch.setattr("lloydformer.paper.verify.checking.check.check", stopped)
    status, out, err = command("check", "lloyd", *FEW)
    assert (status, out) == (130, "")
    assert err == "stopped: 1 of 2 problems were compared\n"
