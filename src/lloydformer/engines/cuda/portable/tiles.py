"""Sizes of tiles, by the padded number of features and the number of centers."""

from dataclasses import dataclass

# Most clusters times features for `move_small`, chosen by hand: a program keeps their sums for each
# row of its tile, up to 4,096 sums in all or 64 registers per thread.
_SMALL_SUMS = 128


@dataclass(frozen=True)
class Tile:
    """Rows, centers and features that a program works on at a time, and its warps.

    Attributes
    ----------
    rows, centers, features : int
        Powers of two; 0 where the kernel has no such size.
    warps : int
        Groups of 32 threads.
    stages : int
        Tiles of operands in shared memory at a time.
    programs : int
        Programs for each multiprocessor, where a program works on many tiles.
    """

    rows: int
    centers: int = 0
    features: int = 0
    warps: int = 4
    stages: int = 1
    programs: int = 4


# Tiles of the kernel `assign`: (padded features up to, centers up to, tile); the first that fits.
# Tile(rows, centers, features, warps, stages, programs).
# Chosen by hand within 99 KiB of shared memory, the least of any supported GPU; tests compile all
# of them for each generation and check that they fit. Only an H200 was available to run them.
ASSIGN: dict[str, tuple[tuple[int, int, Tile], ...]] = {
    "any": (
        (16, 16, Tile(256, 16, 16, 4, 3, 4)),
        (16, 64, Tile(128, 64, 16, 4, 3, 4)),
        (32, 16, Tile(256, 16, 32, 4, 3, 4)),
        (32, 64, Tile(128, 64, 32, 4, 3, 4)),
        (64, 16, Tile(128, 16, 64, 4, 3, 4)),
        (64, 64, Tile(128, 64, 64, 4, 3, 2)),
        (64, 1 << 31, Tile(128, 128, 64, 8, 3, 1)),
        (128, 16, Tile(128, 16, 128, 4, 2, 2)),
        (128, 64, Tile(128, 64, 128, 4, 2, 2)),
        (128, 1 << 31, Tile(128, 128, 128, 8, 2, 1)),
        (1 << 31, 16, Tile(128, 16, 64, 4, 3, 2)),
        (1 << 31, 64, Tile(128, 64, 64, 4, 3, 2)),
        (1 << 31, 1 << 31, Tile(128, 128, 64, 8, 3, 1)),
    ),
    # Small enough that tests of small problems have several tiles of everything.
    "interpreter": ((1 << 31, 1 << 31, Tile(64, 16, 32, programs=1)),),
}


@dataclass(frozen=True)
class Tiles:
    """The tiles of all kernels for one problem.

    Attributes
    ----------
    assign, prepare, centers, few, many, collect, move, update, measure : Tile
        By kernel. `centers` is `copy_centers`, `few` and `many` are of `decide`, `update` is
        `move_centers`.
    move_small : Tile or None
        That of `move_small`, where it is used in place of `move`.
    """

    assign: Tile
    prepare: Tile
    centers: Tile
    few: Tile
    many: Tile
    collect: Tile
    move: Tile
    move_small: Tile | None
    update: Tile
    measure: Tile


def choose_tiles(d: int, k: int, table: str = "any") -> Tiles:
    """Return the tiles for d features and k centers, from this table of `ASSIGN`.

    Sizes of the other kernels were chosen by hand. `prepare` and `measure` work on up to `cells`
    numbers at a time, 16 per thread of four warps; `move` on half of that, and `decide_few`, which
    measures four centers at once, on a quarter.
    """
    padded = pad_features(d)
    assign = next(tile for d_, k_, tile in ASSIGN[table] if padded <= d_ and k <= k_)
    wide = min(round_to_power(d), 128 if table == "any" else 64)
    cells = 2048 if table == "any" else 512
    small = round_to_power(k) * round_to_power(d)
    move_small = Tile(min(2 * cells // small, 128), round_to_power(k), round_to_power(d))
    return Tiles(
        assign=assign,
        prepare=Tile(cells // max(wide, 16), features=max(wide, 16)),
        centers=Tile(16, features=max(wide, 16)),
        few=Tile(min(cells // wide // 4, 128), features=wide, programs=8),
        many=Tile(16, centers=16, features=min(wide, 16), warps=8),
        move=Tile(min(cells // wide // 2, 128), features=wide, programs=8),
        move_small=move_small if small <= _SMALL_SUMS else None,
        update=Tile(4, features=wide),
        measure=Tile(min(cells // wide, 128), features=wide),
        collect=Tile(cells // 2),
    )


def can_keep_centers(tile: Tile, k: int, capability: int) -> bool:
    """Return True if `assign` keeps all centers in one tile that it reads once.

    Not for Blackwell (10.0 and later), for which Triton 3.6 fails to compile that.
    """
    return k <= tile.centers and capability < 100


def pad_features(d: int) -> int:
    """Return d, rounded up to what tensor cores multiply at a time."""
    return -(-d // 16) * 16


def round_to_power(value: int) -> int:
    """Return the smallest power of two that is not below value."""
    return 1 << (value - 1).bit_length()
