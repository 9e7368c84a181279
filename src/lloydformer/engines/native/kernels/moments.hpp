// The fold Moments: count, sums and squares of all points, in float64.
//
// Rows of a block are added by halves and blocks in their order, so the bits depend on the number
// of points in a block, but not on threads.
#pragma once

#include "workspace.hpp"

namespace lloydformer::ISA {

/// The sum of N numbers, by halves; overwrites them.
template <size_t N>
inline double total(double (&numbers)[N]) {
    for (size_t half = N / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++) numbers[i] += numbers[i + half];
    return numbers[0];
}

/// The sum of w |x|^2; of points with weight, their number, the sum of |x|^2 and the sums of their
/// features: 3 + d numbers.
template <class T>
Numbers moments(ThreadPool& pool, const Rows<T>& rows) {
    return fold(pool, rows, 3 + rows.d, [&](Range unit) {
        rows.prefetch_after(unit.start, unit.stop);
        return [&, block = PointBlock<T>(rows)](Numbers& sum, Range leaf) mutable {
            for (int64_t i = leaf.start; i < leaf.stop; i += P<T>) {
                block.read(i, leaf.stop);
                rows.block(i + P<T>).advance();
                double weight[P<T>]{}, counted[P<T>]{}, square[P<T>]{};
                for (int r = 0; r < block.count; r++)
                    weight[r] = rows.weight(i + r), counted[r] = weight[r] > 0;
                for (int f = 0; f < rows.d; f++) {
                    const T* x = block.lanes() + f * P<T>;
                    double parts[P<T>];
                    for (int r = 0; r < P<T>; r++) {
                        parts[r] = counted[r] * x[r];
                        square[r] += double(x[r]) * x[r];
                    }
                    sum[3 + f] += total(parts);
                }
                for (int r = 0; r < P<T>; r++) weight[r] *= square[r], square[r] *= counted[r];
                sum[0] += total(weight), sum[1] += total(counted), sum[2] += total(square);
            }
        };
    });
}

template <class T>
void run_moments(Workspace<T>& work, Call& call) {
    double* out = call.out<double>("out", "(3 + d)", {3 + work.rows.d});
    const Numbers found = moments(work.pool, work.rows);
    std::copy(found.begin(), found.end(), out);
}

}  // namespace lloydformer::ISA
