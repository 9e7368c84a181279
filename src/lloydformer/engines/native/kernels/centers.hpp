// Centers packed for blocks of points, and the nearest of them for each point of a block.
//
// The score of a center is |c|^2 - 2 x c, the squared distance less |x|^2: one multiplication and
// addition per feature. On ties the first center is kept. `ScoreError` bounds the error of a score,
// and decides where labels are computed again in float64.
//
// Centers come in two kinds. Those of iterations are numbers in T relative to the origin: that is
// their definition. Returned ones are those that users get, in float64 and not relative to the
// origin: scores see them less the origin and rounded to T, while comparisons and distances in
// float64 see them as they are, and rows as the caller stores them. So a squared distance in
// float64 is rounded d + 3 times by 2^-53 of itself, however far from the origin row and center
// are.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "int8.hpp"

namespace lloydformer::ISA {

/// Centers that are scored at a time: with two vectors of points their scores take 16 of AVX-512's
/// 32 registers.
constexpr int TOGETHER = 8;

/// Bounds of the rounding error of a score, for the row and for the center: together at most
/// row(|x|^2) + center(|c|^2).
///
/// Proof. A score adds up d products and |c|^2 in `terms` roundings one after the other, so its
/// error is at most terms u (|c|^2 + 2 sum |x_f c_f|), u = eps / 2, but for terms of order u^2.
/// By Cauchy-Schwarz and 2 a b <= a^2 + b^2 that is at most terms u (2 |c|^2 + |x|^2). `unit`
/// is twice this, and 8 more: for the rounding of |c|^2, of |x|^2, of `lowered`, of rows less their
/// origin and of centers, and for sums of two bounds. Products that underflow lose at most the
/// smallest normal number each.
///
/// So the bound holds for the true row and the true center, of which a score sees rounded ones: a
/// row less the origin is off by u |x|, a returned center less the origin, rounded to float64 and
/// then to T, by less than 1.01 u |c|. This changes the score by at most 2 u |x| |c| for the row,
/// and 2.1 u (|c|^2 + |x| |c|) for the center: together below 2.1 u |x|^2 + 4.2 u |c|^2, where
/// `unit` has 16 u |x|^2 and 32 u |c|^2 to spare.
///
/// The bound of a pair depends on this row and this center alone: with one bound for all, a single
/// far row or center would make all pairs too close to call.
template <class T>
struct ScoreError {
    T unit, tiny;

    explicit ScoreError(int terms)
        : unit((terms + 8) * std::numeric_limits<T>::epsilon()),
          tiny((terms + 8) * std::numeric_limits<T>::min()) {}

    T row(T square) const { return unit * square + tiny; }
    T center(T square) const { return 2 * unit * square; }

    /// A score less the bound of its center: at most row(|x|^2) above the true score, and at most
    /// row(|x|^2) + 2 center(|c|^2) below it. So bounds of centers cost nothing in a comparison.
    T lowered(T square) const { return square - center(square); }
};

/// Centers (k, d) as -2 c, eight at a time, feature by feature; |c|^2, and lowered by the bound of
/// its error; the same for labels, which name no copy of an earlier center; and padded rows.
template <class T>
struct PackedCenters {
    int k, d, width;
    ScoreError<T> error;
    std::vector<T> rows, numbers, squares, lowered, for_labels;
    std::vector<double> exact;  // returned centers, padded rows; empty for those of iterations
    T largest = 0;              // of the squares
    std::shared_ptr<const Int8Centers> int8;  // null: not screened

    PackedCenters(const T* centers, int k, int d, Screening screening = Screening::never)
        : k(k),
          d(d),
          width(padded<T>(d)),
          error(d),
          rows(int64_t(k) * width),
          numbers(int64_t(k) * d),
          squares(k),
          lowered(k) {
        for (int j = 0; j < k; j++)
            std::copy_n(centers + int64_t(j) * d, d, &rows[int64_t(j) * width]);
        for (int first = 0; first < k; first += TOGETHER)
            pack(first, std::min(TOGETHER, k - first));
        leave_out_copies(rows.data(), width);
        if (is_screened(screening, k, d))
            int8 = std::make_shared<Int8Centers>(rows.data(), k, d, width);
    }

    /// Returned centers.
    PackedCenters(const double* returned, int k, const Rows<T>& from)
        : PackedCenters(less_origin(returned, k, from).data(), k, from.d, from.screening) {
        exact.resize(int64_t(k) * padded<double>(d));
        for (int j = 0; j < k; j++)
            std::copy_n(returned + int64_t(j) * d, d, &exact[int64_t(j) * padded<double>(d)]);
        leave_out_copies(exact.data(), padded<double>(d));
    }

