"""Compiles the driver of the kernels and runs it under sanitizers, or counts instructions.

python benchmarks/native/driver.py sanitize ISA [--quick] [--sanitizers address,undefined]
python benchmarks/native/driver.py instructions [N D K]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KERNELS = ROOT / "src" / "lloydformer" / "engines" / "native" / "kernels"
NAMES = ("nearest", "bounded", "measure", "shares", "symmetric", "trimmed", "robust", "seeding",
         "moments", "batch")  # fmt: skip
SMALL = ("1,31,33,200", "1,2,3,7,16,17,33", "1,2,5,8,9,16,17,40")
LARGER = ("5000", "1,7,16,33", "1,8,17,40")
QUICK = ("5000", "3,17", "5,17")
"""n, d and k. A leaf of the driver has 1,000 points: with fewer, only one thread works."""


def flags(isa: str) -> list[str]:
    """The flags that CMakeLists.txt compiles the kernels with."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    shared = re.search(r"target_compile_options\(\S+ PRIVATE([^$]*)", text)
    own = dict(re.findall(r"add_kernels\((\w+)([^)]*)\)", text))
    if shared is None or isa not in own:
        raise ValueError(f"ISA: found {isa!r}; CMakeLists.txt has {', '.join(own)}")
    return [*shared[1].split(), *own[isa].split()]


def build(isa: str, folder: str, *more: str) -> str:
    """Compiles the driver for an instruction set; `more` flags override the others."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or "c++"
    program = f"{folder}/driver_{isa}"
    command = [compiler, "-std=c++17", "-pthread", *flags(isa), *more, f"-I{KERNELS}",
               str(HERE / "driver.cpp"), "-o", program]  # fmt: skip
    subprocess.run(command, check=True)
    return program


def sanitize(isa: str, sanitizers: str, quick: bool) -> None:
    """Runs every kernel on small odd sizes; an error of a sanitizer ends the driver."""
    with tempfile.TemporaryDirectory() as folder:
        watch = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-O1", "-g1"]
        program = build(isa, folder, *watch)
        for sizes in (SMALL, QUICK if quick else LARGER):
            subprocess.run([program, "sweep", *sizes], check=True)


def instructions(n: int, d: int, k: int) -> None:
    """Prints the instructions of each kernel for a point; callgrind does not know AVX-512."""
    with tempfile.TemporaryDirectory() as folder:
        program = build("avx2", folder, "-g1")
        for name in NAMES:
            command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                       "--toggle-collect=counted", program, name, *map(str, (n, d, k))]  # fmt: skip
            said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
            found = re.search(r"Collected : (\d+)", said)
            if found is None:
                raise ValueError(f"callgrind: found no count in its output: {said}")
            print(f"{name:8s} {int(found[1]) / n:10.1f} instructions a point", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    under = commands.add_parser("sanitize")
    under.add_argument("isa")
    under.add_argument("--sanitizers", default="address,undefined")
    under.add_argument("--quick", action="store_true", help="few problems of 5,000 points")
    count = commands.add_parser("instructions")
    count.add_argument("size", nargs="*", type=int, metavar="N D K")
    given = parser.parse_args()
    if given.command == "sanitize":
        return sanitize(given.isa, given.sanitizers, given.quick)
    n, d, k = given.size or (20_000, 32, 10)
    return instructions(n, d, k)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, subprocess.CalledProcessError) as error:
        sys.exit(f"driver: {error}")
