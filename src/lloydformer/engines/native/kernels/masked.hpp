// The folds of rows with missing values, MaskedSums and NearestDistances: labels by the observed
// values of a row, and sums and counts of each cluster by coordinate.
//
// A score is the sum of c^2 - 2 x c over the observed columns, added for one row and a vector of
// centers at a time, so that missing values cost nothing. Where its rounding could decide,
// distances are computed by differences in float64; on ties the first center wins.
//
// Two bounds for each row show that its label cannot change: an upper one on the distance to its
// own center, and a lower one on that to any other (Hamerly's). The distance over observed columns
// is a seminorm of the difference, so that a center that moves by m changes it by at most m.
//
// Invariant: after a step `previous` equals `labels`, and the totals are their sums. Changes are
// added in row order within a leaf and along the tree between leaves: threads change no bit.
#pragma once

#include "fold.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// A mask of rows: observed[i * d + f] is 0 where a value is missing.
struct Mask {
    const uint8_t* observed;
    int d;
    bool scaled;  // distances of a row are multiplied by d over its number of observed values
};

/// P rows, transposed with one row in each lane: values with 0 where they are missing, and masks.
template <class T>
class MaskedBlock {
  public:
    MaskedBlock(const Rows<T>& rows, const Mask& mask)
        : rows_(rows),
          mask_(mask),
          width_(rows.width),
          values_(P<T> * width_),
          masks_(P<T> * width_),
          value_lanes_(width_ * P<T>),
          mask_lanes_(width_ * P<T>) {}

    /// Reads rows by their numbers.
    void gather(const int64_t* numbers, int how_many) {
        count = how_many;
        for (int r = 0; r < count; r++) {
            T *to = &values_[r * width_], *there = &masks_[r * width_];
            const uint8_t* observed = mask_.observed + numbers[r] * mask_.d;
            rows_.read(numbers[r], to);
            int seen = 0;
            for (int f = 0; f < mask_.d; f++) {
                there[f] = T(observed[f] != 0);
                to[f] *= there[f];
                seen += observed[f] != 0;
            }
            factor[r] = mask_.scaled ? double(mask_.d) / seen : 1.0;
        }
        constexpr int step = 16 / sizeof(T);
        for (int f = 0; f < mask_.d; f += step)
            for (int half = 0; half < P<T>; half += W<T>) {
                const int from = half * width_ + f, to = f * P<T> + half;
                transpose(&values_[from], width_, &value_lanes_[to], P<T>);
                transpose(&masks_[from], width_, &mask_lanes_[to], P<T>);
            }
    }

    const T* value(int f) const { return &value_lanes_[f * P<T>]; }
    const T* mask(int f) const { return &mask_lanes_[f * P<T>]; }
    const T* row(int r) const { return &values_[r * width_]; }
    const T* row_mask(int r) const { return &masks_[r * width_]; }

    /// The squared distance of a row to a center in float64, without the factor.
    template <class X, class C>
    double away(int r, const X* x, const C* center) const {
        const T* there = row_mask(r);
        double sum = 0;
        for (int f = 0; f < mask_.d; f++) {
            const double difference = (double(x[f]) - double(center[f])) * double(there[f]);
            sum += difference * difference;
        }
        return sum;
    }

    int count = 0;
    double factor[P<T>]{};

  private:
    const Rows<T>& rows_;
    Mask mask_;
    int width_;
    Aligned<T> values_, masks_, value_lanes_, mask_lanes_;
};

/// The nearest centers of a block: upper bounds of the squared distances to them, and lower bounds
/// of those to all others.
template <class T>
struct MaskedNearest {
    int32_t label[P<T>];
    T first[P<T>], second[P<T>];
};

