"""`lloydformer doctor`: print what is installed, what is missing, and how to get it."""

from typing import Annotated

import typer

from lloydformer.cli.terminal import print_json, print_table, stdout
from lloydformer.jobs.doctor import examine


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what is installed, and how to get what is missing."""
    found = examine()
    if json:
        return print_json(found)
    packages = {**found["core"], **{p: v for e in found["extras"].values() for p, v in e.items()}}
    print_table(["package", "version"], [[p, v or "missing"] for p, v in packages.items()])
    stdout.print(f"\ndevices: {', '.join(found['devices'])}; {found['threads']} threads")
    stdout.print(f"engines: {'; '.join(f'{k} ({v})' for k, v in found['engines'].items())}")
    stdout.print(f'engine="auto" is {found["engine"]}', markup=False)
    for line in found["repairs"] or ["nothing is missing"]:
        stdout.print(line, markup=False)
    return None
