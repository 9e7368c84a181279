// Labels of a range of points, by comparing each block with all centers.
//
// Labels are exact: those of float64 arithmetic by differences, the first of equally near centers.
// Rows are read for that from the caller's memory and not rounded to T; centers are those of
// iterations or returned ones (centers.hpp). Scores in T decide where the two best differ by more
// than their rounding errors together (`ScoreError`); the other points, few of them, are compared
// again in float64. A label depends on its own row and the centers alone, so ranges and threads do
// not matter.
#pragma once

#include "screening.hpp"
#include "tiled_search.hpp"
#include "tree.hpp"

namespace lloydformer::ISA {

/// Where the two best lowered scores differ by less than rounding, takes the label from
/// exactly(point of the block, its |x|^2, an upper bound of its best true score but for the share
/// of the row), so that labels of float32 points are those of exact arithmetic.
template <class T, class Exactly>
inline void settle_ties(PointBlock<T>& block, const PackedCenters<T>& centers, T largest_square,
                        const BestScores<T>& found, const ScoreError<T>& error, int32_t* labels,
                        Exactly exactly) {
    // The bound of the farthest row and center decides nearly all blocks of data without outliers.
    const V<T> most = splat(2 * (error.row(largest_square) + error.center(centers.largest)));
    T gaps[P<T>], squares[P<T>];
    unsigned close[2];
    for (int h = 0; h < 2; h++) {
        const V<T> gap = found.second[h] - found.best[h];
        close[h] = bits(gap <= most);
        store(gaps + h * W<T>, gap);
    }
    if ((close[0] | close[1]) == 0) return;
    // A dot product takes as long as the squares of a few points in their lanes.
    constexpr int FEW = 4;
    const bool many = __builtin_popcount(close[0]) + __builtin_popcount(close[1]) > FEW;
    if (many) block.squares(squares);
    for (int h = 0; h < 2; h++)
        for (; close[h] != 0; close[h] &= close[h] - 1) {
            const int r = h * W<T> + __builtin_ctz(close[h]);
            if (r >= block.count) return;
            const T square = many ? squares[r] : dot(block.row(r), block.row(r), centers.width);
            const T own = 2 * error.center(centers.squares[labels[r]]);
            if (gaps[r] <= 2 * error.row(square) + own)
                labels[r] = exactly(r, square, found.best[h][r % W<T>] + own);
        }
}

/// The same for scores of all features one after the other: by differences in float64.
template <class T>
inline void settle_ties(PointBlock<T>& block, const PackedCenters<T>& centers, T largest_square,
                        const BestScores<T>& found, int32_t* labels) {
    settle_ties(
        block, centers, largest_square, found, centers.error, labels,
        [&](int r, T square, T best) { return nearest_exactly(block, r, centers, square, best); });
}

/// The centers with the best scores of a block.
template <class T>
inline void best_labels(const BestScores<T>& found, int32_t (&labels)[P<T>]) {
    for (int h = 0; h < 2; h++)
        for (int l = 0; l < W<T>; l++)
            labels[h * W<T> + l] = static_cast<int32_t>(found.index[h][l]);
}

/// `assign` for centers that do not stay in the caches: several blocks are compared with a tile of
/// them.
template <class T, class Each>
void assign_in_tiles(const Rows<T>& rows, Range range, const PackedCenters<T>& centers, Each each) {
    constexpr int BLOCKS = TiledSearch<T>::BLOCKS;
    std::vector<PointBlock<T>> blocks(BLOCKS, PointBlock<T>(rows));
    TiledSearch<T> search(centers);
    int32_t labels[P<T>];
    for (int64_t i = range.start; i < range.stop;) {
        const int64_t first = i;
        int count = 0;
        for (; count < BLOCKS && i < range.stop; count++, i += P<T>) {
            blocks[count].read(i, range.stop);
            search.begin(count, blocks[count].lanes(), rows.block(i + BLOCKS * P<T>));
        }
        search.run(count);
        for (int b = 0; b < count; b++) {
            best_labels(search.found(b), labels);
            settle_ties(blocks[b], centers, rows.largest_square, search.found(b), search.error(),
                        labels, [&](int r, T square, T best) {
                            const double* row = blocks[b].exact_row(r, centers.centered());
                            return search.nearest_exactly(b, r, row, square, best);
                        });
            each(first + b * P<T>, blocks[b], labels);
        }
    }
}

/// `assign` by screening.
template <class T, class Each>
void assign_screened(const Rows<T>& rows, Range range, const PackedCenters<T>& centers, Each each) {
    ScreenedRows<T> screened(rows, centers);
    PointBlock<T> block(rows);
    int32_t labels[ScreenedRows<T>::MOST];
    for (int64_t i = range.start; i < range.stop; i += ScreenedRows<T>::MOST) {
        const int count = int(std::min<int64_t>(ScreenedRows<T>::MOST, range.stop - i));
        screened.read(i, count);
        screened.label(labels);
        for (int r = 0; r < count; r += P<T>) {
            screened.fill(block, r, std::min(P<T>, count - r));
            each(i + r, block, labels + r);
        }
    }
}

/// Calls each(first row number, block, labels) for the blocks of a range. The memory of `buffer` is
/// used; a local block is faster, because the compiler knows all that points to it.
template <class T, class Each>
inline void assign(const Rows<T>& rows, PointBlock<T>& buffer, Range range,
                   const PackedCenters<T>& centers, Each each) {
    if (centers.int8 != nullptr) return assign_screened(rows, range, centers, each);
    if (TiledSearch<T>::is_faster(centers)) return assign_in_tiles(rows, range, centers, each);
    PointBlock<T> block = std::move(buffer);
    int32_t labels[P<T>];
    for (int64_t i = range.start; i < range.stop; i += P<T>) {
        block.read(i, range.stop);
        const BestScores<T> found =
            nearest(block.lanes(), centers, centers.for_labels, rows.block(i + P<T>));
        best_labels(found, labels);
        settle_ties(block, centers, rows.largest_square, found, labels);
        each(i, block, labels);
    }
    buffer = std::move(block);
}

/// The labels of all rows, range by range.
template <class T>
void label_all(ThreadPool& pool, const Rows<T>& rows, const Units& ranges,
               const PackedCenters<T>& centers, int32_t* labels) {
    pool.run(ranges.count, [&](int u, int) {
        PointBlock<T> block(rows);
        rows.prefetch_after(ranges.unit(u).start, ranges.unit(u).stop);
        assign(rows, block, ranges.unit(u), centers,
               [&](int64_t i, PointBlock<T>& points, const int32_t* found) {
                   std::copy_n(found, points.count, labels + i);
               });
    });
}

}  // namespace lloydformer::ISA
