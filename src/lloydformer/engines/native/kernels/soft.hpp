// Soft assignment: shares of every point in every cluster, and the sums that they give.
#pragma once

#include "assign.hpp"
#include "fold.hpp"
#include "rounds.hpp"

namespace lloydformer::ISA {

/// e^x for x <= 0, by 2^n times a Taylor polynomial; 0 where it is below the smallest number.
template <class T>
inline V<T> exponential(V<T> x) {
    constexpr bool single = sizeof(T) == sizeof(float);
    constexpr int terms = single ? 7 : 13, mantissa = single ? 23 : 52, bias = single ? 127 : 1023;
    constexpr T lowest = single ? -87.0 : -708.0,
                magic = single ? T(12582912.0) : T(6755399441055744.0);  // 1.5 * 2^mantissa
    constexpr T high = single ? T(0.693359375) : T(0.6931471803691238),
                low = T(0.6931471805599453 - double(high));
    const I<T> gone = x < splat(lowest);
    x = max<T>(x, splat(lowest));
    V<T> n = x * T(1.4426950408889634) + magic;  // the addition rounds to a whole number
    const I<T> power = ((I<T>)n - (I<T>)splat(magic) + bias) << mantissa;
    n -= magic;
    const V<T> r = (x - n * high) - n * low;
    V<T> series = splat(T(1));
    for (int term = terms; term > 0; term--) series = series * r * (T(1) / term) + T(1);
    return gone ? V<T>{} : series * (V<T>)power;
}

/// Sums (k, d), masses (k), energy and changes of soft-max shares.
template <class T>
class Softly {
  public:
    Softly(const Rows<T>& rows, const Packed<T>& centers, double gamma, const State& state)
        : rows_(rows), centers_(centers), gamma_(gamma), state_(state) {}

    Numbers operator()(Team& team) const {
        const int64_t size = int64_t(centers_.k) * (rows_.d + 1) + 2;
        return fold(team, rows_.n, size, [&](Numbers& sum, int64_t start, int64_t stop) {
            Part(*this, sum).run(start, stop);
        });
    }

  private:
    class Part;
    const Rows<T>& rows_;
    const Packed<T>& centers_;
    double gamma_;
    State state_;
};

template <class T>
class Softly<T>::Part {
  public:
    Part(const Softly& all, Numbers& sum)
        : all_(all),
          k_(all.centers_.k),
          d_(all.rows_.d),
          width_(all.rows_.width),
          sum_(sum),
          block_(all.rows_),
          shares_(k_ * P<T>),
          sums_(int64_t(k_) * width_),
          masses_(k_) {}

    void run(int64_t start, int64_t stop) {
        constexpr int held = 8;  // blocks whose sums are held in T
        int since = 0;
        all_.rows_.reading(start, stop);
        for (int64_t i = start; i < stop; i += P<T>) {
            block_.read_rows(i, stop);
            share(i);
            gather();
            if (++since == held || i + P<T> >= stop) flush(), since = 0;
        }
    }

  private:
    void share(int64_t start) {
        const int64_t energy = int64_t(k_) * (d_ + 1);
        const Found<T> found = nearest(block_.lanes(), all_.centers_);
        V<T> total[2]{};
        score_all([&](int j, V<T>(&s)[2]) {
            for (int h = 0; h < 2; h++) {
                const V<T> share = exponential<T>((found.best[h] - s[h]) * T(all_.gamma_));
                total[h] += share;
                store(&shares_[j * P<T> + h * W<T>], share);
            }
        });
        T factor[P<T>]{};
        for (int r = 0; r < block_.count; r++) {
            const int h = r / W<T>, l = r % W<T>;
            const double weight = all_.rows_.weight(start + r);
            const T square = dot(block_.row(r), block_.row(r), width_);
            factor[r] = T(weight / total[h][l]);
            sum_[energy] += weight * (double(square) + found.best[h][l] -
                                      std::log(double(total[h][l])) / all_.gamma_);
            const int32_t label = int32_t(found.index[h][l]);
            all_.state_.labels[start + r] = label;
            sum_[energy + 1] += weight > 0 && label != all_.state_.before[start + r];
        }
        for (int j = 0; j < k_; j++)
            for (int r = 0; r < P<T>; r++) shares_[j * P<T> + r] *= factor[r];
    }

    /// Scores of all centers, one after the other; slots of the last eight may be fewer.
    template <class Each>
    void score_all(Each each) {
        int j = 0;
        for (; j + TOGETHER <= k_; j += TOGETHER) {
            V<T> s[TOGETHER][2];
            score<T, TOGETHER>(block_.lanes(), d_, all_.centers_.eight(j),
                               &all_.centers_.squares[j], s);
            for (int c = 0; c < TOGETHER; c++) each(j + c, s[c]);
        }
        for (int rest = k_ - j, c = 0; c < rest; c++) {
            V<T> s[2] = {splat(all_.centers_.squares[j + c]), splat(all_.centers_.squares[j + c])};
            for (int f = 0; f < d_; f++)
                for (int h = 0; h < 2; h++)
                    s[h] += load(block_.lanes() + f * P<T> + h * W<T>) *
                            all_.centers_.eight(j)[f * rest + c];
            each(j + c, s);
        }
    }

    /// Adds shares times rows: four centers and two vectors of features at a time.
    void gather() {
        int j = 0;
        for (; j + 4 <= k_; j += 4) mix<4>(j);
        for (; j < k_; j++) mix<1>(j);
        for (int c = 0; c < k_; c++)
            masses_[c] += load(&shares_[c * P<T>]) + load(&shares_[c * P<T> + W<T>]);
    }

    template <int J>
    void mix(int j) {
        for (int f = 0; f < width_; f += W<T>) {
            V<T> sum[J];
            for (int c = 0; c < J; c++) sum[c] = load(&sums_[int64_t(j + c) * width_ + f]);
            for (int r = 0; r < block_.count; r++) {
                const V<T> x = load(block_.row(r) + f);
#pragma GCC unroll 4
                for (int c = 0; c < J; c++) sum[c] += x * shares_[(j + c) * P<T> + r];
            }
            for (int c = 0; c < J; c++) store(&sums_[int64_t(j + c) * width_ + f], sum[c]);
        }
    }

    void flush() {
        for (int j = 0; j < k_; j++) {
            for (int f = 0; f < d_; f++)
                sum_[int64_t(j) * d_ + f] += sums_[int64_t(j) * width_ + f];
            sum_[int64_t(k_) * d_ + j] += sum<T>(masses_[j]);
            masses_[j] = V<T>{};
        }
        std::fill(sums_.begin(), sums_.end(), T(0));
    }

    const Softly& all_;
    int k_, d_, width_;
    Numbers& sum_;
    Block<T> block_;
    std::vector<T> shares_, sums_;  // by center: of each point; of each feature
    std::vector<V<T>> masses_;
};

}  // namespace lloydformer::ISA
