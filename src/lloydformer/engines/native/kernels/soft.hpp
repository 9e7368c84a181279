// The fold SoftSums: the shares of every point in every cluster, and the sums of shares times
// points.
//
// Exponents are relative to the nearest center, so the largest share of a point is not rounded to
// 0. Sums of a few blocks are added in T and then in float64, in row order within a leaf; the
// number of blocks bounds their rounding error. Labels are those of the best score in T: shares do
// not depend on them.
#pragma once

#include "exponents.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// The buffers of one thread.
template <class T>
class SoftPass {
  public:
    SoftPass(const Rows<T>& rows, const PackedCenters<T>& centers, double gamma, int32_t* labels,
             const int32_t* previous)
        : rows_(rows),
          centers_(centers),
          gamma_(gamma),
          labels_(labels),
          previous_(previous),
          k_(centers.k),
          d_(rows.d),
          width_(rows.width),
          block_(rows),
          shares_(k_ * P<T>),
          sums_(int64_t(k_) * width_),
          masses_(k_) {}

    /// Adds sums (k, d), masses (k), energy and changes of a range.
    void run(Numbers& sum, Range range) {
        // Blocks that are added up in T, at full width, before they are added to float64: few, so
        // that the rounding of T stays near that of a single share.
        constexpr int held = 8;
        int since = 0;
        for (int64_t i = range.start; i < range.stop; i += P<T>) {
            block_.read_rows(i, range.stop);
            share(i);
            gather();
            if (++since == held || i + P<T> >= range.stop) flush(sum), since = 0;
        }
    }

  private:
    /// The share of every point in every cluster, times its weight.
    void share(int64_t start) {
        const BestScores<T> found = score_all();
        const T steepness = T(std::min<double>(gamma_, HUGE_SCORE<T>));
        V<T> total[2]{};
        for (int j = 0; j < k_; j++)
            for (int h = 0; h < 2; h++) {
                T* at = &shares_[j * P<T> + h * W<T>];
                const V<T> share = exponential<T>((found.best[h] - load(at)) * steepness);
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
            const double weight = rows_.weight(start + r);
            factor[r] = T(weight) / totals[r];
            changed_ += weight > 0 && label != previous_[start + r];
            labels_[start + r] = label;
        }
        note(start, totals, best, squares);
        for (int j = 0; j < k_; j++)
            for (int r = 0; r < P<T>; r++) shares_[j * P<T> + r] *= factor[r];
    }

    /// Adds w (|x|^2 + best - log(total) / gamma). Without weights, the logarithm is taken of the
    /// product of several totals, each at most k.
    void note(int64_t start, const T* totals, const T* best, const T* squares) {
        if (!rows_.weighted() && block_.count == P<T>) {
            constexpr int parts = std::min(8, P<T>);
            for (int r = 0; r < P<T>; r += parts)
                for (int l = 0; l < parts; l++) {
                    energy_[l] += double(squares[r + l]) + double(best[r + l]);
                    product_[l] *= double(totals[r + l]);
                }
            return;
        }
        for (int r = 0; r < block_.count; r++)
            energy_[0] += rows_.weight(start + r) *
                          (double(squares[r]) + best[r] - std::log(double(totals[r])) / gamma_);
    }

    /// Writes the scores of all centers to shares_. Returns the best of them.
    BestScores<T> score_all() {
        BestScores<T> found;
        const PackedCenters<T>& centers = centers_;
        by_eights(0, k_, [&](int first, auto count) {
            V<T> s[count][2];
            score<T, count>(block_.lanes(), d_, centers.eight(first), &centers.squares[first], s);
            for (int j = 0; j < count; j++)
                for (int h = 0; h < 2; h++) store(&shares_[(first + j) * P<T> + h * W<T>], s[j][h]);
            found.update(s, first);
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

    void flush(Numbers& sums) {
        for (int j = 0; j < k_; j++) {
            for (int f = 0; f < d_; f++)
                sums[int64_t(j) * d_ + f] += sums_[int64_t(j) * width_ + f];
            sums[int64_t(k_) * d_ + j] += sum<T>(masses_[j]);
            masses_[j] = V<T>{};
        }
        std::fill(sums_.begin(), sums_.end(), T(0));
        double* energy = &sums[int64_t(k_) * (d_ + 1)];
        for (int l = 0; l < 8; l++) {
            energy[0] += energy_[l] - std::log(product_[l]) / gamma_;
            energy_[l] = 0, product_[l] = 1;
        }
        energy[1] += double(changed_);
        changed_ = 0;
    }

    const Rows<T>& rows_;
    const PackedCenters<T>& centers_;
    double gamma_;
    int32_t* labels_;
    const int32_t* previous_;
    int k_, d_, width_;
    PointBlock<T> block_;
    std::vector<T> shares_, sums_;  // (k, P), (k, width)
    std::vector<V<T>> masses_;
    double energy_[8]{}, product_[8]{1, 1, 1, 1, 1, 1, 1, 1};
    int64_t changed_ = 0;
};

/// Sums (k, d) and masses (k) of soft-max shares; energy. `previous` is only read: the caller
/// writes it. Returns the number of changed labels.
template <class T>
void run_soft_sums(Workspace<T>& work, Call& call) {
    const PackedCenters<T> centers = work.centers(call);
    const double gamma = call.number("inverse_temperature");
    int32_t *labels = work.labels(call), *previous = work.previous(call);
    const StepArrays out(call, centers.k, work.rows.d, "energy");
    work.lloyd.reset();
    const int64_t size = int64_t(centers.k) * (work.rows.d + 1) + 2;
    out.fill(fold(work.pool, work.rows, size,
                  [&](Range unit) {
                      work.rows.prefetch_after(unit.start, unit.stop);
                      return [pass = SoftPass<T>(work.rows, centers, gamma, labels, previous)](
                                 Numbers& sum, Range leaf) mutable { pass.run(sum, leaf); };
                  }),
             call);
}

}  // namespace lloydformer::ISA
