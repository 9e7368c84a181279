"""Compiles the driver of the kernels and runs it under sanitizers, or counts lines or instructions.

python benchmarks/native/driver.py sanitize ISA [--quick] [--sanitizers address,undefined]
python benchmarks/native/driver.py coverage [ISA]
python benchmarks/native/driver.py mutants [NAME ...] [--isa ISA]
python benchmarks/native/driver.py instructions [N D K]

`coverage` prints how many lines of the kernels the driver runs (needs gcov). `mutants` compiles
kernels with a planted mistake, and fails if the driver does not find it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KERNELS = ROOT / "src" / "lloydformer" / "engines" / "native" / "kernels"
NAMES = (
    "nearest",
    "bounded",
    "measure",
    "unseen",
    "shares",
    "symmetric",
    "mixture",
    "trimmed",
    "robust",
    "seeding",
    "draw",
    "minibatch",
    "approach",
    "moments",
    "batch",
    "relocate",
)
SMALL = ("1,31,33,200", "1,2,3,7,16,17,33", "1,2,5,8,9,16,17,40")
LARGER = ("5000", "1,7,16,33", "1,8,17,40")
QUICK = ("5000", "3,17", "5,17")
FEW = ("1,33,200", "1,2,17", "1,5,9,40")
# n, d and k. A leaf of the driver has 1,000 points: with fewer, only one thread works. WIDE: so
# many features that centers are compared in tiles.
WIDE = ("1,150", "801", "9,20")


def flags(isa: str) -> list[str]:
    """The flags that CMakeLists.txt compiles the kernels with."""
    text = (KERNELS / "CMakeLists.txt").read_text(encoding="utf-8")
    shared = re.search(r"target_compile_options\(\S+ PRIVATE([^$]*)", text)
    own = dict(re.findall(r"add_kernels\((\w+)([^)]*)\)", text))
    if shared is None or isa not in own:
        raise ValueError(f"ISA: found {isa!r}; CMakeLists.txt has {', '.join(own)}")
    return [*shared[1].split(), *own[isa].split()]


@dataclass(frozen=True)
class Mutant:
    """A mistake in a kernel: `old` in a file is replaced by `new`. `found` is what finds it."""

    file: str
    old: str
    new: str
    found: str


MUTANTS = {
    "upper bound too tight": Mutant(
        "bounds.hpp",
        "own[l] = upper_[i + l] + path + OUTWARDS",
        "own[l] = upper_[i + l] + OUTWARDS",
        "bounds change a label or a sum",
    ),
    "lower bound too tight": Mutant(
        "bounds.hpp",
        "nearest[l] = std::min(nearest[l], current(low[g * P<T> + l], g));",
        "nearest[l] = std::min(nearest[l], low[g * P<T> + l]);",
        "bounds change a label or a sum",
    ),
    "group skipped too early": Mutant(
        "group_search.hpp",
        "needed_[g] = bounds_.current(low_[r][g * P<T>], g) <= reach[r]",
        "needed_[g] = low_[r][g * P<T>] <= reach[r]",
        "bounds change a label or a sum",
    ),
    "bounds of a label that has gone": Mutant(
        "group_search.hpp",
        "std::min(lost, ",
        "std::max(lost, ",
        "bounds change a label or a sum",
    ),
    "first center pruned": Mutant(
        "relocation.hpp",
        "while (best < cheapest && costs[best] > limit) best++;",
        "(void)limit;",
        "a relocation does not find two blobs without a center",
    ),
    "nearest point as refill": Mutant(
        "farthest.hpp",
        "return away > other.away ||",
        "return away < other.away ||",
        "an empty cluster without the farthest point",
    ),
    "a farther row left out": Mutant(
        "farthest.hpp",
        "for (int u = 1; u < ranges.count; u++) found[0].merge(found[u]);",
        "",
        "not the farthest rows",
    ),
    "all centers as copies of the first": Mutant(
        "centers.hpp",
        "seen.emplace(own, d * sizeof(Number)).second",
        "seen.emplace(own, 0 * sizeof(Number)).second",
        "not the nearest center",
    ),
    "ties of a row with few of its centers": Mutant(
        "centers.hpp",
        "for (; low != 0; low &= low - 1) each(first + j + __builtin_ctz(low));",
        "if (low != 0) each(first + j + __builtin_ctz(low));",
        "not the nearest center",
    ),
    "a seed that reaches too few points": Mutant(
        "seeding.hpp",
        "T(apart * 0.2499)",
        "T(apart * 0.5)",
        "not the distance to the nearest seed",
    ),
    "the nearest center twice": Mutant(
        "assign_two.hpp",
        "if (labels[r] == others[r] && centers.k > 1) others[r] = labels[r] == 0;",
        "",
        "the nearest center twice",
    ),
    "ties by rounding": Mutant(
        "assign.hpp",
        "labels[r] = exactly(r, square, found.best[h][r % W<T>] + own);",
        ";",
        "not the nearest center",
    ),
    "rounding of the score of a row": Mutant(
        "centers.hpp",
        "return unit * square + tiny;",
        "return tiny;",
        "not the nearest center",
    ),
    "rounding of the score of a center": Mutant(
        "centers.hpp",
        "return 2 * unit * square;",
        "return 0 * square;",
        "not the nearest center",
    ),
    "a twentieth of the rounding of a row": Mutant(
        "centers.hpp",
        "return unit * square + tiny;",
        "return T(0.05) * unit * square + tiny;",
        "not the nearest center",
    ),
    "a twentieth of the rounding of a center": Mutant(
        "centers.hpp",
        "return 2 * unit * square;",
        "return T(0.1) * unit * square;",
        "not the nearest center",
    ),
    "ties of sparse rows by rounding": Mutant(
        "csr_assign.hpp",
        "if (several) return settle(row);",
        "(void)several;",
        "not the nearest center of a sparse row",
    ),
    "sparse rows in the wrong group": Mutant(
        "csr_lloyd.hpp",
        "if (groups_.has(group, from)) sum.add(",
        "if (from >= 0) sum.add(",
        "threads change bits of sparse rows",
    ),
    "bound of Gumbel noise too low": Mutant(
        "gumbel.hpp",
        "return 1e-9 - rough_log(1.0 - u);",
        "return -0.5 - rough_log(1.0 - u);",
        "not the row with the best score",
    ),
    "points of other clusters left out": Mutant(
        "medoids.hpp",
        "const double reach = HIGHEST_GUMBEL - penalty;",
        "const double reach = 1.0 - penalty;",
        "not the row with the best score",
    ),
    "the last of equal rows": Mutant(
        "medoids.hpp",
        "score > scores[j] ||",
        "score >= scores[j] ||",
        "not the first of equal rows",
    ),
    "the first rows instead of a batch": Mutant(
        "minibatch.hpp",
        "from_.copy(numbers[i], &copied_[i * from_.d]);",
        "from_.copy(i % from_.n, &copied_[i * from_.d]);",
        "not the objective of a batch",
    ),
    "candidates counted from the new ones": Mutant(
        "oversample.hpp",
        "labels[i] = known + found[r];",
        "labels[i] = found[r];",
        "not the nearest candidate",
    ),
    "NaN in the last rows": Mutant(
        "column_ends.hpp",
        "note(splat(*points));",
        ";",
        "NaN or infinity that is not seen",
    ),
    "cancelled distances": Mutant(
        "unseen.hpp",
        "T cancelled = T(0x1p-10);",
        "T cancelled = T(-1);",
        "a distance between equal rows",
    ),
    "bound of a pair too tight": Mutant(
        "screening.hpp",
        "gap[v] = rows.error * load(&centers.norm[j]) + rows.norm * load(&centers.error[j]);",
        "gap[v] = 0.5f * (rows.error * load(&centers.norm[j]) +"
        " rows.norm * load(&centers.error[j]));",
        "that screening changes",
    ),
    "rounding of centers to int8": Mutant(
        "screening.hpp",
        "gap[v] = rows.error * load(&centers.norm[j]) + rows.norm * load(&centers.error[j]);",
        "gap[v] = rows.error * load(&centers.norm[j]);",
        "that screening changes",
    ),
    "rounding of rows to int8": Mutant(
        "screening.hpp",
        "gap[v] = rows.error * load(&centers.norm[j]) + rows.norm * load(&centers.error[j]);",
        "gap[v] = rows.norm * load(&centers.error[j]);",
        "that screening changes",
    ),
    "scores that underflow": Mutant(
        "screening.hpp",
        "8 * std::abs(upper)) + 0x1p-100f;",
        "8 * std::abs(upper));",
        "that screening changes",
    ),
    "candidates cut too early": Mutant(
        "screening.hpp",
        "count = std::min(count + 1, MOST + 1);",
        "count = std::min(count + 1, MOST);",
        "that screening changes",
    ),
    "offset of the bytes of rows": Mutant(
        "int8.hpp",
        "offset[j] = -ROW_OFFSET * total;",
        "offset[j] = (1 - ROW_OFFSET) * total;",
        "that screening changes",
    ),
    "scale of another row": Mutant(
        "candidate_screen.hpp",
        "const Int8Row row = rows_.row(i, centers_.unit);",
        "const Int8Row row = rows_.row(i / 2, centers_.unit);",
        "that screening changes",
    ),
    "bounds of screening with the center of the label": Mutant(
        "screened_build.hpp",
        "if (own >= s && own < s + W<float>) low[own - s] = Int8Centers::FILLER;",
        "",
        "bounds of screening that skip no point",
    ),
    "bounds of screening without the group of the label": Mutant(
        "screened_build.hpp",
        "const float others = least_without(i, r, own);",
        "const float others = Int8Centers::FILLER;",
        "that screening changes",
    ),
    "narrow components in float32": Mutant(
        "mixture_shares.hpp",
        "unsure |= uint64_t(bits(found)) << (r * W<T>);",
        "",
        "not the log-likelihood of a row",
    ),
    "the rounding of means": Mutant(
        "mixture.hpp",
        "if (sizeof(T) == 4) undo_rounding();",
        "",
        "not the squares of a component",
    ),
    "responsibilities that matter left out": Mutant(
        "mixture_shares.hpp",
        "x > splat(FAINT<T>)",
        "x > splat(FAINT<T> / 4)",
        "not the responsibility of a component",
    ),
    "weights of rows left out": Mutant(
        "mixture.hpp",
        "weights[r] = T(rows_.weight(block + tiles_.places[r]));",
        "weights[r] = T(rows_.weight(block + tiles_.places[r]) > 0);",
        "not the mass of a component",
    ),
    "columns right of the diagonal": Mutant(
        "mixture.hpp",
        "at[int64_t(std::max(f, g)) * d +",
        "at[int64_t(f) * d +",
        "not the squares of a component",
    ),
    "sums of sparse rows kept after a failure": Mutant(
        "csr_workspace.hpp",
        "void reset() { lloyd.reset(); }",
        "void reset() {}",
        "another result after memory has ended",
    ),
    "an exception that is lost": Mutant(
        "thread_pool.hpp",
        "if (error_ == nullptr) error_ = std::current_exception();",
        "",
        "an exception that is lost",
    ),
    "sums kept after a failure": Mutant(
        "kernels.cpp",
        "work_.reset();",
        "",
        "another result after memory has ended",
    ),
}


def build(isa: str, folder: str, *more: str, kernels: Path = KERNELS) -> str:
    """Compiles the driver for an instruction set; `more` flags override the others."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or "c++"
    program = f"{folder}/driver_{isa}"
    command = [
        compiler,
        "-std=c++17",
        "-pthread",
        *flags(isa),
        *more,
        f"-I{kernels}",
        str(HERE / "driver.cpp"),
        "-o",
        program,
    ]
    subprocess.run(command, check=True)
    return program


