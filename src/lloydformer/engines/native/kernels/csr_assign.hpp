// The nearest center of a sparse row.
//
// Labels are exact wherever float64 can tell, the first of equally near centers: if several scores
// in T are within rounding of the best, they are computed in float64, and if these are within
// rounding as well, by differences. A label depends on its own row and the centers alone.
#pragma once

#include "csr_centers.hpp"
#include "tree.hpp"

namespace lloydformer::ISA {

/// Finds nearest centers, for one thread.
template <class T, class Index>
class CsrSearch {
  public:
    CsrSearch(const CsrRows<T, Index>& rows, const CsrCenters<T>& centers)
        : rows_(rows), centers_(centers), scores_(centers.width()) {}

    /// Calls each(i, row, label) for the rows of a range.
    template <class Each>
    void run(Range range, Each each) {
        CsrReader<T, Index> reader(rows_);
        if (centers_.parts() > 1) {
            for (int64_t i = range.start; i < range.stop; i++) {
                const CsrRow<T, Index> row = reader.row(i);
                each(i, row, nearest(row, score_parts(row), centers_.width()));
            }
            return;
        }
        centers_.by_parts([&](int, const T* numbers, auto count) {
            for (int64_t i = range.start; i < range.stop; i++) {
                const CsrRow<T, Index> row = reader.row(i);
                each(i, row, nearest(row, score_part<count>(row, 0, numbers), count * W<T>));
            }
        });
    }

  private:
    /// The label of a row. `best`: the smallest of its scores in each lane.
    [[gnu::always_inline]] int nearest(const CsrRow<T, Index>& row, V<T> best, int width) {
        const T limit = least<T>(best) + slack<T>(row.count, rows_.largest_norm(row.count));
        int label = -1;
        bool several = false;
        for (int first = 0; first < width; first += 64) {
            uint64_t near = 0;  // a bit for each center
            for (int v = 0; v < 64 && first + v < width; v += W<T>)
                near |= uint64_t(bits_at_most(load(&scores_[first + v]), splat(limit))) << v;
            if (near == 0) continue;
            several |= label >= 0 || (near & (near - 1)) != 0;
            label = first + __builtin_ctzll(near);
        }
        if (several) return settle(row);
        // Here labels of sparse rows are checked, once for all kernels: where scores are NaN or
        // infinite, no center may be near, or one of those that fill up the last vector. As
        // integers, because comparisons of such numbers may give anything (-ffinite-math-only).
        return unsigned(label) < unsigned(centers_.k) ? label : 0;
    }

    /// Computes the scores of one part of the centers, and stores them. Returns the smallest ones.
    template <int N>
    [[gnu::always_inline]] V<T> score_part(const CsrRow<T, Index>& row, int first,
                                           const T* numbers) {
        V<T> s[N], best;
        score<N>(row, numbers, &centers_.squares[first], s);
        best = s[0];
#pragma GCC unroll 8
        for (int v = 0; v < N; v++) {
            store(&scores_[first + v * W<T>], s[v]);
            best = min<T>(best, s[v]);
        }
        return best;
    }

    V<T> score_parts(const CsrRow<T, Index>& row) {
        V<T> best = splat(HUGE_SCORE<T>);
        centers_.by_parts([&](int first, const T* numbers, auto count) {
            best = min<T>(best, score_part<count>(row, first, numbers));
        });
        return best;
    }

    /// Upper bound of the rounding error in the difference of two scores, computed in Number:
    /// roundings of numbers below |c|^2 + 2 |x| |c|. For all centers: it decides most rows of data
    /// without outliers.
    template <class Number>
    Number slack(int64_t roundings, double norm) const {
        const double unit = 2 * double(roundings + 5) * std::numeric_limits<Number>::epsilon();
        return Number(unit * (centers_.largest + 2 * norm * centers_.radius) +
                      double(roundings + 5) * std::numeric_limits<Number>::min());
    }

    /// The nearest center where several are almost as near: by scores in float64, and if these are
    /// within rounding too, by differences.
    [[gnu::noinline]] int settle(const CsrRow<T, Index>& row) {
        const double norm = std::sqrt(row.square());
        find_candidates(row.count, T(norm));
        if (candidates_.size() == 1) return candidates_[0];
        double best = HUGE_SCORE<double>, second = best;
        int index = 0;
        for (int j : candidates_) {
            const double found = score_of(row, j);
            if (found < best) index = j;
            second = std::min(second, std::max(best, found));
            best = std::min(best, found);
        }
        if (second - best > slack<double>(int64_t(row.count) + centers_.d, norm)) return index;
        return by_differences(row);
    }

    /// Collects the centers that rounding allows to be the nearest, each with the bound of its own
    /// error, so that one far center does not make all of them too close to call.
    void find_candidates(int64_t roundings, T norm) {
        const T unit = T(roundings + 5) * std::numeric_limits<T>::epsilon(),
                tiny = T(roundings + 5) * std::numeric_limits<T>::min();
        const auto error = [&](int j) {
            return unit * (centers_.squares[j] + 2 * norm * centers_.norms[j]) + tiny;
        };
        T most = HUGE_SCORE<T>;
        for (int j = 0; j < centers_.k; j++) most = std::min(most, scores_[j] + error(j));
        candidates_.clear();
        for (int j = 0; j < centers_.k; j++)
            if (scores_[j] - error(j) <= most) candidates_.push_back(j);
    }

    double score_of(const CsrRow<T, Index>& row, int j) const {
        const T* c = centers_.row(j);
        double product = 0;
        for (int e = 0; e < row.count; e++) product += double(row.values[e]) * c[row.features[e]];
        return centers_.exact[j] - 2 * product;
    }

    /// The comparison of `nearest_exactly`, among the candidates.
    int by_differences(const CsrRow<T, Index>& row) {
        expanded_.resize(centers_.d);
        for (int e = 0; e < row.count; e++) expanded_[row.features[e]] = row.values[e];
        const bool far = row.square() > 0x1p60 * centers_.largest;
        int index = 0;
        double best = HUGE_SCORE<double>;
        for (int j : candidates_) {
            const double found =
                far ? score_exactly(expanded_.data(), centers_.row(j), centers_.row(0), centers_.d)
                    : squared_distance_exactly(expanded_.data(), centers_.row(j), centers_.d);
            if (found < best) best = found, index = j;
        }
        for (int e = 0; e < row.count; e++) expanded_[row.features[e]] = 0;
        return index;
    }

    const CsrRows<T, Index>& rows_;
    const CsrCenters<T>& centers_;
    Aligned<T> scores_;            // of the current row
    std::vector<int> candidates_;  // ascending
    std::vector<T> expanded_;      // (d), zeros between calls
};

/// Calls work(range) for short ranges of all rows, in any order: the results must not depend on
/// their length.
template <class Work>
void by_ranges(ThreadPool& pool, int64_t n, Work work) {
    // 16 ranges for each thread, as rows differ in length, but none so short that handing it out
    // takes longer.
    const int64_t length = std::clamp<int64_t>(n / (16 * pool.size()), 64, 4096);
    pool.run(int((n + length - 1) / length), [&](int number, int) {
        work(Range{number * length, std::min(n, (number + 1) * length)});
    });
}

/// Calls each(i, row, label) for the rows of a range.
template <class T, class Index, class Each>
void assign(const CsrRows<T, Index>& rows, const CsrCenters<T>& centers, Range range, Each each) {
    CsrSearch<T, Index>(rows, centers).run(range, each);
}

}  // namespace lloydformer::ISA