    const T* eight(int first) const { return &numbers[int64_t(first) * d]; }
    const T* row(int j) const { return &rows[int64_t(j) * width]; }

    /// True if rows in float64 must be read less the origin to be compared with these centers.
    bool centered() const { return exact.empty(); }
    const double* exact_row(int j) const { return &exact[int64_t(j) * padded<double>(d)]; }

  private:
    static std::vector<T> less_origin(const double* returned, int k, const Rows<T>& from) {
        std::vector<T> placed(int64_t(k) * from.d);
        for (int64_t at = 0; at < int64_t(placed.size()); at++)
            placed[at] = T(returned[at] - double(from.origin(int(at % from.d))));
        return placed;
    }

    /// Gives copies of earlier centers scores that are above all others, for labels alone. Without
    /// this, all rows of a center that has a copy are ties, which are compared in float64: starts
    /// that are rows of the data have copies if many rows are equal.
    template <class Number>
    void leave_out_copies(const Number* centers, int stride) {
        for_labels = lowered;
        if (k < 2) return;  // no copies; and memcpy may not have null for no center
        // Above all scores, and products of a score cannot bring it below them: |c|^2 is below
        // 2^-16 of the largest number, and so |2 x c| below 2^-7 of it.
        const T above = HUGE_SCORE<T> / 2;
        if (!(largest < T(0x1p-16) * HUGE_SCORE<T>)) return;
        // Nearly always squares tell that there is none. Bits, which have an order if NaN has none.
        std::vector<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>> found(k);
        std::memcpy(found.data(), squares.data(), k * sizeof(T));
        std::sort(found.begin(), found.end());
        if (std::adjacent_find(found.begin(), found.end()) == found.end()) return;
        std::unordered_set<std::string_view> seen;
        for (int j = 0; j < k; j++) {
            const char* own = reinterpret_cast<const char*>(centers + int64_t(j) * stride);
            if (!seen.emplace(own, d * sizeof(Number)).second) for_labels[j] = above;
        }
    }

    void pack(int first, int count) {
        T* to = &numbers[int64_t(first) * d];
        for (int j = 0; j < count; j++) {
            const T* c = row(first + j);
            double square = 0;
            for (int f = 0; f < d; f++) {
                to[f * count + j] = -2 * c[f];
                square += double(c[f]) * c[f];
            }
            squares[first + j] = static_cast<T>(square);
            lowered[first + j] = error.lowered(squares[first + j]);
            largest = std::max(largest, squares[first + j]);
        }
    }
};

/// Adds -2 x c over d features to the scores of J centers with two vectors of points.
template <class T, int J>
inline void add_products(const T* lanes, int d, const T* packed, V<T> (&s)[J][2]) {
    for (int f = 0; f < d; f++) {
        const V<T> a = load(lanes + f * P<T>), b = load(lanes + f * P<T> + W<T>);
#pragma GCC unroll 8
        for (int j = 0; j < J; j++) {
            const V<T> c = splat(packed[f * J + j]);
            s[j][0] += a * c;
            s[j][1] += b * c;
        }
    }
}

/// The scores |c|^2 - 2 x c of J centers with two vectors of points: squared distances, less |x|^2.
template <class T, int J>
inline void score(const T* lanes, int d, const T* packed, const T* squares, V<T> (&s)[J][2]) {
    for (int j = 0; j < J; j++) s[j][0] = s[j][1] = splat(squares[j]);
    add_products<T, J>(lanes, d, packed, s);
}

/// The best and second best score of each point, and the first center that has the best one. Here
/// labels of dense rows are indices whatever the scores are: `index` begins with 0, and changes to
/// the number of a center that was compared, so that NaN and infinity need no check.
template <class T>
struct BestScores {
    V<T> best[2], second[2];
    I<T> index[2];

    BestScores() {
        for (int h = 0; h < 2; h++) {
            best[h] = second[h] = splat(HUGE_SCORE<T>);
            index[h] = I<T>{};
        }
    }

    /// In pairs: the chain of dependent instructions is half as long.
    template <int J>
    void update(const V<T> (&s)[J][2], int first) {
        for (int h = 0; h < 2; h++) {
            for (int j = 0; j + 1 < J; j += 2) {
                const V<T> a = s[j][h], b = s[j + 1][h];
                second[h] = min<T>(second[h], max<T>(a, b));
                update_one(h, min<T>(a, b),
                           b < a ? (first + j + 1) - I<T>{} : (first + j) - I<T>{});
            }
            if (J % 2 == 1) update_one(h, s[J - 1][h], (first + J - 1) - I<T>{});
        }
    }