def sanitize(isa: str, sanitizers: str, quick: bool) -> None:
    """Runs every kernel on small odd sizes; an error of a sanitizer ends the driver."""
    with tempfile.TemporaryDirectory() as folder:
        watch = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-O1", "-g1"]
        program = build(isa, folder, *watch)
        for sizes in (SMALL, WIDE, QUICK if quick else LARGER):
            subprocess.run([program, "sweep", *sizes], check=True)
        subprocess.run([program, "faults"], check=True)
        subprocess.run([program, "strange"], check=True)


def coverage(isa: str) -> None:
    """Prints the share of lines of each file of kernels that the driver runs, and of all."""
    with tempfile.TemporaryDirectory() as folder:
        program = build(isa, folder, "-O0", "--coverage")
        for arguments in (["sweep", *FEW], ["sweep", *WIDE], ["sweep", *QUICK], ["faults"]):
            subprocess.run([program, *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        notes = [str(path) for path in Path(folder).glob("*.gcda")]
        command = ["gcov", "--no-output", *notes]
        said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    lines = re.findall(r"File '(.*)'\nLines executed:([\d.]+)% of (\d+)", said.stdout)
    found = {
        Path(file).name: (float(share), int(count))
        for file, share, count in lines
        if Path(file).resolve().parent == KERNELS
    }
    for name, (share, count) in sorted(found.items(), key=lambda one: one[1][0]):
        print(f"{share:6.2f} % of {count:4d} lines  {name}")
    total = sum(count for _, count in found.values())
    run = sum(share * count for share, count in found.values())
    print(f"{run / total:6.2f} % of {total:4d} lines")


def plant(names: list[str], isa: str) -> None:
    """Compiles kernels with each mistake in turn; ends with an error if the driver misses one."""
    missed = []
    for name in names or list(MUTANTS):
        with tempfile.TemporaryDirectory() as folder:
            program = build(isa, folder, "-O1", kernels=_write_mutant(MUTANTS[name], folder))
            said = _complaint(program)
        print(f"{name}: {said or 'not found'}", flush=True)
        missed += [] if said else [name]
    if missed:
        raise ValueError(f"mistakes that the driver does not find: {', '.join(missed)}")


def _write_mutant(mutant: Mutant, folder: str) -> Path:
    kernels = Path(shutil.copytree(KERNELS, f"{folder}/kernels"))
    text = (kernels / mutant.file).read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file}: found {text.count(mutant.old)} times: {mutant.old}")
    (kernels / mutant.file).write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    return kernels


def _complaint(program: str) -> str:
    """Return the message of the first check that fails; empty if none does."""
    for arguments in (["sweep", *SMALL], ["sweep", *LARGER], ["faults"], ["strange"]):
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stdout or done.stderr).strip()
    return ""


