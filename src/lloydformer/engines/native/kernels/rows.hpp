// Rows of points, transformed when they are read, and blocks with one point in each SIMD lane.
//
// The caller's memory is never written, and never read beyond its last row. A row has the same
// bits however it is read: by itself, in a block or transposed.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "simd.hpp"

namespace lloydformer::ISA {

/// Points in a block: two vectors, so that each number of a center is loaded once for both.
template <class T>
constexpr int P = 2 * W<T>;

/// Memory that is read next, prefetched share by share while something else is computed.
class Prefetch {
  public:
    Prefetch() = default;
    Prefetch(const void* from, const void* to)
        : at_(static_cast<const char*>(from)), end_(static_cast<const char*>(to)) {
        // Chosen by hand: up to 512 bytes the processor prefetches by itself, and more than 4 KiB
        // would push other data out of the first cache, so that they go to the second one.
        const int64_t few = 8 * LINE, many = 64 * LINE;
        if (end_ - at_ <= few) end_ = at_;
        near_ = end_ - at_ <= many;
        share_ = end_ - at_;
    }

    /// Cuts the memory into so many shares.
    void share_among(int64_t count) {
        share_ = (end_ - at_) / std::max<int64_t>(1, count) / LINE * LINE + LINE;
    }

    /// Prefetches the next share.
    void advance() {
        for (const char* stop = std::min(end_, at_ + share_); at_ < stop; at_ += LINE)
            near_ ? __builtin_prefetch(at_, 0, 3) : __builtin_prefetch(at_, 0, 2);
    }

  private:
    static constexpr int64_t LINE = 64;  // bytes
    const char *at_ = nullptr, *end_ = nullptr;
    int64_t share_ = 0;
    bool near_ = true;
};

class Int8Rows;

/// When rows are compared with centers by screening (screening.hpp): where it is faster, never, or
/// always. The last two are for tests; labels are the same.
enum class Screening { automatic, never, always };

/// Points (n, d): scaled, then centered at an origin, or divided by their norms.
template <class T>
class Rows {
  public:
    /// `origin`, `shift`, `scale` and `weights` may be null.
    Rows(const T* points, int64_t n, int d, int64_t leaf, const T* origin, const T* shift,
         const T* scale, const double* weights, bool directions, bool mapped = false)
        : n(n),
          leaf(leaf),
          d(d),
          width(padded<T>(d)),
          points_(points),
          weights_(weights),
          directions_(directions),
          divide_(directions),
          mapped_(mapped),
          scaled_(scale != nullptr),
          origin_(width),
          shift_(width),
          factor_(width) {
        for (int f = 0; f < d; f++) {
            origin_[f] = origin == nullptr ? 0 : origin[f];
            shift_[f] = shift == nullptr ? 0 : shift[f];
            factor_[f] = scale == nullptr ? 1 : 1 / scale[f];
        }
        for (int l = 0; l < W<T>; l++) is_feature_[l] = d - (width - W<T>) > l ? -1 : 0;
    }

    /// Other rows that are transformed like `like`: n of them, without weights.
    Rows(const Rows& like, const T* points, int64_t n)
        : n(n),
          leaf(n),
          d(like.d),
          width(like.width),
          largest_square(like.largest_square),
          screening(like.screening),
          points_(points),
          weights_(nullptr),
          directions_(like.directions_),
          divide_(like.divide_),
          mapped_(false),
          scaled_(like.scaled_),
          origin_(like.origin_),
          shift_(like.shift_),
          factor_(like.factor_),
          is_feature_(like.is_feature_) {}

    const int64_t n, leaf;  // rows in all, and in a leaf of the tree of sums
    const int d, width;     // features, and these padded to whole vectors
    T largest_square = 0;   // upper bound of |x|^2
    Screening screening = Screening::automatic;
    const Int8Rows* int8 = nullptr;  // a copy of all rows in int8, if there is one

    /// Row i after the transformation, padded with zeros.
    void read(int64_t i, T* out) const {
        const T* x = points_ + i * d;
        if (i * d + width > n * d) x = std::copy_n(x, d, out) - d;  // do not read past the end
        for (int f = 0; f < width; f += W<T>) {
            V<T> v = load(x + f);
            if (scaled_) v = (v - load(&shift_[f])) * load(&factor_[f]);
            v -= load(&origin_[f]);
            store(out + f, f + W<T> <= d ? v : (V<T>)((I<T>)v & is_feature_));
        }
        if (divide_) normalise(out);
    }

