// The folds NearestDistances and NearestCosines: labels and squared distances to the nearest
// center.
//
// Labels are exact, as in assign.hpp, whether bounds are used or not; distances are computed by
// differences in float64, from rows as the caller stores them, and rounded to T once. Sums are of
// the numbers before that, added in row order within a leaf.
#pragma once

#include "assign.hpp"
#include "lloyd.hpp"

namespace lloydformer::ISA {

/// Squared distances to the nearest center, and labels unless they are known; of each cluster the
/// sum of w d^2, then the mass.
template <class T>
Numbers measure(ThreadPool& pool, const Rows<T>& rows, const PackedCenters<T>& centers,
                int32_t* labels, T* distances, bool labelled) {
    const Units units(rows.n, rows.leaf, 2 * centers.k), ranges = units.without_sums();
    if (!labelled && pool.size() > 1 && ranges.count > units.count) {
        label_all(pool, rows, ranges, centers, labels);
        labelled = true;
    }
    const auto note = [&](Numbers& sum, int64_t i, int32_t label, ExactReader<T>& reader) {
        const double away = exact_square(rows, i, reader, centers, label);
        distances[i] = T(away);
        sum[label] += rows.weight(i) * away;
        sum[centers.k + label] += rows.weight(i);
    };
    return fold(pool, rows, 2 * centers.k, [&](Range unit) {
        if (!labelled) rows.prefetch_after(unit.start, unit.stop);
        return [&, block = PointBlock<T>(rows), reader = ExactReader<T>(rows)](Numbers& sum,
                                                                               Range leaf) mutable {
            for (int64_t i = leaf.start; i < leaf.stop && labelled; i++)
                note(sum, i, labels[i], reader);
            if (labelled) return;
            assign(rows, block, leaf, centers,
                   [&](int64_t i, PointBlock<T>& points, const int32_t* found) {
                       std::copy_n(found, points.count, labels + i);
                       for (int r = 0; r < points.count; r++) note(sum, i + r, found[r], reader);
                   });
        };
    });
}

/// Labels and distances; the sum of w d^2 and the mass of each cluster, (k) each. Bounds of the
/// last `nearest_sums` are used, unless fresh: `previous` holds its labels.
template <class T>
void run_nearest_distances(Workspace<T>& work, Call& call) {
    const PackedCenters<T> centers = work.centers(call);
    int32_t *labels = work.labels(call), *previous = work.previous(call);
    T* distances = work.distances(call);
    double* spread = call.out<double>("spread", "(k)", {centers.k});
    double* masses = call.out<double>("masses", "(k)", {centers.k});
    const bool fresh = call.flag("fresh");
    const bool labelled =
        !fresh && work.lloyd != nullptr && work.lloyd->k() == centers.k && work.lloyd->has_bounds();
    if (labelled) work.lloyd->relabel(work.pool, centers, labels, previous);
    work.labels_written = true;
    const Numbers found = measure(work.pool, work.rows, centers, labels, distances, labelled);
    std::copy_n(found.begin(), centers.k, spread);
    std::copy_n(found.begin() + centers.k, centers.k, masses);
}

}  // namespace lloydformer::ISA
