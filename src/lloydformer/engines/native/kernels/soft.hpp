// Soft assignment: shares of every point in every cluster, and the sums that they give.
#pragma once

#include "assign.hpp"
#include "exponents.hpp"
#include "fold.hpp"
#include "rounds.hpp"

namespace lloydformer::ISA {

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
    /// The share of every point in every cluster, times its weight.
    void share(int64_t start) {
        const Found<T> found = score_all();
        V<T> total[2]{};
        for (int j = 0; j < k_; j++)
            for (int h = 0; h < 2; h++) {
                T* at = &shares_[j * P<T> + h * W<T>];
                const V<T> share = exponential<T>((found.best[h] - load(at)) * T(all_.gamma_));
                total[h] += share;
                store(at, share);
            }
        T totals[P<T>], best[P<T>], squares[P<T>], factor[P<T>]{};
        for (int h = 0; h < 2; h++) {
            store(totals + h * W<T>, total[h]);
            store(best + h * W<T>, found.best[h]);
        }
        block_.squares(squares);
        for (int r = 0; r < block_.count; r++) {
            const int32_t label = int32_t(found.index[r / W<T>][r % W<T>]);
            const double weight = all_.rows_.weight(start + r);
            factor[r] = T(weight) / totals[r];
            changed_ += weight > 0 && label != all_.state_.before[start + r];
            all_.state_.labels[start + r] = label;
        }
        note(start, totals, best, squares);
        for (int j = 0; j < k_; j++)
            for (int r = 0; r < P<T>; r++) shares_[j * P<T> + r] *= factor[r];
    }

    /// Adds w (|x|^2 + best - log(total) / gamma). Without weights, the logarithm is taken of the
    /// product of several totals, each at most k.
    void note(int64_t start, const T* totals, const T* best, const T* squares) {
        if (!all_.rows_.weighted() && block_.count == P<T>) {
            constexpr int parts = std::min(8, P<T>);
            for (int r = 0; r < P<T>; r += parts)
                for (int l = 0; l < parts; l++) {
                    energy_[l] += double(squares[r + l]) + double(best[r + l]);
                    product_[l] *= double(totals[r + l]);
                }
            return;
        }
        for (int r = 0; r < block_.count; r++)
            energy_[0] +=
                all_.rows_.weight(start + r) *
                (double(squares[r]) + best[r] - std::log(double(totals[r])) / all_.gamma_);
    }

    /// Scores of all centers, written where the shares will be, and the best of them.
    Found<T> score_all() {
        Found<T> found;
        const Packed<T>& centers = all_.centers_;
        by_eights(0, k_, [&](int first, auto count) {
            V<T> s[count][2];
            score<T, count>(block_.lanes(), d_, centers.eight(first), &centers.squares[first], s);
            for (int j = 0; j < count; j++)
                for (int h = 0; h < 2; h++) store(&shares_[(first + j) * P<T> + h * W<T>], s[j][h]);
            found.see(s, first);
        });
        return found;
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
        double* energy = &sum_[int64_t(k_) * (d_ + 1)];
        for (int l = 0; l < 8; l++) {
            energy[0] += energy_[l] - std::log(product_[l]) / all_.gamma_;
            energy_[l] = 0, product_[l] = 1;
        }
        energy[1] += double(changed_);
        changed_ = 0;
    }

    const Softly& all_;
    int k_, d_, width_;
    Numbers& sum_;
    Block<T> block_;
    std::vector<T> shares_, sums_;  // by center: of each point; of each feature
    std::vector<V<T>> masses_;
    double energy_[8]{}, product_[8]{1, 1, 1, 1, 1, 1, 1, 1};
    int64_t changed_ = 0;
};

}  // namespace lloydformer::ISA
