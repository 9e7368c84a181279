// The fold Oversampling of k-means||: distances to the nearest candidate, when many candidates are
// new.
//
// Before and after, `labels` and `distances` are those of the nearest candidate so far, the first
// of equally near ones.
#pragma once

#include "assign.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// Updates the nearest candidate of each point (`labels`) and its squared distance for candidates
/// that are new. `known`: number of candidates before them. Returns the mass that each candidate
/// attracts, and the sum of w d^2.
template <class T>
Numbers update_nearest(ThreadPool& pool, const Rows<T>& rows, const PackedCenters<T>& fresh,
                       int known, int32_t* labels, T* distances) {
    const int n_candidates = known + fresh.k;
    const auto count = [&](Numbers& sum, int64_t i) {
        sum[labels[i]] += rows.weight(i);
        sum[n_candidates] += rows.weight(i) * distances[i];
    };
    return fold(pool, rows, n_candidates + 1, [&](Range unit) {
        rows.prefetch_after(unit.start, unit.stop);
        return [&, block = PointBlock<T>(rows)](Numbers& sum, Range leaf) mutable {
            for (int64_t i = leaf.start; i < leaf.stop && fresh.k == 0; i++) count(sum, i);
            if (fresh.k == 0) return;
            assign(rows, block, leaf, fresh,
                   [&](int64_t first, PointBlock<T>& points, const int32_t* found) {
                       for (int r = 0; r < points.count; r++) {
                           const int64_t i = first + r;
                           const T away =
                               squared_distance(points.row(r), fresh.row(found[r]), fresh.width);
                           if (known == 0 || away < distances[i])
                               distances[i] = away, labels[i] = known + found[r];
                           count(sum, i);
                       }
                   });
        };
    });
}

/// The nearest candidates; the mass that each attracts (m) and the sum of w d^2 (1).
template <class T>
void run_oversampling(Workspace<T>& work, Call& call) {
    const PackedCenters<T> fresh = work.centers(call);
    const int64_t known = call.integer("known");
    int32_t* labels = work.labels(call);
    T* distances = work.distances(call);
    double* attracted = call.out<double>("attracted", "(known + fresh)", {known + fresh.k});
    double* mass = call.out<double>("mass", "(1)", {1});
    Call::require(known >= 0 && known + fresh.k > 0, "known", "pass the number of candidates");
    work.labels_written = true;
    const Numbers found =
        update_nearest(work.pool, work.rows, fresh, int(known), labels, distances);
    std::copy_n(found.begin(), known + fresh.k, attracted);
    *mass = found.back();
}

}  // namespace lloydformer::ISA
