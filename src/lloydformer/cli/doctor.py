"""`lloydformer doctor`: print what is installed, what is missing, and how to get it."""

from typing import Annotated, Any

import typer

from lloydformer.cli.terminal import print_json, print_table, stdout
from lloydformer.jobs.doctor import examine


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show versions, the engine in use, what is installed, and how to get what is missing."""
    found = examine()
    if json:
        machine = _hardware()
        repairs = found.pop("repairs") + machine.pop("repairs")
        return print_json({**found, **machine, "repairs": repairs})
    stdout.print(f"lloydformer {found['lloydformer']}, Python {found['python']}", markup=False)
    stdout.print(found["platform"], markup=False)
    machine = _hardware()
    engine = machine["engine"]
    described = f"{engine} ({machine['engines'][engine]})"
    stdout.print(f'\nengine in use: engine="auto" is {described}', markup=False)
    threads = "1 thread" if machine["threads"] == 1 else f"{machine['threads']} threads"
    stdout.print(f"devices: {', '.join(machine['devices'])}; {threads}\n", markup=False)
    packages = {**found["core"], **{p: v for e in found["extras"].values() for p, v in e.items()}}
    print_table(["package", "version"], [[p, v or "missing"] for p, v in packages.items()])
    stdout.print("\nall engines:")
    for name, words in machine["engines"].items():
        stdout.print(f"  {name} ({words})", markup=False)
    stdout.print()
    for line in found["repairs"] + machine["repairs"] or ["nothing is missing"]:
        stdout.print(line, markup=False)
    return None


def _hardware() -> dict[str, Any]:
    """Devices and engines; importing torch takes a second."""
    try:
        import torch  # noqa: F401
    except (ImportError, OSError) as error:  # OSError: a library that it loads is missing
        raise ValueError(f"torch: cannot be imported ({error}); run pip install torch") from None
    from lloydformer.jobs.hardware import examine_hardware

    return examine_hardware()
