// The fold NearestCosts: squared distances to the nearest and second nearest center, from scores
// in T.
//
// Sums are float64, point by point, so that the number of points in a block does not matter.
// Labels are those of the best score: close calls are not decided in float64, as only sums of
// distances are returned.
#pragma once

#include "workspace.hpp"

namespace lloydformer::ISA {

/// Squared distances of the points of a block to their nearest and second nearest center.
template <class T>
struct TwoDistances {
    V<T> first[2], second[2];

    TwoDistances(const BestScores<T>& found, const T (&squares)[P<T>], int k) {
        for (int h = 0; h < 2; h++) {
            const V<T> square = load(squares + h * W<T>);
            first[h] = max<T>(found.best[h] + square, V<T>{});
            second[h] = k > 1 ? max<T>(found.second[h] + square, V<T>{}) : first[h];
        }
    }
};

/// With r and s the squared distances to the nearest and second nearest center: the sums of w r and
/// w s; by nearest center, the sums of w and of w r. 2 + 2 k numbers.
template <class T>
Numbers nearest_costs(ThreadPool& pool, const Rows<T>& rows, const PackedCenters<T>& centers) {
    const int k = centers.k;
    return fold(pool, rows, 2 + 2 * k, [&](Range unit) {
        rows.prefetch_after(unit.start, unit.stop);
        return [&, block = PointBlock<T>(rows)](Numbers& sum, Range leaf) mutable {
            T squares[P<T>], first[P<T>], second[P<T>];
            double firsts = 0, seconds = 0;  // added point by point, for any P
            for (int64_t i = leaf.start; i < leaf.stop; i += P<T>) {
                block.read(i, leaf.stop);
                const BestScores<T> found =
                    nearest(block.lanes(), centers, centers.squares, rows.block(i + P<T>));
                block.squares(squares);
                const TwoDistances<T> near(found, squares, k);
                for (int h = 0; h < 2; h++)
                    store(first + h * W<T>, near.first[h]),
                        store(second + h * W<T>, near.second[h]);
                for (int r = 0; r < block.count; r++) {
                    const double weight = rows.weight(i + r), cost = weight * first[r];
                    const int label = int(found.index[r / W<T>][r % W<T>]);
                    firsts += cost, seconds += weight * second[r];
                    sum[2 + label] += weight, sum[2 + k + label] += cost;
                }
            }
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
