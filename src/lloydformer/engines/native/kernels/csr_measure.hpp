// Labels and squared distances of sparse rows; count, sums and squares of all rows.
//
// Distances are computed in float64 and rounded once. Sums are added along the tree, in row order
// within a leaf.
#pragma once

#include "csr_lloyd.hpp"

namespace lloydformer::ISA {

/// |x - c|^2 from differences at the nonzeros and what is left of |c|^2 in the other features.
/// Where little is left, it is added up again without cancellation.
template <class T, class Index>
T squared_distance(const CsrRow<T, Index>& row, const T* c, double square, int d) {
    // Of |c|^2: 53 bits less 20 are more than the 24 of a float, and 53 less 10 are 43 of a double.
    constexpr double cancelled = sizeof(T) == sizeof(float) ? 0x1p-20 : 0x1p-10;
    double away = 0, at_nonzeros = 0;
    for (int e = 0; e < row.count; e++) {
        const double center = c[row.features[e]], apart = double(row.values[e]) - center;
        away += apart * apart, at_nonzeros += center * center;
    }
    const double left = std::max(square - at_nonzeros, 0.0);
    if (away + left > cancelled * square) return T(away + left);
    double others = 0;
    for (int e = 0, f = 0; e <= row.count; e++, f++)
        for (const int stop = e < row.count ? int(row.features[e]) : d; f < stop; f++)
            others += double(c[f]) * c[f];
    return T(away + others);
}

/// Labels and distances; the sum of w d^2 and the mass of each cluster, (k) each.
template <class T, class Index>
void run_csr_nearest_distances(CsrWorkspace<T, Index>& work, Call& call) {
    const CsrCenters<T>& centers = work.packed(call);
    const CsrRows<T, Index>& rows = work.rows;
    const int k = centers.k;
    int32_t* labels = work.labels(call);
    work.previous(call), call.flag("fresh");
    T* distances = work.distances(call);
    double* spread = call.out<double>("spread", "(k)", {k});
    double* masses = call.out<double>("masses", "(k)", {k});
    by_ranges(work.pool, rows.n, [&](Range range) {
        assign(rows, centers, range, [&](int64_t i, const CsrRow<T, Index>& row, int j) {
            labels[i] = j;
            distances[i] = squared_distance(row, centers.row(j), centers.exact[j], rows.d);
        });
    });
    const Numbers found = fold(work.pool, rows, 2 * k, [&](Range) {
        return [&](Numbers& sum, Range leaf) {
            for (int64_t i = leaf.start; i < leaf.stop; i++) {
                sum[labels[i]] += rows.weight(i) * distances[i];
                sum[k + labels[i]] += rows.weight(i);
            }
        };
    });
    std::copy_n(found.begin(), k, spread);
    std::copy_n(found.begin() + k, k, masses);
}

/// The sum of w |x|^2; of rows with weight, their number, the sum of |x|^2 and the sums of their
/// features: 3 + d numbers.
template <class T, class Index>
void run_csr_moments(CsrWorkspace<T, Index>& work, Call& call) {
    const CsrRows<T, Index>& rows = work.rows;
    double* out = call.out<double>("out", "(3 + d)", {3 + rows.d});
    const Numbers found = fold(work.pool, rows, 3 + rows.d, [&](Range) {
        return [&, reader = CsrReader<T, Index>(rows)](Numbers& sum, Range leaf) mutable {
            for (int64_t i = leaf.start; i < leaf.stop; i++) {
                if (!(rows.weight(i) > 0)) continue;
                const CsrRow<T, Index> row = reader.row(i);
                const double square = row.square();
                sum[0] += rows.weight(i) * square, sum[1] += 1, sum[2] += square;
                for (int e = 0; e < row.count; e++) sum[3 + row.features[e]] += row.values[e];
            }
        };
    });
    std::copy(found.begin(), found.end(), out);
}

}  // namespace lloydformer::ISA