    /// Row i in float64, padded with zeros. It is scaled or divided by its norm in T, if rows are;
    /// others are the stored numbers, without rounding. `centered`: less the origin, which rounds
    /// by at most 2^-53 of the result. `scratch`: (width).
    void read_exactly(int64_t i, bool centered, T* scratch, double* out) const {
        const T* x = points_ + i * d;
        if (divide_) {
            read(i, scratch), x = scratch;
        } else if (scaled_) {
            for (int f = 0; f < d; f++) scratch[f] = (x[f] - shift_[f]) * factor_[f];
            x = scratch;
        }
        int f = 0;
        for (; f + W<double> <= d; f += W<double>) {
            const V<double> v = as_doubles(x + f);
            store(out + f, centered ? v - as_doubles(&origin_[f]) : v);
        }
        for (; f < d; f++) out[f] = centered ? double(x[f]) - origin_[f] : double(x[f]);
        std::fill(out + d, out + padded<double>(d), 0.0);
    }

    /// These rows, read from a copy (n, d) that holds them as `read` returns them.
    Rows read_from(const T* copy) const {
        Rows rows = *this;
        rows.points_ = copy;
        rows.mapped_ = rows.scaled_ = rows.divide_ = false;
        rows.int8 = nullptr;
        std::fill(rows.origin_.begin(), rows.origin_.end(), 0);
        return rows;
    }

    /// Asks the system to load the rows behind a range from disk, twice its length, as ranges are
    /// handed out in order and the next one may begin before this one ends.
    void prefetch_after([[maybe_unused]] int64_t start, [[maybe_unused]] int64_t stop) const {
#if defined(__unix__) || defined(__APPLE__)
        if (!mapped_ || stop >= n) return;
        const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
        const uintptr_t from = reinterpret_cast<uintptr_t>(points_ + stop * d) / page * page;
        const uintptr_t to =
            reinterpret_cast<uintptr_t>(points_ + std::min(n, stop + 2 * (stop - start)) * d);
        madvise(reinterpret_cast<void*>(from), to - from,
                MADV_WILLNEED);  // only a hint: errors are ignored
#endif
    }

    /// A block of rows, to prefetch.
    Prefetch block(int64_t start) const {
        return {points_ + std::min(n, start) * d, points_ + std::min(n, start + P<T>) * d};
    }

    /// Prefetches row i into the cache.
    void prefetch(int64_t i) const {
        const char* x = reinterpret_cast<const char*>(points_ + i * d);
        for (size_t byte = 0; byte < std::min<size_t>(512, d * sizeof(T)); byte += 64)
            __builtin_prefetch(x + byte);
    }

    /// Transposes P rows from `start` on as they are read: feature by feature, P numbers each.
    /// Precondition: transposable(start).
    void read_transposed(int64_t start, T* out) const {
        constexpr int step = 16 / sizeof(T);
        for (int f = 0; f < d; f += step)
            for (int half = 0; half < P<T>; half += W<T>) {
                T* to = out + f * P<T> + half;
                transpose(points_ + (start + half) * d + f, d, to, P<T>);
                for (int g = 0; g < step; g++) {
                    const V<T> v = load(to + g * P<T>);
                    store(to + g * P<T>, v - origin_[f + g]);
                }
            }
    }

    /// Centering is the only transformation, and nothing is read past the end.
    bool transposable(int64_t start) const {
        constexpr int step = 16 / sizeof(T);
        return !scaled_ && !divide_ && (start + P<T>)*d + step <= n * d;
    }

    bool directions() const { return directions_; }
    T origin(int f) const { return origin_[f]; }

    /// Copies row i as it is stored, without the transformation.
    void copy(int64_t i, T* out) const { std::copy_n(points_ + i * d, d, out); }

    /// The rows in the memory of the caller; null if they are scaled or divided by their norms.
    const T* stored() const { return scaled_ || divide_ ? nullptr : points_; }
    bool weighted() const { return weights_ != nullptr; }

    double weight(int64_t i) const { return weights_ == nullptr ? 1.0 : weights_[i]; }

  private:
    /// Divides by the largest number first, so that squares neither overflow nor vanish. A power of
    /// two comes before that where the inverse of the largest number would overflow or vanish.
    void normalise(T* row) const {
        constexpr T small = std::numeric_limits<T>::min(),
                    root = sizeof(T) == 4 ? T(0x1p64) : T(0x1p512);
        T most = largest(row);
        if (most > 0 && (most < 4 * small || most > 1 / (4 * small))) {
            multiply(row, most < 1 ? root : 1 / root);
            most = largest(row);
        }
        multiply(row, most > 0 ? 1 / most : 0);
        const T square = dot(row, row, width);
        multiply(row, square > 0 ? 1 / std::sqrt(square) : 0);
    }

    T largest(const T* row) const {
        V<T> found{};
        for (int f = 0; f < width; f += W<T>)
            found = max<T>(found, max<T>(load(row + f), -load(row + f)));
        return -least<T>(-found);
    }

