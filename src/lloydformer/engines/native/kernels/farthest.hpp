// The fold Farthest: the rows that are farthest from their own centers. They fill empty clusters.
//
// Distances are differences in float64, rounded to T once. Of rows that are equally far the first
// one is taken, so ranges and threads do not matter.
#pragma once

#include <algorithm>
#include <vector>

#include "centers.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// The squared distance of a row from its center.
template <class T>
inline T distance_from_own(const T* row, const T* center, int d) {
    return T(squared_distance_in_parts(row, center, d));
}

/// The farthest of the rows that were added, at most `most` of them. A heap: its front is the row
/// that leaves next, so that a row costs one comparison, or O(log most) if it stays.
template <class T>
class FarthestRows {
  public:
    struct FarRow {
        T away;
        int64_t row;

        /// The order of the rows: by distance, then by number.
        bool before(const FarRow& other) const {
            return away > other.away || (away == other.away && row < other.row);
        }
    };

    explicit FarthestRows(size_t most) : most_(most) {}

    void add(const FarRow& one) {
        if (heap_.size() == most_) {
            if (most_ == 0 || !one.before(heap_.front())) return;
            std::pop_heap(heap_.begin(), heap_.end(), order);
            heap_.pop_back();
        }
        heap_.push_back(one);
        std::push_heap(heap_.begin(), heap_.end(), order);
    }

    void merge(const FarthestRows& other) {
        for (const FarRow& one : other.heap_) add(one);
    }

    /// The rows, the farthest first.
    std::vector<FarRow> sorted() const {
        std::vector<FarRow> rows = heap_;
        // Not std::sort, which may leave its array where NaN has no order.
        std::sort_heap(rows.begin(), rows.end(), order);
        return rows;
    }

  private:
    static bool order(const FarRow& a, const FarRow& b) { return a.before(b); }

    size_t most_;
    std::vector<FarRow> heap_;
};

/// The rows with weight that are farthest from their own centers (k, d), at most as many as `rows`
/// has places: their numbers, and their squared distances (m). Returns how many there are.
/// Precondition: labels are those of these centers.
template <class T>
void run_farthest(Workspace<T>& work, Call& call) {
    const Rows<T>& rows = work.rows;
    const auto centers = call.in<T>("centers", "(k, d)", {ANY, rows.d});
    const int32_t* labels = work.labels(call);
    const auto numbers = call.out<int64_t>("rows", "(m)", {ANY});
    const int64_t most = numbers.shape[0];
    double* distances = call.out<double>("distances", "(m)", {most});
    const Units ranges = Units(rows.n, rows.leaf, 2 * most).without_sums();
    std::vector<FarthestRows<T>> found(ranges.count, FarthestRows<T>(size_t(most)));
    work.pool.run(ranges.count, [&](int u, int) {
        const Range range = ranges.unit(u);
        rows.prefetch_after(range.start, range.stop);
        Aligned<T> row(rows.width);
        for (int64_t i = range.start; i < range.stop; i++) {
            if (!(rows.weight(i) > 0)) continue;
            rows.read(i, row.data());
            const T* own = centers + int64_t(labels[i]) * rows.d;
            found[u].add({distance_from_own(row.data(), own, rows.d), i});
        }
    });
    for (int u = 1; u < ranges.count; u++) found[0].merge(found[u]);
    const auto far = found[0].sorted();
    for (size_t l = 0; l < far.size(); l++) numbers[l] = far[l].row, distances[l] = far[l].away;
    call.results = {int64_t(far.size())};
}

}  // namespace lloydformer::ISA
