// Lloyd's iterations from a start to their end, in one call: for problems so small that going back
// and forth would take longer than they do.
#pragma once

#include "lloyd.hpp"

namespace lloydformer::ISA {

/// When to stop.
struct Until {
    double tolerance;  // of the squared shift of all centers
    int max_iter;
};

/// Moves centers (k, d), in float64, until the stop rule says so.
template <class T>
class Descent {
  public:
    Descent(const Rows<T>& rows, Lloyd<T>& lloyd, double* centers, int k, const State& state)
        : rows_(rows), lloyd_(lloyd), centers_(centers), k_(k), state_(state) {}

    /// Returns the number of iterations. The history gets, of every step, the change of the sum of
    /// w d^2 against that of w |x|^2: it is the objective of the centers that the step began with.
    int run(Team& team, const Until& until, double* history) {
        std::vector<T> rounded(int64_t(k_) * rows_.d);
        for (int step = 1;; step++) {
            std::copy(centers_, centers_ + rounded.size(), rounded.begin());
            Totals totals =
                lloyd_.step(team, rounded.data(), state_.labels, state_.before, step == 1);
            if (history != nullptr) history[step - 1] = less(totals, rounded);
            refill(totals, rounded);
            if (move(totals) <= until.tolerance || totals.changed == 0 || step == until.max_iter)
                return step;
        }
    }

  private:
    /// The sum of w (|c|^2 - 2 x c).
    double less(const Totals& totals, const std::vector<T>& rounded) const {
        double cross = 0, squares = 0;
        for (int j = 0; j < k_; j++)
            for (int f = 0; f < rows_.d; f++) {
                const double c = rounded[j * rows_.d + f];
                cross += totals.sums[j * rows_.d + f] * c;
                squares += totals.masses[j] * c * c;
            }
        return squares - 2 * cross;
    }

    /// Empty clusters take the farthest points, by (distance, row).
    void refill(Totals& totals, const std::vector<T>& rounded) const {
        std::vector<int> lost;
        for (int j = 0; j < k_; j++)
            if (totals.masses[j] == 0) lost.push_back(j);
        if (lost.empty()) return;
        std::vector<T> row(rows_.width), center(rows_.width), away(rows_.n);
        std::vector<int64_t> order(rows_.n);
        for (int64_t i = 0; i < rows_.n; i++) {
            rows_.see(i, row.data());
            std::copy_n(&rounded[int64_t(state_.labels[i]) * rows_.d], rows_.d, center.data());
            away[i] = squared_distance(row.data(), center.data(), rows_.width);
            if (rows_.weight(i) <= 0) away[i] = -1;
            order[i] = i;
        }
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return away[a] > away[b]; });
        for (size_t l = 0; l < lost.size() && away[order[l]] > 0; l++) {
            rows_.see(order[l], row.data());
            totals.add(row.data(), state_.labels[order[l]], -rows_.weight(order[l]));
            totals.add(row.data(), lost[l], rows_.weight(order[l]));
        }
    }

    /// The centers go to the means, or to their directions; how far, squared.
    double move(const Totals& totals) {
        double shift = 0;
        for (int j = 0; j < k_; j++) {
            const double* sum = &totals.sums[int64_t(j) * rows_.d];
            const double length = rows_.directions() ? norm(sum) : totals.masses[j];
            for (int f = 0; f < rows_.d && length > 0; f++) {
                double& c = centers_[int64_t(j) * rows_.d + f];
                const double now = sum[f] / length;
                shift += (now - c) * (now - c);
                c = now;
            }
        }
        return shift;
    }

    double norm(const double* sum) const {
        double square = 0;
        for (int f = 0; f < rows_.d; f++) square += sum[f] * sum[f];
        return std::sqrt(square);
    }

    const Rows<T>& rows_;
    Lloyd<T>& lloyd_;
    double* centers_;
    int k_;
    State state_;
};

}  // namespace lloydformer::ISA
