"""The shell: how commands fail, what they print as JSON, and files that stay whole."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest
import torch

from lloydformer import engines
from lloydformer.app.cli import app, doctor, terminal
from lloydformer.app.jobs import doctor as examination
from lloydformer.circuits import recipes
from lloydformer.data.storage.atomic_files import refuse_to_overwrite
from lloydformer.engines import native
from lloydformer.engines.cuda import backend

WRONG = {
    "unknown command": (["nonsense"], "No such command 'nonsense'"),
    "unknown option": (["recipes", "--nope"], "--nope"),
    "unknown recipe": (["recipes", "fuzzy"], "recipe: found 'fuzzy'; pass one of lloyd, lloyd_dot"),
    "a word for a number": (["verify", "--seed", "x"], "Invalid value for '--seed'"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_bad_input_is_one_line_and_status_2(command, fault):
    arguments, complaint = WRONG[fault]
    check_complaint(command(*arguments), complaint)


def check_complaint(found, complaint):
    status, out, err = found
    assert (status, out) == (2, "")
    assert err.startswith("lloydformer: ")
    assert err.count("\n") == 1
    assert complaint in err


def test_bad_input_in_a_process_of_its_own():
    program = [sys.executable, "-m", "lloydformer", "recipes", "--nope"]
    found = subprocess.run(program, capture_output=True, text=True, check=False)
    check_complaint((found.returncode, found.stdout, found.stderr), "--nope")


def test_recipes_as_json(command):
    status, out, _ = command("recipes", "soft_dot", "--json")
    assert status == 0
    rows = json.loads(out)["rows"]  # nothing else stands there, or it would not parse
    assert list(rows) == ["soft_dot"]
    assert rows["soft_dot"]["equation"].startswith("X ← X + A⟨⟩[1](X, C; π")


def test_every_public_recipe_is_known(command):
    # They take a recipe, points, or the centers of two solutions.
    others = (*recipes.CHANGES, *recipes.OF_POINTS, *recipes.OF_PAIRS)
    changes = {make.__name__ for make in others}
    names = [name for name in recipes.__all__ if name != "table" and name not in changes]
    assert sorted(json.loads(command("recipes", "--json")[1])["rows"]) == sorted(names)
    for name in names:
        status, out, err = command("recipes", name)
        assert (status, err) == (0, "")
        assert out.split("\n")[1].startswith(name)


def test_the_table_of_recipes_fits_into_80_columns(command, monkeypatch):
    narrow = terminal.Terminal(width=80, force_terminal=True, highlight=False)
    monkeypatch.setattr(terminal, "stdout", narrow)
    monkeypatch.setattr("lloydformer.app.cli.recipes.stdout", narrow)
    assert "Enc-SA:" not in command("recipes")[1]  # a record, one value a line


def test_a_recipe_that_does_not_lower_says_why(command):
    rows = json.loads(command("recipes", "relocating", "--json")[1])["rows"]
    (reason,) = rows["relocating"]["derivation"]
    assert "RelocatingKMeans" in reason
    assert "prune.choose: slots ← slots" in rows["relocating"]["equation"]
    assert reason in " ".join(command("recipes", "--explain", "relocating")[1].split())


def test_doctor_as_json(command):
    status, out, _ = command("doctor", "--json")
    assert status == 0
    report = json.loads(out)
    assert report["core"]["torch"] == version("torch")
    assert "cpu" in report["devices"]


def test_no_command_is_help(command):
    status, out, err = command()
    assert (status, err) == (0, "")
    assert "Usage:" in out
    assert {"demo", "doctor", "fit", "predict", "recipes", "verify"} <= set(out.split())


def test_version(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["lloydformer", "--version"])
    app.main()
    assert capsys.readouterr().out == f"{version('lloydformer')}\n"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ValueError("points: found\n nothing; pass some"), 2, "lloydformer: points: found nothing"),
        (PermissionError(13, "Permission denied", "x.html"), 2, "Permission denied: 'x.html'"),
    ],
    ids=["ValueError", "OSError"],
)
def test_errors_end_a_command_with_one_line(command, monkeypatch, error, status, line):
    def fail():
        raise error

    monkeypatch.setattr(doctor, "examine_packages", fail)
    found, out, err = command("doctor")
    assert (found, out) == (status, "")
    assert line in err
    assert err.strip().count("\n") == 0


@pytest.mark.parametrize(
    "allocate",
    [lambda: np.empty(1 << 57), lambda: torch.empty(1 << 58), lambda: torch.empty(1 << 62, 9)],
    ids=["numpy", "torch", "beyond 64 bits"],
)
def test_missing_memory_is_one_line(command, monkeypatch, allocate):
    monkeypatch.setattr(doctor, "examine_packages", allocate)
    check_complaint(command("doctor"), "not enough memory (")


def test_ctrl_c_is_status_130_without_a_traceback(command, monkeypatch):
    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "examine_packages", stop)
    status, out, err = command("doctor")
    assert (status, out) == (130, "")
    assert "Traceback" not in err


def test_other_errors_are_ours_and_show_where(command, monkeypatch):
    monkeypatch.setattr(doctor, "examine_packages", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        command("doctor")


def test_doctor_names_what_is_missing_and_how_to_get_it(command, monkeypatch):
    monkeypatch.setattr(
        examination, "EXTRAS", {"plots": ("matplotlib",), "data": ("no-such-thing",)}
    )
    status, out, _ = command("doctor")
    assert status == 0
    assert 'for data: pip install "lloydformer[data]"' in out
    assert "lloydformer[plots]" not in out
    assert ["no-such-thing", "missing"] in [line.split() for line in out.splitlines()]


def test_doctor_knows_the_packages_of_the_project():
    pages = Path(__file__).parents[3]
    project = tomllib.loads((pages / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def names(requirements):
        return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}

    assert {*examination.CORE} == names(project["dependencies"])
    for_users = project["optional-dependencies"].keys() - {"all", "docs", "test", "gpu-test"}
    assert {name: {*packages} for name, packages in examination.EXTRAS.items()} == {
        name: names(project["optional-dependencies"][name]) for name in for_users
    }


def test_doctor_misses_triton_only_where_there_is_a_gpu(command, monkeypatch):
    def version(package):
        if package == "triton":
            raise PackageNotFoundError(package)
        return "1.0"

    monkeypatch.setattr(examination, "version", version)
    out = " ".join(command("doctor")[1].split())
    assert "triton not installed; for NVIDIA GPUs only" in out
    assert "nothing is missing" in out
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: "H200")
    monkeypatch.setattr(backend, "describe_backend", lambda device: "kernels")
    out = " ".join(command("doctor")[1].split())
    assert "triton missing" in out
    assert 'for gpu: pip install "lloydformer[gpu]"' in out


def test_doctor_says_when_nothing_is_missing(command):
    assert "nothing is missing" in command("doctor")[1]


def test_doctor_names_the_engine_and_its_instructions(command, monkeypatch):
    monkeypatch.setattr(native, "instruction_set", lambda: "avx2")
    out = " ".join(command("doctor")[1].split())
    assert "native (C++ kernels with avx2, CPU)" in out


def test_doctor_says_what_it_costs_to_be_without_kernels(command, monkeypatch):
    monkeypatch.setattr(native, "instruction_set", lambda: None)
    monkeypatch.setattr(engines, "instruction_set", lambda: None)
    out = " ".join(command("doctor")[1].split())
    assert "native (not built)" in out
    assert 'engine="auto" is chunked' in out
    assert f"takes about {examination.SLOWER:.0f} times as long" in out
    assert "for the native engine: install a C++ compiler" in out
    assert "pip install --force-reinstall --no-deps lloydformer" in out
    assert "nothing is missing" not in out


def test_an_existing_file_is_not_overwritten_without_force(tmp_path):
    path = tmp_path / "page.html"
    refuse_to_overwrite(path, force=False)
    path.write_text("old")
    refuse_to_overwrite(path, force=True)
    with pytest.raises(ValueError, match=r"page.html exists; pass --force"):
        refuse_to_overwrite(path, force=False)


def test_a_table_too_wide_for_the_terminal_is_records_that_say_what_they_are(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "stdout", terminal.Terminal(width=20, force_terminal=True))
    terminal.print_table(["cluster", "mean distance"], [["0", "1.5"], ["1", "2.5"]])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert plain.split("\n") == ["cluster 0", "  mean distance: 1.5", "cluster 1",
                                 "  mean distance: 2.5", ""]  # fmt: skip


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_by_its_short_name(command, option):
    assert "--version" in command(option)[1]
    assert "--install-completion" in command(option)[1]
    assert "Usage: lloydformer fit" in command("fit", option)[1]


def test_option_errors_name_the_help_of_their_command(command):
    for arguments, words in {
        "fit p.csv --nope": "; see lloydformer fit --help",
        "predict": "; see lloydformer predict --help",
        "nope": "; see lloydformer --help",
    }.items():
        status, _, err = command(*arguments.split())
        assert status == 2
        assert err.rstrip().endswith(words)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("lloydformer f", ["fit"]),
        ("lloydformer fit --algorithm r", ["relocating", "robust"]),
        ("lloydformer fit --algorithm l", ["learned"]),
        ("lloydformer fit --select g", ["gap"]),
        ("lloydformer fit --mis", ["--missing"]),
    ],
)
def test_shells_complete_commands_options_and_values(command, monkeypatch, typed, wanted):
    monkeypatch.setenv("_LLOYDFORMER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    assert command()[1].split() == wanted
