// The nearest center of a sparse row.
#pragma once

#include "csr_centers.hpp"
#include "tree.hpp"

namespace lloydformer::ISA {

/// Finds nearest centers, for one thread. Labels are those of exact arithmetic wherever float64
/// can tell: where the two best scores differ by less than rounding, they are computed again.
template <class T, class Index>
class CsrSearch {
  public:
    CsrSearch(const CsrRows<T, Index>& rows, const CsrCenters<T>& centers)
        : rows_(rows), centers_(centers) {
        for (int l = 0; l < W<T>; l++) lane_[l] = l;
    }

    int nearest(const CsrRow<T, Index>& row) {
        V<T> best = splat(HUGE_SCORE<T>), second = best;
        I<T> index{};
        centers_.by_parts([&](int first, const T* numbers, auto count) {
            V<T> s[count];
            score<count>(row, numbers, &centers_.squares[first], s);
            for (int v = 0; v < count; v++) {
                index = s[v] < best ? (first + v * W<T>)-I<T>{} : index;
                second = min<T>(second, max<T>(best, s[v]));
                best = min<T>(best, s[v]);
            }
        });
        const T least_score = least<T>(best);
        const int lane = __builtin_ctz(bits(best == splat(least_score)));
        const T next = least<T>(lane_ == lane - I<T>{} ? second : best);
        if (next - least_score > slack<T>(row.count, rows_.largest_norm(row.count)))
            return int(index[lane]) + lane;
        const T within = slack<T>(row.count, std::sqrt(row.square()));
        if (next - least_score > within) return int(index[lane]) + lane;
        return settle(row, least_score + within);
    }

  private:
    /// Upper bound of the rounding error in the difference of two scores, computed in Number:
    /// roundings of numbers below |c|^2 + 2 |x| |c|.
    template <class Number>
    Number slack(int64_t roundings, double norm) const {
        const double unit = 2 * double(roundings + 5) * std::numeric_limits<Number>::epsilon();
        return Number(unit * (centers_.largest + 2 * norm * centers_.radius) +
                      double(roundings + 5) * std::numeric_limits<Number>::min());
    }

    /// The nearest of the centers whose score is not above `most`: by scores in float64, and if
    /// they do not tell, by differences.
    int settle(const CsrRow<T, Index>& row, T most) {
        find_candidates(row, most);
        double best = HUGE_SCORE<double>, second = best;
        int index = 0;
        for (int j : candidates_) {
            const double found = score_of(row, j);
            if (found < best) index = j;
            second = std::min(second, std::max(best, found));
            best = std::min(best, found);
        }
        const double norm = std::sqrt(row.square());
        if (second - best > slack<double>(int64_t(row.count) + centers_.d, norm)) return index;
        return by_differences(row);
    }

    void find_candidates(const CsrRow<T, Index>& row, T most) {
        candidates_.clear();
        centers_.by_parts([&](int first, const T* numbers, auto count) {
            V<T> s[count];
            score<count>(row, numbers, &centers_.squares[first], s);
            for (int v = 0; v < count; v++)
                for (unsigned near = bits(s[v] <= splat(most)); near != 0; near &= near - 1)
                    candidates_.push_back(first + v * W<T> + __builtin_ctz(near));
        });
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
                far ? score_exactly(expanded_.data(), centers_.row(j), centers_.d)
                    : squared_distance_exactly(expanded_.data(), centers_.row(j), centers_.d);
            if (found < best) best = found, index = j;
        }
        for (int e = 0; e < row.count; e++) expanded_[row.features[e]] = 0;
        return index;
    }

    const CsrRows<T, Index>& rows_;
    const CsrCenters<T>& centers_;
    I<T> lane_{};
    std::vector<int> candidates_;  // ascending
    std::vector<T> expanded_;      // (d), zeros between calls
};

/// Calls work(range) for short ranges of all rows, in any order: the results must not depend on
/// their length.
template <class Work>
void by_ranges(ThreadPool& pool, int64_t n, Work work) {
    const int64_t length = std::clamp<int64_t>(n / (16 * pool.size()), 64, 4096);
    pool.run(int((n + length - 1) / length), [&](int number, int) {
        work(Range{number * length, std::min(n, (number + 1) * length)});
    });
}

/// Calls each(i, row, label) for the rows of a range.
template <class T, class Index, class Each>
void assign(const CsrRows<T, Index>& rows, const CsrCenters<T>& centers, Range range, Each each) {
    CsrReader<T, Index> reader(rows);
    CsrSearch<T, Index> search(rows, centers);
    for (int64_t i = range.start; i < range.stop; i++) {
        const CsrRow<T, Index> row = reader.row(i);
        each(i, row, search.nearest(row));
    }
}

}  // namespace lloydformer::ISA