def instructions(n: int, d: int, k: int) -> None:
    """Prints the instructions of each kernel for a point; callgrind does not know AVX-512."""
    with tempfile.TemporaryDirectory() as folder:
        program = build("avx2", folder, "-g1")
        for name in NAMES:
            command = [
                "valgrind",
                "--tool=callgrind",
                "--callgrind-out-file=/dev/null",
                "--toggle-collect=counted",
                program,
                name,
                *map(str, (n, d, k)),
            ]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
            found = re.search(r"Collected : (\d+)", said)
            if found is None:
                raise ValueError(f"callgrind: found no count in its output: {said}")
            print(f"{name:9s} {int(found[1]) / n:10.1f} instructions a point", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    under = commands.add_parser("sanitize")
    under.add_argument("isa")
    under.add_argument("--sanitizers", default="address,undefined")
    under.add_argument("--quick", action="store_true", help="few problems of 5,000 points")
    lines = commands.add_parser("coverage")
    lines.add_argument("isa", nargs="?", default="avx2")
    mistakes = commands.add_parser("mutants")
    mistakes.add_argument("names", nargs="*", choices=[*MUTANTS, []], metavar="NAME")
    mistakes.add_argument("--isa", default="avx2")
    count = commands.add_parser("instructions")
    count.add_argument("size", nargs="*", type=int, metavar="N D K")
    given = parser.parse_args()
    if given.command == "sanitize":
        return sanitize(given.isa, given.sanitizers, given.quick)
    if given.command == "coverage":
        return coverage(given.isa)
    if given.command == "mutants":
        return plant(given.names, given.isa)
    n, d, k = given.size or (20_000, 32, 10)
    return instructions(n, d, k)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, subprocess.CalledProcessError) as error:
        sys.exit(f"driver: {error}")
