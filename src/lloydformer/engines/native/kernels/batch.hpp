// Many small problems at once, each solved by one thread from its start to its end.
//
// A problem is copied to float64 and centered. All its rows are one leaf: sums are added in row
// order. The rules are those of iterate.hpp.
#pragma once

#include "iterate.hpp"
#include "measure.hpp"
#include "moments.hpp"
#include "seeding.hpp"
#include "session.hpp"

namespace lloydformer::ISA {

/// One problem of a batch, in float64 and centered. All its rows are one leaf of the tree of sums.
class BatchProblem {
  public:
    BatchProblem(const Batch& all, int64_t number)
        : all_(all),
          n_(all.n),
          d_(all.d),
          k_(all.k),
          weights_(all.weights == nullptr ? nullptr : all.weights + number * n_),
          centers_(all.centers + number * k_ * d_),
          labels_(all.labels + number * n_),
          points_(int64_t(n_) * d_),
          origin_(d_),
          previous_(n_, -1),
          draws_(all.draws == nullptr ? nullptr : all.draws + number * k_ * all.trials) {
        if (all.single)
            copy(static_cast<const float*>(all.points) + number * n_ * d_);
        else
            copy(static_cast<const double*>(all.points) + number * n_ * d_);
    }

    void solve(double& inertia, int64_t& n_iter) {
        Rows<double> rows(points_.data(), n_, d_, n_, origin_.data(), nullptr, nullptr, weights_,
                          all_.directions);
        ThreadPool alone(1);
        const Numbers moment = moments(alone, rows);
        double spread = moment[2] / moment[1];
        for (int f = 0; f < d_; f++)
            spread -= (moment[3 + f] / moment[1]) * (moment[3 + f] / moment[1]);
        const double tolerance = all_.tol * std::max(spread, 0.0) / d_;
        rows.largest_square = all_.directions ? 1 : moment[2];  // the sum is an upper bound
        if (draws_ != nullptr)
            seed(alone, rows);
        else
            for (int j = 0; j < k_; j++)
                for (int f = 0; f < d_; f++) centers_[j * d_ + f] -= origin_[f];
        Lloyd<double> lloyd(rows, k_, 1, false);
        LloydLoop<DenseSteps<double>> loop({rows, lloyd}, centers_, labels_, previous_.data());
        n_iter = loop.run(alone, {tolerance, all_.max_iter}, nullptr, true).count;
        inertia = finish(alone, rows);
    }

  private:
    template <class T>
    void copy(const T* x) {
        for (int64_t i = 0; i < int64_t(n_) * d_; i++) points_[i] = x[i];
        for (int f = 0; f < d_ && !all_.directions; f++) {
            T low = HUGE_SCORE<T>, high = -HUGE_SCORE<T>;
            for (int i = 0; i < n_; i++)
                if (weights_ == nullptr || weights_[i] > 0)
                    low = std::min(low, x[i * d_ + f]), high = std::max(high, x[i * d_ + f]);
            const T half = (high - low) / 2, quantum = std::exp2(std::floor(std::log2(half)));
            origin_[f] = high > low ? std::nearbyint((low + half) / quantum) * quantum : low;
        }
    }

    /// Greedy k-means++; where no mass is left, the first seed is repeated.
    void seed(ThreadPool& alone, const Rows<double>& rows) {
        std::vector<double> distances(n_), row(rows.width);
        std::vector<int64_t> chosen(k_, first(rows, draws_[0]));
        Seeding<double>(rows).choose(alone, chosen.data(), k_, draws_ + all_.trials, all_.trials,
                                     distances.data(), labels_);
        for (int j = 0; j < k_; j++) {
            rows.read(chosen[j], row.data());
            std::copy_n(row.data(), d_, centers_ + int64_t(j) * d_);
        }
    }

    /// The point at which the running sum of weights exceeds a fraction of the total.
    int64_t first(const Rows<double>& rows, double fraction) const {
        std::vector<double> reached(n_);
        double sum = 0;
        for (int i = 0; i < n_; i++) reached[i] = sum += rows.weight(i);
        const auto last = std::lower_bound(reached.begin(), reached.end(), sum);
        const auto at = std::upper_bound(reached.begin(), reached.end(), fraction * sum);
        // Checked here: sums that are NaN or infinite have no order.
        return std::min<int64_t>(std::min(at, last) - reached.begin(), n_ - 1);
    }

    /// The last assignment; undoes the centering of the centers. Returns the inertia.
    double finish(ThreadPool& alone, const Rows<double>& rows) {
        std::vector<double> distances(n_);
        const PackedCenters<double> packed(centers_, k_, d_);
        const Numbers found = measure(alone, rows, packed, labels_, distances.data(), false);
        const double inertia = std::accumulate(found.begin(), found.begin() + k_, 0.0);
        for (int j = 0; j < k_; j++)
            for (int f = 0; f < d_; f++) centers_[j * d_ + f] += origin_[f];
        return all_.directions ? inertia / 2 : inertia;
    }

    const Batch& all_;
    int n_, d_, k_;
    const double* weights_;
    double* centers_;
    int32_t* labels_;
    std::vector<double> points_, origin_;
    std::vector<int32_t> previous_;
    const double* draws_;
};

}  // namespace lloydformer::ISA
