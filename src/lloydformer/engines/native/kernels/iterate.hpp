// Many iterations of Lloyd's algorithm in one call, with the stop rule and the refill of empty
// clusters of lloydformer.solving.
#pragma once

#include "lloyd.hpp"

namespace lloydformer::ISA {

/// When to stop.
struct StopRule {
    double tolerance;  // of the squared shift of all centers
    int64_t max_iter;
};

/// How many iterations ran, and whether the stop rule ended them: if not, max_iter did.
struct Iterated {
    int64_t count;
    bool settled;
};

/// Moves centers (k, d), in float64, until the stop rule ends it.
template <class T>
class LloydLoop {
  public:
    /// Precondition: k <= n, so that there is a point for every empty cluster.
    LloydLoop(const Rows<T>& rows, Lloyd<T>& lloyd, double* centers, int32_t* labels,
              int32_t* previous)
        : rows_(rows),
          lloyd_(lloyd),
          centers_(centers),
          k_(lloyd.k()),
          labels_(labels),
          previous_(previous) {
        if (k_ > rows.n)
            Call::require(false, "centers",
                          "found " + std::to_string(k_) + " for " + std::to_string(rows.n) +
                              " points; pass at most one for each");
    }

    /// `history` (or null) gets the objective of the centers at the start of every iteration, less
    /// the sum of w |x|^2. fresh, written: as in Lloyd::step, for the first iteration.
    Iterated run(ThreadPool& pool, const StopRule& rule, double* history, bool fresh,
                 bool written = false) {
        std::vector<T> rounded(int64_t(k_) * rows_.d);
        for (int64_t step = 1;; step++) {
            std::copy(centers_, centers_ + rounded.size(), rounded.begin());
            Totals totals = lloyd_.step(pool, rounded.data(), labels_, previous_,
                                        fresh && step == 1, written && step == 1);
            if (history != nullptr) history[step - 1] = relative_objective(totals, rounded);
            refill(totals, rounded);
            const bool settled = move(totals) <= rule.tolerance || totals.changed == 0;
            if (settled || step == rule.max_iter) return {step, settled};
        }
    }

  private:
    /// The sum of w (|c|^2 - 2 x c).
    double relative_objective(const Totals& totals, const std::vector<T>& rounded) const {
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
        std::vector<int> empty;
        for (int j = 0; j < k_; j++)
            if (totals.masses[j] == 0) empty.push_back(j);
        if (empty.empty()) return;
        std::vector<T> row(rows_.width), center(rows_.width), away(rows_.n);
        std::vector<int64_t> order(rows_.n);
        for (int64_t i = 0; i < rows_.n; i++) {
            rows_.read(i, row.data());
            std::copy_n(&rounded[int64_t(labels_[i]) * rows_.d], rows_.d, center.data());
            away[i] = squared_distance(row.data(), center.data(), rows_.width);
            if (rows_.weight(i) <= 0) away[i] = -1;
            order[i] = i;
        }
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return away[a] > away[b]; });
        Totals move(k_, rows_.d);  // rounded before it is added, as in `Lloyd` and in Python
        for (size_t l = 0; l < empty.size() && away[order[l]] > 0; l++) {
            rows_.read(order[l], row.data());
            move.add(row.data(), labels_[order[l]], -rows_.weight(order[l]));
            move.add(row.data(), empty[l], rows_.weight(order[l]));
            totals.take(move);
        }
    }

    /// Moves the centers to the means, or to their directions. Returns the squared shift.
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
    int32_t *labels_, *previous_;
};

/// Lloyd's iterations from centers (k, d) in float64, at most as many as `history` has places.
/// fresh: `previous` holds no labels; if not, they go on from those of the last call. Returns the
/// number of iterations and whether the stop rule ended them.
template <class T>
void run_iterate(Workspace<T>& work, Call& call) {
    constexpr int64_t small = 1 << 18;  // numbers: bounds do not pay
    const auto centers = call.out<double>("centers", "(k, d)", {ANY, work.rows.d});
    const auto history = call.out<double>("history", "(max_iter)", {ANY});
    int32_t *labels = work.labels(call), *previous = work.previous(call);
    const StopRule rule{call.number("tolerance"), history.shape[0]};
    Call::require(rule.max_iter > 0, "history", "pass (max_iter) with max_iter above 0");
    bool fresh = call.flag("fresh");
    Lloyd<T>& lloyd =
        lloyd_for(work, int(centers.shape[0]), fresh, work.rows.n * work.rows.d > small);
    LloydLoop<T> loop(work.rows, lloyd, centers, labels, previous);
    const Iterated found = loop.run(work.pool, rule, history, fresh, work.labels_written);
    work.labels_written = false;
    call.results = {found.count, found.settled};
}

}  // namespace lloydformer::ISA