/// Centers, and the rounding of their scores.
template <class T>
class MaskedCenters {
  public:
    MaskedCenters(const T* centers, int k, int d)
        : centers_(centers),
          k_(k),
          d_(d),
          twice_(int64_t(k) * d),
          squares_(int64_t(k) * d),
          rounding_(k) {
        // As in `Rows._compare_centers` of data/rows.py: a score is at most 2 (d + 8) eps |c|^2 and
        // (d + 8) eps |x|^2 from the true one. Here |x|^2 is rounded as well, so twice the latter.
        const T unit = 2 * (d + 8) * std::numeric_limits<T>::epsilon();
        for (int j = 0; j < k; j++) {
            T square = 0;
            for (int f = 0; f < d; f++) {
                const T c = centers[int64_t(j) * d + f];
                twice_[int64_t(j) * d + f] = -2 * c, squares_[int64_t(j) * d + f] = c * c;
                square += c * c;
            }
            rounding_[j] = unit * square;
        }
    }

    /// exact(r, j): the squared distance of row r to center j in float64.
    template <class Exact>
    void nearest(const MaskedBlock<T>& block, MaskedNearest<T>& found, Exact exact) {
        V<T> square[2]{}, best[2], next[2], slack[2]{};
        I<T> index[2]{};
        for (int h = 0; h < 2; h++) best[h] = next[h] = splat(std::numeric_limits<T>::max() / 4);
        for (int f = 0; f < d_; f++)
            for (int h = 0; h < 2; h++) {
                const V<T> x = load(block.value(f) + h * W<T>);
                square[h] += x * x;
            }
        int j = 0;
        for (; j + 4 <= k_; j += 4) score<4>(block, j, best, next, slack, index);
        for (; j < k_; j++) score<1>(block, j, best, next, slack, index);
        const T unit = 2 * (d_ + 8) * std::numeric_limits<T>::epsilon();
        const T tiny = 2 * (d_ + 8) * std::numeric_limits<T>::min();
        for (int h = 0; h < 2; h++) {
            const V<T> of_row = square[h] * unit + tiny;
            const V<T> limit = best[h] + 2 * (slack[h] + of_row);
            store(found.first + h * W<T>, best[h] + 2 * slack[h] + of_row + square[h]);
            store(found.second + h * W<T>, next[h] - of_row + square[h]);
            const V<T> gap = next[h] - limit;
            for (int l = 0; l < W<T>; l++) found.label[h * W<T> + l] = int32_t(index[h][l]);
            for (int l = 0; l < W<T> && h * W<T> + l < block.count; l++)
                if (!(gap[l] > 0))
                    compare(h * W<T> + l, limit[l], of_row[l], square[h][l], block, found, exact);
        }
    }

    const T* center(int j) const { return centers_ + int64_t(j) * d_; }

  private:
    /// The least score so far, less its rounding; the next one, and where the least one was.
    template <int J>
    void score(const MaskedBlock<T>& block, int first, V<T> (&best)[2], V<T> (&next)[2],
               V<T> (&slack)[2], I<T> (&index)[2]) const {
        V<T> s[J][2];
        for (int j = 0; j < J; j++) s[j][0] = s[j][1] = splat(-rounding_[first + j]);
        const T *twice = &twice_[int64_t(first) * d_], *squares = &squares_[int64_t(first) * d_];
        for (int f = 0; f < d_; f++) {
            V<T> x[2], m[2];
            for (int h = 0; h < 2; h++)
                x[h] = load(block.value(f) + h * W<T>), m[h] = load(block.mask(f) + h * W<T>);
#pragma GCC unroll 4
            for (int j = 0; j < J; j++)
                for (int h = 0; h < 2; h++) {
                    s[j][h] += x[h] * twice[j * d_ + f];
                    s[j][h] += m[h] * squares[j * d_ + f];
                }
        }
        for (int j = 0; j < J; j++)
            for (int h = 0; h < 2; h++) {
                const I<T> less = s[j][h] < best[h];
                next[h] = min<T>(next[h], max<T>(s[j][h], best[h]));
                best[h] = less ? s[j][h] : best[h];
                slack[h] = less ? splat(rounding_[first + j]) : slack[h];
                index[h] = less ? I<T>{} + (first + j) : index[h];
            }
    }

