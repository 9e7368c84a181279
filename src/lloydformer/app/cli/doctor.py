"""`lloydformer doctor`: print what is installed, what is missing, and how to get it."""

from lloydformer.app.cli.terminal import print_json, print_table, stdout
from lloydformer.app.jobs.doctor import SPECIAL, examine_hardware, examine_packages
from lloydformer.app.options import Json
from lloydformer.profiles.words import format_count


def doctor(json: Json = False) -> None:
    """Show versions, the engine in use, what is installed, and how to get what is missing."""
    packages = examine_packages()
    if not json:  # the versions are needed most where torch cannot be imported
        stdout.print(
            f"lloydformer {packages['lloydformer']}, Python {packages['python']}\n"
            f"{packages['platform']}"
        )
    try:
        import torch  # noqa: F401
    except (ImportError, OSError) as error:  # OSError: a library that it loads is missing
        raise ValueError(f"torch: cannot be imported ({error}); run pip install torch") from None
    machine = examine_hardware()
    repairs = packages.pop("repairs") + machine.pop("repairs")
    if json:
        return print_json({**packages, **machine, "repairs": repairs})
    engine = machine["engine"]
    stdout.print(
        f'\nengine in use: engine="auto" is {engine} ({machine["engines"][engine]})\n'
        f"devices: {', '.join(machine['devices'])}; {format_count(machine['threads'], 'thread')}\n"
    )
    has_gpu = any(device.startswith("cuda") for device in machine["devices"])
    rows = [[name, version or "missing"] for name, version in packages["core"].items()]
    for extra, members in packages["extras"].items():
        absent = "missing" if extra == "gpu" and has_gpu else SPECIAL.get(extra, "missing")
        rows += [[name, version or absent] for name, version in members.items()]
    print_table(["package", "version"], rows)
    stdout.print("\nall engines:")
    for name, words in machine["engines"].items():
        stdout.print(f"  {name} ({words})")
    stdout.print()
    for line in repairs or ["nothing is missing"]:
        stdout.print(line)
    return None