  private:
    void update_one(int h, V<T> score, I<T> center) {
        index[h] = score < best[h] ? center : index[h];
        second[h] = min<T>(second[h], max<T>(best[h], score));
        best[h] = min<T>(best[h], score);
    }
};

/// Calls each(first, J) for all centers, eight at a time and then the rest; J is a constant.
template <int J = TOGETHER, class Each>
inline void by_eights(int first, int k, Each each) {
    for (; first + J <= k; first += J) each(first, std::integral_constant<int, J>{});
    if constexpr (J > 1) by_eights<J - 1>(first, k, each);
}

/// The nearest of all centers for each point of a block, by scores with `squares`: `lowered` ones
/// where labels must be exact. Prefetches `next` meanwhile.
template <class T>
inline BestScores<T> nearest(const T* lanes, const PackedCenters<T>& centers,
                             const std::vector<T>& squares, Prefetch next = {}) {
    BestScores<T> found;
    next.share_among(centers.k / TOGETHER);
    by_eights(0, centers.k, [&](int first, auto count) {
        V<T> s[count][2];
        next.advance();
        score<T, count>(lanes, centers.d, centers.eight(first), &squares[first], s);
        found.update(s, first);
    });
    return found;
}

/// |x - c|^2 in float64. The order of the additions is the same for every instruction set.
template <class Row, class Center>
inline double squared_distance_exactly(const Row* x, const Center* c, int d) {
    double square = 0;
    for (int f = 0; f < d; f++) {
        const double away = double(x[f]) - double(c[f]);
        square += away * away;
    }
    return square;
}

/// The same, in independent parts for speed.
template <class Row, class Center>
inline double squared_distance_in_parts(const Row* x, const Center* c, int d) {
    V<double> parts{};
    int f = 0;
    for (; f + W<double> <= d; f += W<double>) {
        const V<double> away = as_doubles(x + f) - as_doubles(c + f);
        parts += away * away;
    }
    return sum<double>(parts) + squared_distance_exactly(x + f, c + f, d - f);
}

/// |x - c|^2 of row i and the center j, by differences in float64.
template <class T>
inline double exact_square(const Rows<T>& rows, int64_t i, ExactReader<T>& reader,
                           const PackedCenters<T>& centers, int j) {
    const int d = centers.d;
    if (centers.centered())
        return squared_distance_in_parts(reader.read(i, true), centers.row(j), d);
    // Rows that are stored as they are need no copy: a copy of few features costs more than they.
    if (rows.stored() != nullptr)
        return squared_distance_in_parts(rows.stored() + i * d, centers.exact_row(j), d);
    return squared_distance_in_parts(reader.read(i, false), centers.exact_row(j), d);
}

/// |x - c|^2 - |x - b|^2 in float64, for a row that is far from both.
template <class Row, class Center>
inline double score_exactly(const Row* x, const Center* c, const Center* b, int d) {
    double total = 0;
    for (int f = 0; f < d; f++)
        total += (double(c[f]) - double(b[f])) * (double(c[f]) + double(b[f]) - 2 * double(x[f]));
    return total;
}

/// Compares a row with centers in float64, in their order, so that the first of equals is found. By
/// differences; but by scores relative to the first center for a row that is a billion times (2^30)
/// as far from the origin as the centers: there differences to all centers would be rounded to the
/// same number. Each center has its own number, so the result does not depend on which others, too
/// far to be the nearest, are compared.
template <class T>
class ExactSearch {
  public:
    /// `row`: read as `PackedCenters::centered` says. `square`: |x|^2 less the origin.
    ExactSearch(const double* row, const PackedCenters<T>& centers, T square)
        : row_(row), centers_(centers), far_(double(square) > 0x1p60 * double(centers.largest)) {}

    void compare(int j) {
        const double found = centers_.centered()
                                 ? measure(centers_.row(j), centers_.row(0))
                                 : measure(centers_.exact_row(j), centers_.exact_row(0));
        if (found < best_) best_ = found, nearest = j;
    }

    int nearest = 0;  // a center also if no distance is below the largest number, as with NaN

  private:
    template <class Center>
    double measure(const Center* c, const Center* first) const {
        return far_ ? score_exactly(row_, c, first, centers_.d)
                    : squared_distance_exactly(row_, c, centers_.d);
    }