    /// Rounding could decide: by differences, among all centers that are not above the limit.
    template <class Exact>
    void compare(int r, T limit, T of_row, T square, const MaskedBlock<T>& block,
                 MaskedNearest<T>& found, Exact exact) const {
        double best = std::numeric_limits<double>::max(), other = best;
        for (int j = 0; j < k_; j++) {
            T score = -rounding_[j];
            const T *x = block.row(r), *there = block.row_mask(r);
            for (int f = 0; f < d_; f++)
                score +=
                    x[f] * twice_[int64_t(j) * d_ + f] + there[f] * squares_[int64_t(j) * d_ + f];
            if (score > limit) continue;
            const double away = exact(r, j);
            if (away < best)
                other = best, best = away, found.label[r] = j;
            else if (away < other)
                other = away;
        }
        // Centers above the limit are above the lower bound of the limit. A sum in another order
        // may be above it too, by as much as its rounding, which the bounds below allow for.
        found.first[r] = T(best * (1 + 1e-6));
        found.second[r] = std::min(T(other * (1 - 1e-6)), limit - 2 * of_row + square);
    }

    const T* centers_;
    int k_, d_;
    Aligned<T> twice_, squares_, rounding_;
};

/// K-means iterations over observed values.
template <class T>
class Masked {
  public:
    Masked(const Rows<T>& rows, int k)
        : rows_(rows), k_(k), d_(rows.d), totals_(size()), upper_(rows.n), lower_(rows.n) {}

    int k() const { return k_; }

    /// Where numbers begin in the totals: sums (k, d), counts (k, d), numbers of observed values
    /// (k, d), masses (k), numbers of rows (k), the sum of w f |x|^2, and changed labels.
    int64_t at(int part) const { return part * int64_t(k_) * d_; }
    int64_t masses() const { return at(3); }
    int64_t square() const { return at(3) + 2 * k_; }
    int64_t size() const { return square() + 2; }

    /// Labels for these centers, and the totals.
    const Numbers& step(ThreadPool& pool, const Mask& mask, const T* centers, int32_t* labels,
                        int32_t* previous, bool fresh) {
        const bool first = fresh || last_.empty();
        if (first) std::fill(totals_.begin(), totals_.end(), 0.0);
        std::vector<double> moved(k_);
        double farthest = 0, next = 0;
        int mover = 0;
        for (int j = 0; j < k_ && !first; j++) {
            double square = 0;
            for (int f = 0; f < d_; f++) {
                const double by = double(centers[int64_t(j) * d_ + f]) - last_[int64_t(j) * d_ + f];
                square += by * by;
            }
            moved[j] = std::sqrt(square) * (1 + 1e-6);
            if (moved[j] > farthest)
                next = farthest, farthest = moved[j], mover = j;
            else
                next = std::max(next, moved[j]);
        }
        const MaskedCenters<T> packed(centers, k_, d_);
        const Numbers changes = fold(pool, rows_, size(), [&](Range unit) {
            rows_.prefetch_after(unit.start, unit.stop);
            return [&, centers = packed, block = MaskedBlock<T>(rows_, mask),
                    found = MaskedNearest<T>()](Numbers& sum, Range leaf) mutable {
                int64_t open[P<T>];
                int count = 0;
                for (int64_t i = leaf.start; i < leaf.stop; i++) {
                    const int32_t old = previous[i];
                    if (!first) loosen(i, moved[old], old == mover ? next : farthest);
                    if (!first && upper_[i] < lower_[i])
                        labels[i] = old;
                    else
                        open[count++] = i;
                    if (count < P<T> && (i + 1 < leaf.stop || count == 0)) continue;
                    block.gather(open, count);
                    centers.nearest(block, found, [&](int r, int j) {
                        return block.away(r, block.row(r), centers.center(j));
                    });
                    for (int r = 0; r < count; r++)
                        note(sum, block, r, open[r], found, labels, previous, first);
                    count = 0;
                }
            };
        });
        for (int64_t at = 0; at <= square(); at++) totals_[at] += changes[at];
        totals_[square() + 1] = changes[square() + 1];
        clear_unobserved();
        last_.assign(centers, centers + int64_t(k_) * d_);
        return totals_;
    }

