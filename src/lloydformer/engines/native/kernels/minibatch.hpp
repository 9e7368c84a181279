// Rows given by their numbers, each with its nearest center: one step of k-means over
// mini-batches.
//
// Labels are exact, as in assign.hpp. Sums are added in the order of the numbers, in leaves of
// their own, so they do not depend on threads.
#pragma once

#include <memory>

#include "assign.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

// Rows of a batch whose sums a thread adds up. Batches are small, often 1024 rows: the leaves of a
// fit, of 8192 or more, would leave all but one thread without work.
constexpr int64_t BATCH_LEAF = 512;

/// How many rows a batch has, and a leaf of its tree of sums.
struct BatchRows {
    int64_t n, leaf;
};

/// Copies of the rows of a leaf, for one thread: blocks read some numbers behind their last row.
template <class T>
class BatchLeaf {
  public:
    /// `from`: all rows. n: those of a leaf at most.
    BatchLeaf(const Rows<T>& from, int64_t n)
        : from_(from), copied_(n * from.d), rows(from, copied_.data(), n), block(rows) {}

    /// Reads rows by their numbers, as they are stored: the exact comparison needs their digits.
    void read(const int64_t* numbers, int64_t count) {
        for (int64_t i = 0; i < count; i++) {
            if (i + 8 < count) from_.prefetch(numbers[i + 8]);
            from_.copy(numbers[i], &copied_[i * from_.d]);
        }
    }

  private:
    const Rows<T>& from_;
    std::vector<T> copied_;

  public:
    Rows<T> rows;
    PointBlock<T> block;
};

/// Sums (k, d), counts (k) and the sum of d^2 of rows that are given by their numbers (b). Weights
/// do not count: rows are drawn by weight.
template <class T>
Numbers minibatch(ThreadPool& pool, const Rows<T>& rows, const PackedCenters<T>& centers,
                  const int64_t* numbers, int64_t b) {
    const BatchRows batch{b, std::min(b, BATCH_LEAF)};
    const int64_t objective = int64_t(centers.k) * (rows.d + 1);
    return fold(pool, batch, objective + 1, [&](Range) {
        return
            [&, own = std::make_shared<BatchLeaf<T>>(rows, batch.leaf)](Numbers& sum, Range leaf) {
                own->read(numbers + leaf.start, leaf.stop - leaf.start);
                assign(own->rows, own->block, Range{0, leaf.stop - leaf.start}, centers,
                       [&](int64_t, PointBlock<T>& points, const int32_t* labels) {
                           for (int r = 0; r < points.count; r++) {
                               const T* x = points.row(r);
                               add(sum, centers.k, x, rows.d, labels[r], 1.0);
                               sum[objective] +=
                                   squared_distance(x, centers.row(labels[r]), centers.width);
                           }
                       });
            };
    });
}

/// Sums (k, d), counts (k) and the sum of squared distances (1) of rows by their numbers (b).
template <class T>
void run_minibatch_sums(Workspace<T>& work, Call& call) {
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
