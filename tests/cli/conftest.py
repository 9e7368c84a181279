"""The app in this process."""

import sys

import pytest

from lloydformer.cli import app


@pytest.fixture
def command(monkeypatch, capsys):
    """The app in this process: its status, standard output and standard error."""

    def call(*arguments):
        monkeypatch.setattr(app.gc, "freeze", lambda: None)  # this process goes on
        monkeypatch.setattr(sys, "argv", ["lloydformer", *arguments])
        with pytest.raises(SystemExit) as ending:
            app.main()
        return ending.value.code, *capsys.readouterr()

    return call
