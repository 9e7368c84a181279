"""Run commands in the process of the tests."""

import sys

import pytest

from lloydformer.app.cli import app


@pytest.fixture
def command(monkeypatch, capsys):
    """Run a command in this process; returns its status, standard output and standard error."""

    def call(*arguments):
        # The tests continue in this process.
        monkeypatch.setattr(app.gc, "freeze", lambda: None)
        monkeypatch.setattr(app.gc, "set_threshold", lambda *counts: None)
        monkeypatch.setattr(app.warnings, "formatwarning", app.warnings.formatwarning)
        monkeypatch.setattr(sys, "argv", ["lloydformer", *arguments])
        with pytest.raises(SystemExit) as ending:
            app.main()
        return ending.value.code, *capsys.readouterr()

    return call
