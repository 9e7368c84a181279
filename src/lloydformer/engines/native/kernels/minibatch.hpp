// Some rows by their numbers, each with its nearest center: one step of k-means over mini-batches.
#pragma once

#include "assign.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

constexpr int64_t BATCH_LEAF = 512;  // rows of a batch whose sums a thread adds up

/// Sums (k, d), counts (k) and the sum of d^2 of rows that are given by their numbers (b). Weights
/// do not count: rows are drawn by weight.
template <class T>
Numbers minibatch(ThreadPool& pool, const Rows<T>& rows, const PackedCenters<T>& centers,
                  const int64_t* numbers, int64_t b) {
    const int d = rows.d;
    std::vector<T> copied(b * d);
    Rows<T> batch(copied.data(), b, d, BATCH_LEAF, nullptr, nullptr, nullptr, nullptr, false);
    batch.largest_square = rows.largest_square;
    const int64_t objective = int64_t(centers.k) * (d + 1);
    return fold(pool, batch, objective + 1, [&](Range) {
        return [&, block = PointBlock<T>(batch), row = std::vector<T>(rows.width)](
                   Numbers& sum, Range leaf) mutable {
            for (int64_t i = leaf.start; i < leaf.stop; i++) {
                if (i + 8 < leaf.stop) rows.prefetch(numbers[i + 8]);
                rows.read(numbers[i], row.data());
                std::copy_n(row.data(), d, &copied[i * d]);
            }
            assign(batch, block, leaf, centers,
                   [&](int64_t, PointBlock<T>& points, const int32_t* labels) {
                       for (int r = 0; r < points.count; r++) {
                           const T* x = points.row(r);
                           add(sum, centers.k, x, d, labels[r], 1.0);
                           sum[objective] +=
                               squared_distance(x, centers.row(labels[r]), centers.width);
                       }
                   });
        };
    });
}

/// Sums (k, d), counts (k) and the sum of squared distances (1) of rows by their numbers (b).
template <class T>
void run_minibatch(Workspace<T>& work, Call& call) {
    const PackedCenters<T> centers = work.centers(call);
    const auto rows = call.in<int64_t>("rows", "(b)", {ANY});
    const int64_t b = rows.shape[0], n_sums = int64_t(centers.k) * centers.d;
    double* sums = call.out<double>("sums", "(k, d)", {centers.k, centers.d});
    double* counts = call.out<double>("counts", "(k)", {centers.k});
    double* objective = call.out<double>("objective", "(1)", {1});
    Call::require(b > 0, "rows", "pass at least one row");
    for (int64_t i = 0; i < b; i++)
        Call::require(rows[i] >= 0 && rows[i] < work.rows.n, "rows", "pass rows from 0 to n - 1");
    const Numbers found = minibatch(work.pool, work.rows, centers, rows.data, b);
    std::copy_n(found.begin(), n_sums, sums);
    std::copy_n(found.begin() + n_sums, centers.k, counts);
    *objective = found[n_sums + centers.k];
}

}  // namespace lloydformer::ISA
