"""One browser and one server for all tests of the page."""

from collections.abc import Callable, Iterator
from typing import Any

import explorer_page
import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if reason := explorer_page.missing():
        pytest.skip(reason)
    with explorer_page.chromium() as found:
        yield found


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    with explorer_page.served() as found:
        yield found


@pytest.fixture
def explore(browser: Any, address: str) -> Iterator[Callable[..., explorer_page.Explorer]]:
    """Opens the page; after the test, it must not have complained on the console."""
    opened = []

    def open_page(fragment: str = "", **settings: Any) -> explorer_page.Explorer:
        opened.append(explorer_page.Explorer(browser, address + fragment, **settings))
        return opened[-1]

    yield open_page
    for one in opened:
        one.close()
