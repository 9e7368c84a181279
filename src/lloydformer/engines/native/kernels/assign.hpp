// Labels of a range of points, by comparing each block with all centers.
#pragma once

#include "centers.hpp"
#include "tree.hpp"

namespace lloydformer::ISA {

/// Where the two best scores differ by less than rounding, finds the label again in float64 and by
/// differences, so that labels of float32 points are those of exact arithmetic.
template <class T>
inline void settle_ties(PointBlock<T>& block, const PackedCenters<T>& centers, T largest_square,
                        const BestScores<T>& found, int32_t* labels) {
    const T slack = 2 * rounding(centers, largest_square);
    for (int h = 0; h < 2; h++) {
        const V<T> gap = found.second[h] - found.best[h];
        for (unsigned close = bits(gap <= splat(slack)); close != 0; close &= close - 1) {
            const int l = __builtin_ctz(close), r = h * W<T> + l;
            if (r >= block.count) return;
            const T square = dot(block.row(r), block.row(r), centers.width);
            if (gap[l] <= 2 * rounding(centers, square))
                labels[r] = nearest_exactly(block.row(r), centers);
        }
    }
}

/// Calls each(first row number, block, labels) for the blocks of a range. The memory of `buffer` is
/// used; a local block is faster, because the compiler knows all that points to it.
template <class T, class Each>
inline void assign(const Rows<T>& rows, PointBlock<T>& buffer, Range range,
                   const PackedCenters<T>& centers, Each each) {
    PointBlock<T> block = std::move(buffer);
    int32_t labels[P<T>];
    for (int64_t i = range.start; i < range.stop; i += P<T>) {
        block.read(i, range.stop);
        const BestScores<T> found = nearest(block.lanes(), centers, rows.block(i + P<T>));
        for (int h = 0; h < 2; h++)
            for (int l = 0; l < W<T>; l++)
                labels[h * W<T> + l] = static_cast<int32_t>(found.index[h][l]);
        settle_ties(block, centers, rows.largest_square, found, labels);
        each(i, block, labels);
    }
    buffer = std::move(block);
}

}  // namespace lloydformer::ISA
