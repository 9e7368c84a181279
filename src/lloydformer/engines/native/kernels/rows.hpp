// Points as a fold sees them, and blocks of them with a point in each lane.
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

/// Points in a block: two vectors of lanes, so that each center's number is used twice.
template <class T>
constexpr int P = 2 * W<T>;

/// Points (n, d): scaled, then seen from an origin, or divided by their norms.
template <class T>
class Rows {
  public:
    /// `shift` and `scale` may be null, as may `weights`; so may `origin` of directions.
    Rows(const T* points, int64_t n, int d, const T* origin, const T* shift, const T* scale,
         const double* weights, bool directions, bool mapped = false)
        : n(n),
          d(d),
          width(padded<T>(d)),
          points_(points),
          weights_(weights),
          directions_(directions),
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
        for (int l = 0; l < W<T>; l++) there_[l] = d - (width - W<T>) > l ? -1 : 0;
        if (d < W<T> && !scaled_ && !directions_)
            for (int f = 0; f < P<T> * d; f++) repeated_.push_back(origin_[f % d]);
    }

    const int64_t n;
    const int d, width;
    T farthest = 0;  // the largest |x|^2, or more

    /// Row i as it is seen, padded with zeros.
    void see(int64_t i, T* out) const {
        const T* x = points_ + i * d;
        if (i * d + width > n * d) x = std::copy_n(x, d, out) - d;  // nothing behind the last row
        for (int f = 0; f < width; f += W<T>) {
            V<T> v = load(x + f);
            if (scaled_) v = (v - load(&shift_[f])) * load(&factor_[f]);
            v -= load(&origin_[f]);
            store(out + f, f + W<T> <= d ? v : (V<T>)((I<T>)v & there_));
        }
        if (directions_) normalise(out);
    }

    /// Rows of this range are about to be read: the system may bring those after them from disk.
    void reading([[maybe_unused]] int64_t start, [[maybe_unused]] int64_t stop) const {
#if defined(__unix__) || defined(__APPLE__)
        if (!mapped_ || stop >= n) return;
        const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
        const uintptr_t from = reinterpret_cast<uintptr_t>(points_ + stop * d) / page * page;
        const uintptr_t to =
            reinterpret_cast<uintptr_t>(points_ + std::min(n, stop + 2 * (stop - start)) * d);
        madvise(reinterpret_cast<void*>(from), to - from,
                MADV_WILLNEED);  // advice: no error if not taken
#endif
    }

    /// Row i will be seen soon.
    void fetch(int64_t i) const {
        const char* x = reinterpret_cast<const char*>(points_ + i * d);
        for (size_t byte = 0; byte < std::min<size_t>(512, d * sizeof(T)); byte += 64)
            __builtin_prefetch(x + byte);
    }

    /// Some rows one after the other, without zeros between them: for few features, and only
    /// where rows are seen from an origin and nothing else.
    void see_together(int64_t start, int count, T* out) const {
        const T* x = points_ + start * d;
        int f = 0;
        for (; f + W<T> <= count * d; f += W<T>) store(out + f, load(x + f) - load(&repeated_[f]));
        for (; f < count * d; f++) out[f] = x[f] - repeated_[f];
    }

    bool narrow() const { return !repeated_.empty(); }

    bool directions() const { return directions_; }
    bool weighted() const { return weights_ != nullptr; }

    double weight(int64_t i) const { return weights_ == nullptr ? 1.0 : weights_[i]; }

  private:
    /// The scale of a row is no matter: it is divided by its largest number first.
    void normalise(T* row) const {
        V<T> largest{};
        for (int f = 0; f < width; f += W<T>)
            largest = max<T>(largest, max<T>(load(row + f), -load(row + f)));
        const T most = -least<T>(-largest);
        multiply(row, most > 0 ? 1 / most : 0);
        const T square = dot(row, row, width);
        multiply(row, square > 0 ? 1 / std::sqrt(square) : 0);
    }

    void multiply(T* row, T factor) const {
        for (int f = 0; f < width; f += W<T>) store(row + f, load(row + f) * factor);
    }

    const T* points_;
    const double* weights_;
    bool directions_, mapped_, scaled_;
    std::vector<T> origin_, shift_, factor_, repeated_;
    I<T> there_{};  // which lanes of a row's last vector are features
};

/// P points: their rows one after the other, and the same with a point in each lane.
template <class T>
class Block {
  public:
    explicit Block(const Rows<T>& from)
        : from_(from),
          rows_(P<T> * from.width),
          lanes_((from.d + 3) / 4 * 4 * P<T>),
          one_(from.width) {}

    /// The rows from `start` on, up to P of them.
    void read(int64_t start, int64_t stop) {
        start_ = start;
        count = static_cast<int>(std::min<int64_t>(P<T>, stop - start));
        together_ = from_.narrow();
        if (!together_) return read_rows(start, stop);
        from_.see_together(start, count, rows_.data());
        turn(from_.d);
    }

    /// The same, with padded rows whatever the number of features.
    void read_rows(int64_t start, int64_t stop) {
        count = static_cast<int>(std::min<int64_t>(P<T>, stop - start));
        together_ = false;
        for (int r = 0; r < count; r++) from_.see(start + r, &rows_[r * from_.width]);
        turn(from_.width);
    }

    /// Rows by their numbers.
    void gather(const int64_t* rows, int how_many) {
        count = how_many;
        together_ = false;
        for (int r = 0; r < count; r++) from_.see(rows[r], &rows_[r * from_.width]);
        turn(from_.width);
    }

    /// A row of the block, padded; valid until the next one is asked for.
    const T* row(int r) {
        if (!together_) return &rows_[r * from_.width];
        from_.see(start_ + r, one_.data());
        return one_.data();
    }

    const T* lanes() const { return lanes_.data(); }  // feature by feature, P numbers each

    /// |x|^2 of each point.
    void squares(T (&out)[P<T>]) const {
        V<T> sum[2]{};
        for (int f = 0; f < from_.d; f++)
            for (int h = 0; h < 2; h++) {
                const V<T> x = load(&lanes_[f * P<T> + h * W<T>]);
                sum[h] += x * x;
            }
        for (int h = 0; h < 2; h++) store(out + h * W<T>, sum[h]);
    }

    int count = 0;  // of P; what is in the lanes behind them means nothing

  private:
    void turn(int stride) {
        constexpr int step = 16 / sizeof(T);
        for (int f = 0; f < from_.d; f += step)
            for (int half = 0; half < P<T>; half += W<T>)
                transpose(&rows_[half * stride + f], stride, &lanes_[f * P<T> + half], P<T>);
    }

    const Rows<T>& from_;
    int64_t start_ = 0;
    bool together_ = false;
    Aligned<T> rows_, lanes_, one_;
};

}  // namespace lloydformer::ISA
