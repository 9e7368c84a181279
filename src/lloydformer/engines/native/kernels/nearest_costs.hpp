// The fold NearestCosts: squared distances to the nearest and second nearest center, by
// differences.
//
// Sums are float64, point by point, so that the number of points in a block does not matter.
#pragma once

#include "assign_two.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// With r and s the squared distances to the nearest and second nearest center: the sums of w r and
/// w s; by nearest center, the sums of w and of w r. 2 + 2 k numbers.
template <class T>
Numbers nearest_costs(ThreadPool& pool, const Rows<T>& rows, const PackedCenters<T>& centers) {
    const int k = centers.k;
    return fold(pool, rows, 2 + 2 * k, [&](Range unit) {
        rows.prefetch_after(unit.start, unit.stop);
        return [&, block = PointBlock<T>(rows)](Numbers& sum, Range leaf) mutable {
            double firsts = 0, seconds = 0;  // added point by point, for any P
            assign_two(
                rows, block, leaf, centers,
                [&](int64_t i, PointBlock<T>& points, const int32_t* labels,
                    const int32_t* others) {
                    for (int r = 0; r < points.count; r++) {
                        const T* row = points.row(r);
                        const int label = labels[r];
                        const double weight = rows.weight(i + r);
                        const double cost =
                            weight * squared_distance(row, centers.row(label), centers.width);
                        firsts += cost;
                        seconds +=
                            weight * squared_distance(row, centers.row(others[r]), centers.width);
                        sum[2 + label] += weight, sum[2 + k + label] += cost;
                    }
                });
            sum[0] += firsts, sum[1] += seconds;
        };
    });
}

template <class T>
void run_nearest_costs(Workspace<T>& work, Call& call) {
    const PackedCenters<T> centers = work.centers(call);
    double* sums = call.out<double>("sums", "(2)", {2});
    double* masses = call.out<double>("masses", "(k)", {centers.k});
    double* costs = call.out<double>("costs", "(k)", {centers.k});
    const Numbers found = nearest_costs(work.pool, work.rows, centers);
    std::copy_n(found.begin(), 2, sums);
    std::copy_n(found.begin() + 2, centers.k, masses);
    std::copy_n(found.begin() + 2 + centers.k, centers.k, costs);
}

}  // namespace lloydformer::ISA
