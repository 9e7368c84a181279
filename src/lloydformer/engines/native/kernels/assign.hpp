// Labels for the points of a range: each block meets all centers.
#pragma once

#include "centers.hpp"

namespace lloydformer::ISA {

/// Points whose two best scores are closer than rounding are looked at again in float64 and by
/// differences, so that labels of floats are those of exact arithmetic.
template <class T>
inline void settle_ties(Block<T>& block, const Packed<T>& centers, T farthest,
                        const Found<T>& found, int32_t* labels) {
    const T slack = 2 * rounding(centers, farthest);
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

/// Calls each(first row number, block, labels) for the blocks of a range.
template <class T, class Each>
inline void assign(const Rows<T>& rows, int64_t start, int64_t stop, const Packed<T>& centers,
                   Each each) {
    rows.reading(start, stop);
    Block<T> block(rows);
    int32_t labels[P<T>];
    for (int64_t i = start; i < stop; i += P<T>) {
        block.read(i, stop);
        const Found<T> found = nearest(block.lanes(), centers);
        for (int h = 0; h < 2; h++)
            for (int l = 0; l < W<T>; l++)
                labels[h * W<T> + l] = static_cast<int32_t>(found.index[h][l]);
        settle_ties(block, centers, rows.farthest, found, labels);
        each(i, block, labels);
    }
}

}  // namespace lloydformer::ISA
