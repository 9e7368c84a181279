// The folds of trimmed k-means, DistanceHistogram and TrimmedSums: the radius of each cluster
// digit by digit, and the sums within it.
//
// Distances are not negative, so their bits are ordered like integers and radii are exact. Points
// at the radius are within. TrimmedSums writes the columns `previous` and `trimmed`.
#pragma once

#include "workspace.hpp"

namespace lloydformer::ISA {

/// Masses (k, 256) by the next eight bits of the distance, of points whose higher bits equal the
/// prefix of their cluster.
template <class T>
Numbers histogram(ThreadPool& pool, const Rows<T>& rows, const int32_t* labels, const T* distances,
                  const int64_t* prefix, int64_t k, int shift) {
    typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Bits;
    return fold(pool, rows, k << 8, [&](Range) {
        return [&](Numbers& sum, Range leaf) {
            for (int64_t i = leaf.start; i < leaf.stop; i++) {
                Bits pattern;
                std::memcpy(&pattern, distances + i, sizeof pattern);
                const int64_t bits = int64_t(pattern) >> shift, label = labels[i];
                if (bits >> 8 == prefix[label]) sum[(label << 8) + (bits & 255)] += rows.weight(i);
            }
        };
    });
}

template <class T>
void run_distance_histogram(Workspace<T>& work, Call& call) {
    const int32_t* labels = work.labels(call);
    const T* distances = work.distances(call);
    const auto prefix = call.in<int64_t>("prefix", "(k)", {ANY});
    const int64_t k = prefix.shape[0], shift = call.integer("shift");
    double* masses = call.out<double>("masses", "(k, 256)", {k, 256});
    const Numbers found =
        histogram(work.pool, work.rows, labels, distances, prefix.data, k, int(shift));
    std::copy(found.begin(), found.end(), masses);
}

/// Sums (k, d), masses (k), objective and changes of the points within the radius of their cluster.
/// Sets trimmed[i] to 1 for the other points. A point has changed if its label or its place within
/// or outside of the radius has.
template <class T>
Numbers trimmed_sums(ThreadPool& pool, const Rows<T>& rows, const int32_t* labels,
                     int32_t* previous, uint8_t* trimmed, const T* distances, const T* radius,
                     int k) {
    const int64_t objective = int64_t(k) * (rows.d + 1);
    return fold(pool, rows, objective + 2, [&](Range unit) {
        rows.prefetch_after(unit.start, unit.stop);
        return [&, row = std::vector<T>(rows.width)](Numbers& sum, Range leaf) mutable {
            for (int64_t i = leaf.start; i < leaf.stop; i++) {
                const double weight = rows.weight(i);
                const bool outside = !(distances[i] <= radius[labels[i]]);
                if (!outside) {
                    rows.read(i, row.data());
                    add(sum, k, row.data(), rows.d, labels[i], weight);
                    sum[objective] += weight * distances[i];
                }
                const bool differs = labels[i] != previous[i] || outside != bool(trimmed[i]);
                sum[objective + 1] += weight > 0 && differs;
                previous[i] = labels[i], trimmed[i] = outside;
            }
        };
    });
}

template <class T>
void run_trimmed_sums(Workspace<T>& work, Call& call) {
    const int32_t* labels = work.labels(call);
    int32_t* previous = work.previous(call);
    uint8_t* trimmed = work.trimmed(call);
    const T* distances = work.distances(call);
    const auto radius = call.in<T>("radius", "(k)", {ANY});
    const int k = int(radius.shape[0]);
    const StepArrays out(call, k, work.rows.d, "objective");
    work.lloyd.reset();
    out.fill(
        trimmed_sums(work.pool, work.rows, labels, previous, trimmed, distances, radius.data, k),
        call);
}

}  // namespace lloydformer::ISA