    const double* row_;
    const PackedCenters<T>& centers_;
    bool far_;
    double best_ = HUGE_SCORE<double>;
};

/// Scores for labels of one row with whole eights of centers from `first` on, whose sums do not
/// wait for each other; returns the first center that is left.
template <class T, int EIGHTS>
inline int score_eights(const T* row, const PackedCenters<T>& centers, int first, int to,
                        T* scores) {
    typedef T Eight __attribute__((vector_size(TOGETHER * sizeof(T))));
    const int d = centers.d;
    int j = first;
    for (; j + EIGHTS * TOGETHER <= to; j += EIGHTS * TOGETHER) {
        const T* packed = centers.eight(j);
        Eight s[EIGHTS];
        std::memcpy(s, &centers.for_labels[j], sizeof s);
        for (int f = 0; f < d; f++)
#pragma GCC unroll 8
            for (int e = 0; e < EIGHTS; e++) {
                Eight c;
                std::memcpy(&c, packed + (int64_t(e) * d + f) * TOGETHER, sizeof c);
                s[e] += row[f] * c;
            }
        std::memcpy(scores + (j - first), s, sizeof s);
    }
    return j;
}

/// The scores of `score` with the centers [first, to), for labels of a row that is compared by
/// itself.
template <class T>
inline void score_row(const T* row, const PackedCenters<T>& centers, int first, int to, T* scores) {
    const int d = centers.d;
    int j = score_eights<T, 8>(row, centers, first, to, scores);
    j = score_eights<T, 4>(row, centers, j, to, scores + (j - first));
    by_eights(j, to, [&](int at, auto count) {
        const T* packed = centers.eight(at);
        T s[count];
        std::copy_n(&centers.for_labels[at], int(count), s);
        for (int f = 0; f < d; f++)
            for (int l = 0; l < count; l++) s[l] += row[f] * packed[f * count + l];
        std::copy_n(s, int(count), scores + (at - first));
    });
}

/// Lowered scores of a row with a chunk of the centers at a time, so that few numbers are kept.
template <class T>
class RowScores {
  public:
    RowScores(const T* row, const PackedCenters<T>& centers) : row_(row), centers_(centers) {}

    /// Calls each(center) for the centers whose lowered score is at most `most`, in their order.
    template <class Each>
    void up_to(T most, Each each) {
        for (int first = 0; first < centers_.k; first += CHUNK) {
            const int count = compute(first);
            for (int j = 0; j < count; j += W<T>) {
                unsigned low = bits(load(scores_ + j) <= splat(most));
                if (j + W<T> > count) low &= (1u << (count - j)) - 1;  // `most` may be infinite
                for (; low != 0; low &= low - 1) each(first + j + __builtin_ctz(low));
            }
        }
    }

    /// The least upper bound of a true score, but for the share of the row.
    T least() {
        T found = HUGE_SCORE<T>;
        for (int first = 0; first < centers_.k; first += CHUNK) {
            const int count = compute(first);
            for (int j = 0; j < count; j++)
                found = std::min(
                    found, scores_[j] + 2 * centers_.error.center(centers_.squares[first + j]));
        }
        return found;
    }

  private:
    static constexpr int CHUNK = 64;

    int compute(int first) {
        const int count = std::min(CHUNK, centers_.k - first);
        score_row(row_, centers_, first, first + count, scores_);
        std::fill(scores_ + count, scores_ + CHUNK, HUGE_SCORE<T>);
        return count;
    }

    const T* row_;
    const PackedCenters<T>& centers_;
    T scores_[CHUNK];
};

/// The nearest center of a row in float64, the first one on ties. Only centers are compared whose
/// scores in T rounding allows to be the best. `exact`: the row as `PackedCenters::centered` says.
/// `square`: |x|^2 less the origin. `best`: an upper bound of the best true score, but for the
/// share of the row, such as the best lowered score and twice the bound of its center.
template <class T>
int nearest_exactly(const T* row, const double* exact, const PackedCenters<T>& centers, T square,
                    T best) {
    ExactSearch<T> search(exact, centers, square);
    RowScores<T>(row, centers).up_to(best + 2 * centers.error.row(square), [&](int j) {
        search.compare(j);
    });
    return search.nearest;
}

/// The same where no score of the row is known.
template <class T>
int nearest_exactly(const T* row, const double* exact, const PackedCenters<T>& centers) {
    const T square = dot(row, row, centers.width);
    return nearest_exactly(row, exact, centers, square, RowScores<T>(row, centers).least());
}

/// For point r of a block.
template <class T>
int nearest_exactly(PointBlock<T>& block, int r, const PackedCenters<T>& centers, T square,
                    T best) {
    const double* exact = block.exact_row(r, centers.centered());
    return nearest_exactly(block.row(r), exact, centers, square, best);
}

}  // namespace lloydformer::ISA
