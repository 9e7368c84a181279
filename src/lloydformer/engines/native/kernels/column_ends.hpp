// The smallest and the largest number of each column, and if all numbers are finite.
//
// It runs before the first iteration, when nothing is known of the rows. Kernels are compiled for
// finite numbers (-ffinite-math-only), so NaN and infinity are found by their bits, as integers.
#pragma once

#include <cmath>

#include "assign.hpp"

namespace lloydformer::ISA {

/// Of some rows (n, d). W rows are d vectors, in which the same lane of the same vector always
/// belongs to the same column.
template <class T>
class ColumnEnds {
  public:
    explicit ColumnEnds(int d)
        : d_(d), low_(W<T> * d, HUGE_SCORE<T>), high_(W<T> * d, -HUGE_SCORE<T>) {}

    void add(const T* points, int64_t n) {
        const T* const stop = points + n * d_;
        const int64_t size = int64_t(W<T>) * d_;
        for (; stop - points >= size; points += size)
            for (int64_t f = 0; f < size; f += W<T>) {
                const V<T> x = load(points + f);
                store(&low_[f], min<T>(load(&low_[f]), x));
                store(&high_[f], max<T>(load(&high_[f]), x));
                note(x);
            }
        for (int64_t f = 0; points < stop; f++, points++) {
            low_[f] = std::min(low_[f], *points), high_[f] = std::max(high_[f], *points);
            note(splat(*points));
        }
    }

    /// Merges those of a column into `low` and `high` (d).
    void merge_into(T* low, T* high) const {
        for (int64_t f = 0; f < int64_t(low_.size()); f++) {
            low[f % d_] = std::min(low[f % d_], low_[f]);
            high[f % d_] = std::max(high[f % d_], high_[f]);
        }
    }

    /// Bits are compared as integers: the kernels are compiled for finite numbers.
    bool finite() const {
        const I<T> limit = (I<T>)splat(HUGE_SCORE<T>);
        return bits(largest_ > limit) == 0;
    }

  private:
    void note(V<T> x) {
        constexpr auto magnitude =
            std::numeric_limits<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>::max();
        const I<T> found = (I<T>)x & magnitude;
        largest_ = found > largest_ ? found : largest_;
    }

    int d_;
    Aligned<T> low_, high_;
    I<T> largest_{};  // without the sign
};

/// Writes the ends (2, d). Returns false if a number is NaN or infinite; then they are undefined.
template <class T>
bool column_ends(const T* points, int64_t n, int d, T* out, int n_threads) {
    ThreadPool pool(n_threads);
    const int64_t parts = pool.size() == 1 ? 1 : 4 * pool.size(), rows = (n + parts - 1) / parts;
    std::vector<ColumnEnds<T>> found(parts, ColumnEnds<T>(d));
    pool.run(int(parts), [&](int part, int) {
        const int64_t start = std::min(n, part * rows);
        found[part].add(points + start * d, std::min(n, start + rows) - start);
    });
    std::fill_n(out, d, HUGE_SCORE<T>), std::fill_n(out + d, d, -HUGE_SCORE<T>);
    bool finite = true;
    for (const ColumnEnds<T>& part : found)
        part.merge_into(out, out + d), finite = finite && part.finite();
    return finite;
}

}  // namespace lloydformer::ISA