  private:
    /// The label of a row, its bounds, and how it changes the totals.
    void note(Numbers& sum, const MaskedBlock<T>& block, int r, int64_t i,
              const MaskedNearest<T>& found, int32_t* labels, int32_t* previous, bool first) {
        const int32_t label = found.label[r], old = previous[i];
        upper_[i] =
            std::sqrt(std::max<T>(found.first[r], 0)) * T(1 + 4e-7) + std::numeric_limits<T>::min();
        lower_[i] = std::sqrt(std::max<T>(found.second[r], 0)) * T(1 - 4e-7);
        labels[i] = previous[i] = label;
        const double weight = rows_.weight(i);
        sum[square() + 1] += label != old && weight > 0;
        if (first) {
            double own = 0;
            for (int f = 0; f < d_; f++) own += double(block.row(r)[f]) * block.row(r)[f];
            sum[square()] += weight * block.factor[r] * own;
        }
        if (first || label != old) add(sum, block, r, label, weight);
        if (!first && label != old) add(sum, block, r, old, -weight);
    }

    /// Own and other centers have moved by so much, or less.
    void loosen(int64_t i, double own, double others) {
        upper_[i] = T((upper_[i] + own) * (1 + 4e-7));
        const double less = lower_[i] - others;
        lower_[i] = T(less - 4e-7 * (lower_[i] + others));
    }

    void add(Numbers& sum, const MaskedBlock<T>& block, int r, int label, double weight) const {
        const double share = weight * block.factor[r], one = (weight > 0) - (weight < 0);
        const T *x = block.row(r), *there = block.row_mask(r);
        double* sums = &sum[int64_t(label) * d_];
        double *counts = sums + at(1), *seen = sums + at(2);
        for (int f = 0; f < d_; f++) {
            sums[f] += share * x[f];
            counts[f] += share * there[f];
            seen[f] += one * there[f];
        }
        sum[masses() + label] += weight;
        sum[masses() + k_ + label] += one;
    }

    /// What adding and subtracting the same rows leaves is exactly 0 where no value is observed.
    void clear_unobserved() {
        for (int64_t at = 0; at < this->at(1); at++)
            if (totals_[this->at(2) + at] == 0) totals_[at] = totals_[this->at(1) + at] = 0;
        for (int j = 0; j < k_; j++)
            if (totals_[masses() + k_ + j] == 0) totals_[masses() + j] = 0;
    }

    const Rows<T>& rows_;
    int k_, d_;
    Numbers totals_;
    std::vector<T> upper_, lower_, last_;
};

template <class T>
Mask mask_of(const Workspace<T>& work, Call& call) {
    const int d = work.rows.d;
    const auto observed = call.in<uint8_t>("observed", "(n, d)", {work.rows.n, d});
    return {observed, d, call.flag("scaled")};
}

/// Sums (k, d), counts (k, d), masses (k) and the sum of w f |x|^2 by nearest center; labels.
/// Returns the number of changed labels.
template <class T>
void run_masked_sums(Workspace<T>& work, Call& call) {
    const auto centers = call.in<T>("centers", "(k, d)", {ANY, work.rows.d});
    const int k = int(centers.shape[0]), d = work.rows.d;
    int32_t *labels = work.labels(call), *previous = work.previous(call);
    const Mask mask = mask_of(work, call);
    double* sums = call.out<double>("sums", "(k, d)", {k, d});
    double* counts = call.out<double>("counts", "(k, d)", {k, d});
    double* masses = call.out<double>("masses", "(k)", {k});
    double* square = call.out<double>("square", "(1)", {1});
    const bool fresh = call.flag("fresh");
    if (work.masked == nullptr || work.masked->k() != k)
        work.masked = std::make_unique<Masked<T>>(work.rows, k);
    const Masked<T>& masked = *work.masked;
    const Numbers& found =
        work.masked->step(work.pool, mask, centers.data, labels, previous, fresh);
    std::copy_n(&found[0], int64_t(k) * d, sums);
    std::copy_n(&found[masked.at(1)], int64_t(k) * d, counts);
    std::copy_n(&found[masked.masses()], k, masses);
    *square = found[masked.square()];
    call.results = {int64_t(found[masked.square() + 1])};
}

