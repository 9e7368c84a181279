// The folds of a relocation, TwoNearest, ClusterErrors and Halves, for data in parts: labels,
// distances and sums with the bits of `Relocation`.
#pragma once

#include "assign_two.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// Labels by nearest center; where they are wanted, second nearest centers and squared distances.
/// For each cluster the sums of w x, w, w d^2 and w `second_less_first`: k (d + 3) numbers.
template <class T>
Numbers two_nearest(ThreadPool& pool, const Rows<T>& rows, const PackedCenters<T>& centers,
                    int32_t* labels, int32_t* second, T* distances) {
    const int k = centers.k, d = rows.d;
    const int64_t masses = int64_t(k) * d, errors = masses + k, useful = errors + k;
    return fold(pool, rows, useful + k, [&](Range unit) {
        rows.prefetch_after(unit.start, unit.stop);
        return [&, buffer = PointBlock<T>(rows)](Numbers& sum, Range leaf) mutable {
            assign_two(
                rows, buffer, leaf, centers,
                [&](int64_t first, PointBlock<T>& block, const int32_t* now,
                    const int32_t* others) {
                    for (int r = 0; r < block.count; r++) {
                        const int64_t i = first + r;
                        const int label = now[r];
                        const double weight = rows.weight(i);
                        const T away =
                            squared_distance(block.row(r), centers.row(label), centers.width);
                        labels[i] = label;
                        if (second != nullptr) second[i] = others[r];
                        if (distances != nullptr) distances[i] = away;
                        double* own = &sum[int64_t(label) * d];
                        for (int f = 0; f < d; f++) own[f] += weight * block.row(r)[f];
                        sum[masses + label] += weight;
                        sum[errors + label] += weight * double(away);
                        sum[useful + label] +=
                            weight * second_less_first(block.row(r), centers, label, others[r]);
                    }
                });
        };
    });
}

template <class T>
void run_two_nearest(Workspace<T>& work, Call& call) {
    const PackedCenters<T> centers = work.centers(call);
    const int k = centers.k, d = work.rows.d;
    int32_t* labels = work.labels(call);
    int32_t* second = nullptr;
    if (call.has("second")) second = call.out<int32_t>("second", "(n)", {work.rows.n});
    T* distances = call.has("distances") ? work.distances(call) : nullptr;
    double* sums = call.out<double>("sums", "(k, d)", {k, d});
    double* others[] = {call.out<double>("masses", "(k)", {k}),
                        call.out<double>("errors", "(k)", {k}),
                        call.out<double>("useful", "(k)", {k})};
    work.copy_for_two_nearest(k);
    work.labels_written = true;
    const Numbers found = two_nearest(work.pool, work.rows, centers, labels, second, distances);
    auto next = found.begin() + int64_t(k) * d;
    std::copy(found.begin(), next, sums);
    for (double* out : others) std::copy_n(next, k, out), next += k;
}

/// Halves of some clusters at `draws` points each: place[j] is the place of cluster j among the
/// chosen ones, or -1. For each of them and each point the sums of w x and w of the rows that are
/// nearer to it than to their center, and the numbers of rows with weight that are so and are not.
template <class T>
Numbers halves(ThreadPool& pool, const Rows<T>& rows, const int32_t* labels, const T* distances,
               const int32_t* place, const std::vector<T>& points, int count, int draws) {
    const int d = rows.d;
    const int64_t splits = int64_t(count) * draws, masses = splits * d;
    return fold(pool, rows, masses + 3 * splits, [&](Range unit) {
        rows.prefetch_after(unit.start, unit.stop);
        return [&, row = std::vector<T>(rows.width)](Numbers& sum, Range leaf) mutable {
            for (int64_t i = leaf.start; i < leaf.stop; i++) {
                const int at = place[labels[i]];
                if (at < 0) continue;
                rows.read(i, row.data());
                const double weight = rows.weight(i);
                for (int64_t s = int64_t(at) * draws; s < int64_t(at + 1) * draws; s++) {
                    const bool near = squared_distance(row.data(), &points[s * rows.width],
                                                       rows.width) < distances[i];
                    sum[masses + (near ? 1 : 2) * splits + s] += weight > 0;
                    if (!near) continue;
                    for (int f = 0; f < d; f++) sum[s * d + f] += weight * row[f];
                    sum[masses + s] += weight;
                }
            }
        };
    });
}

template <class T>
void run_halves(Workspace<T>& work, Call& call) {
    const int d = work.rows.d, width = work.rows.width;
    const int32_t* labels = work.labels(call);
    const T* distances = work.distances(call);
    const auto place = call.in<int32_t>("place", "(k)", {ANY});
    const auto points = call.in<T>("points", "(count, draws, d)", {ANY, ANY, d});
    const int count = int(points.shape[0]), draws = int(points.shape[1]);
    double* sums = call.out<double>("sums", "(count, draws, d)", {count, draws, d});
    double* others[] = {call.out<double>("masses", "(count, draws)", {count, draws}),
                        call.out<double>("near", "(count, draws)", {count, draws}),
                        call.out<double>("rest", "(count, draws)", {count, draws})};
    for (int64_t j = 0; j < place.shape[0]; j++)
        Call::require(place[j] >= -1 && place[j] < count, "place", "pass places of points, or -1");
    std::vector<T> padded(int64_t(count) * draws * width);
    for (int64_t s = 0; s < int64_t(count) * draws; s++)
        std::copy_n(&points[s * d], d, &padded[s * width]);
    const Numbers found =
        halves(work.pool, work.rows, labels, distances, place.data, padded, count, draws);
    auto next = found.begin() + int64_t(count) * draws * d;
    std::copy(found.begin(), next, sums);
    for (double* out : others)
        std::copy_n(next, int64_t(count) * draws, out), next += int64_t(count) * draws;
}

}  // namespace lloydformer::ISA