    void multiply(T* row, T factor) const {
        for (int f = 0; f < width; f += W<T>) store(row + f, load(row + f) * factor);
    }

    const T* points_;
    const double* weights_;
    bool directions_, divide_, mapped_, scaled_;  // divide_: by the norm, when a row is read
    std::vector<T> origin_, shift_, factor_;
    I<T> is_feature_{};  // mask of the last vector of a row
};

/// Reads single rows in float64, for one thread.
template <class T>
class ExactReader {
  public:
    explicit ExactReader(const Rows<T>& from)
        : from_(&from), scratch_(from.width), row_(padded<double>(from.d)) {}

    /// `Rows::read_exactly`; valid until the next call.
    const double* read(int64_t i, bool centered) {
        from_->read_exactly(i, centered, scratch_.data(), row_.data());
        return row_.data();
    }

  private:
    const Rows<T>* from_;
    Aligned<T> scratch_;
    Aligned<double> row_;
};

/// P points: as rows, and transposed with one point in each lane.
template <class T>
class PointBlock {
  public:
    explicit PointBlock(const Rows<T>& from)
        : from_(&from),
          rows_(P<T> * from.width),
          lanes_((from.d + 3) / 4 * 4 * P<T>),
          one_(from.width),
          exact_(from) {}

    /// Reads up to P rows from `start` on.
    void read(int64_t start, int64_t stop) {
        start_ = start;
        count = static_cast<int>(std::min<int64_t>(P<T>, stop - start));
        transposed_ = count == P<T> && from_->transposable(start);
        if (!transposed_) return read_rows(start, stop);
        from_->read_transposed(start, lanes_.data());
    }

    /// The same, always with padded rows.
    void read_rows(int64_t start, int64_t stop) {
        start_ = start;
        count = static_cast<int>(std::min<int64_t>(P<T>, stop - start));
        transposed_ = false;
        for (int r = 0; r < count; r++) from_->read(start + r, &rows_[r * from_->width]);
        transpose_rows();
    }

    /// Rows from `start` on that were read elsewhere, padded; there are no lanes.
    void view(int64_t start, const T* rows, int how_many) {
        start_ = start;
        count = how_many;
        transposed_ = false;
        viewed_ = rows;
    }

    /// Up to P rows from `start` on, which are read when they are asked for; there are no lanes.
    void defer(int64_t start, int64_t stop) {
        start_ = start;
        count = static_cast<int>(std::min<int64_t>(P<T>, stop - start));
        transposed_ = true;
    }

    /// Reads rows by their numbers.
    void gather(const int64_t* rows, int how_many) {
        start_ = -1;
        count = how_many;
        transposed_ = false;
        for (int r = 0; r < count; r++)
            from_->read(gathered_[r] = rows[r], &rows_[r * from_->width]);
        transpose_rows();
    }

    /// A padded row of the block; valid until the next call.
    const T* row(int r) {
        if (viewed_ != nullptr) return viewed_ + r * from_->width;
        if (!transposed_) return &rows_[r * from_->width];
        from_->read(start_ + r, one_.data());
        return one_.data();
    }

    /// A row of the block in float64 (`Rows::read_exactly`); valid until the next call.
    const double* exact_row(int r, bool centered) { return exact_.read(number(r), centered); }

    /// The number of a row of the block.
    int64_t number(int r) const { return start_ < 0 ? gathered_[r] : start_ + r; }

    const T* lanes() const { return lanes_.data(); }  // feature by feature, P numbers each

    /// |x|^2 of each point.
    void squares(T (&out)[P<T>]) const {
        V<T> sum[2]{};
        for (int f = 0; f < from_->d; f++)
            for (int h = 0; h < 2; h++) {
                const V<T> x = load(&lanes_[f * P<T> + h * W<T>]);
                sum[h] += x * x;
            }
        for (int h = 0; h < 2; h++) store(out + h * W<T>, sum[h]);
    }

    int count = 0;  // points read; the lanes behind them hold old values

  private:
    void transpose_rows() {
        constexpr int step = 16 / sizeof(T);
        const int stride = from_->width;
        for (int f = 0; f < from_->d; f += step)
            for (int half = 0; half < P<T>; half += W<T>)
                transpose(&rows_[half * stride + f], stride, &lanes_[f * P<T> + half], P<T>);
    }

    const Rows<T>* from_;
    int64_t start_ = 0;         // number of the first row; -1: they are `gathered_`
    int64_t gathered_[P<T>]{};  // row numbers
    bool transposed_ = false;   // as it was read: rows are read again if they are needed
    const T* viewed_ = nullptr;
    Aligned<T> rows_, lanes_, one_;
    ExactReader<T> exact_;
};

}  // namespace lloydformer::ISA