/// Labels and distances over observed values, by the centers `returned`, of which `centers` are
/// rounded ones; of each cluster the sum of w times the squared distance, and the mass. `centered`:
/// `returned` are relative to the origin.
template <class T>
void run_masked_distances(Workspace<T>& work, Call& call) {
    const Rows<T>& rows = work.rows;
    const auto centers = call.in<T>("centers", "(k, d)", {ANY, rows.d});
    const int k = int(centers.shape[0]), d = rows.d;
    const auto returned = call.in<double>("returned", "(k, d)", {k, d});
    int32_t* labels = work.labels(call);
    T* distances = work.distances(call);
    const Mask mask = mask_of(work, call);
    const bool centered = call.flag("centered");
    double* spread = call.out<double>("spread", "(k)", {k});
    double* masses = call.out<double>("masses", "(k)", {k});
    const MaskedCenters<T> packed(centers.data, k, d);
    const Numbers sums = fold(work.pool, rows, 2 * k, [&](Range unit) {
        rows.prefetch_after(unit.start, unit.stop);
        return [&, own = packed, block = MaskedBlock<T>(rows, mask), found = MaskedNearest<T>(),
                reader = ExactReader<T>(rows)](Numbers& sum, Range leaf) mutable {
            int64_t open[P<T>];
            for (int64_t i = leaf.start; i < leaf.stop; i += P<T>) {
                const int count = int(std::min<int64_t>(P<T>, leaf.stop - i));
                for (int r = 0; r < count; r++) open[r] = i + r;
                block.gather(open, count);
                const auto exact = [&](int r, int j) {
                    const double* center = returned.data + int64_t(j) * d;
                    return block.away(r, reader.read(i + r, centered), center);
                };
                own.nearest(block, found, exact);
                for (int r = 0; r < count; r++) {
                    const int32_t label = found.label[r];
                    const double away = exact(r, label) * block.factor[r];
                    labels[i + r] = label, distances[i + r] = T(away);
                    sum[label] += rows.weight(i + r) * away;
                    sum[k + label] += rows.weight(i + r);
                }
            }
        };
    });
    std::copy_n(sums.begin(), k, spread);
    std::copy_n(sums.begin() + k, k, masses);
}

/// Finds NaN in points (n, d) and replaces it by the means of the columns; observed (n, d) is 0
/// there. missing: the number of NaN, the number of rows without any value, and the first of those.
/// means: (d), of the values that are observed, 0 for a column without any; counts: (d).
template <class T>
void fill_missing(const T* points, int64_t n, int d, T* filled, uint8_t* observed, double* means,
                  int64_t* counts, int64_t* missing) {
    typedef std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> Bits;
    // By bits: kernels are compiled with -ffinite-math-only.
    constexpr Bits infinity = sizeof(T) == 4 ? Bits(0x7f800000u) : Bits(0x7ff0000000000000u);
    constexpr Bits sign = Bits(1) << (8 * sizeof(T) - 1);
    std::fill_n(means, d, 0.0), std::fill_n(counts, d, 0), std::fill_n(missing, 3, 0);
    constexpr int64_t together = 256;  // rows whose counts fit into the cache
    for (int64_t start = 0; start < n; start += together)
        for (int64_t i = start; i < std::min(n, start + together); i++) {
            const T* x = points + i * d;
            uint8_t* there = observed + i * d;
            int seen = 0;
            for (int f = 0; f < d; f++) {
                Bits bits;
                std::memcpy(&bits, x + f, sizeof bits);
                there[f] = (bits & ~sign) <= infinity;
                seen += there[f];
            }
            for (int f = 0; f < d; f++) {
                means[f] += there[f] ? double(x[f]) : 0.0;
                counts[f] += there[f];
            }
            missing[0] += d - seen;
            if (seen == 0 && missing[1]++ == 0) missing[2] = i;
        }
    for (int f = 0; f < d; f++) means[f] /= double(std::max<int64_t>(counts[f], 1));
    if (missing[0] == 0) return;
    std::vector<T> fill(means, means + d);
    for (int64_t i = 0; i < n; i++)
        for (int f = 0; f < d; f++)
            filled[i * d + f] = observed[i * d + f] ? points[i * d + f] : fill[f];
}

}  // namespace lloydformer::ISA
