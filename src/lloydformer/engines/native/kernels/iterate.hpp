// Many iterations of Lloyd's algorithm in one call (task LloydIterations).
//
// The stop rule and the refill of empty clusters are those of solving/rules.py; change them
// together (tests/solving/test_rules.py compares the two). Centers move in float64, and distances
// are computed to centers that are rounded to the precision of the rows. After each iteration
// labels, previous labels and sums belong together.
#pragma once

#include "farthest.hpp"
#include "lloyd.hpp"

namespace lloydformer::ISA {

/// When to stop.
struct StopRule {
    double tolerance;  // of the squared shift of all centers
    int64_t max_iter;
};

/// The number of iterations that ran; settled: the stop rule ended them, and not max_iter.
struct Iterated {
    int64_t count;
    bool settled;
};

/// Dense rows for `LloydLoop`: one iteration, the distance of a row, and a row in sums.
template <class T>
class DenseSteps {
  public:
    typedef T Number;

    DenseSteps(const Rows<T>& rows, Lloyd<T>& lloyd)
        : rows(rows), k(lloyd.k()), lloyd_(lloyd), row_(rows.width) {}

    const Rows<T>& rows;
    const int k;

    const Totals& step(ThreadPool& pool, const T* centers, int32_t* labels, int32_t* previous,
                       bool fresh, bool written) {
        return lloyd_.step(pool, centers, labels, previous, fresh, written);
    }

    T away(int64_t i, const T* centers, int j) {
        rows.read(i, row_.data());
        return distance_from_own(row_.data(), centers + int64_t(j) * rows.d, rows.d);
    }

    void add(Totals& sums, int64_t i, int label, double weight) {
        rows.read(i, row_.data());
        sums.add(row_.data(), label, weight);
    }

  private:
    Lloyd<T>& lloyd_;
    std::vector<T> row_;
};

/// Moves centers (k, d), in float64, until the stop rule ends it.
template <class Steps>
class LloydLoop {
  public:
    typedef typename Steps::Number T;

    /// Precondition: k <= n, so that there is a point for every empty cluster.
    LloydLoop(Steps steps, double* centers, int32_t* labels, int32_t* previous)
        : steps_(std::move(steps)),
          centers_(centers),
          k_(steps_.k),
          d_(steps_.rows.d),
          labels_(labels),
          previous_(previous),
          rounded_(int64_t(k_) * d_) {
        if (k_ > steps_.rows.n)
            Call::require(false, "centers",
                          "found " + std::to_string(k_) + " for " + std::to_string(steps_.rows.n) +
                              " points; pass at most one for each");
    }

    /// `history` (or null) gets the objective of the centers at the start of every iteration, less
    /// the sum of w |x|^2. fresh, written: as in Lloyd::step, for the first iteration.
    Iterated run(ThreadPool& pool, const StopRule& rule, double* history, bool fresh,
                 bool written = false) {
        std::copy(centers_, centers_ + rounded_.size(), rounded_.begin());
        for (int64_t step = 1;; step++) {
            const Totals& totals = steps_.step(pool, rounded_.data(), labels_, previous_,
                                               fresh && step == 1, written && step == 1);
            const bool empty =
                std::find(totals.masses.begin(), totals.masses.end(), 0.0) != totals.masses.end();
            const Moved moved =
                empty ? move(pool, totals, refill(totals)) : move(pool, totals, totals);
            if (history != nullptr) history[step - 1] = moved.objective;
            const bool settled = moved.shift <= rule.tolerance || totals.changed == 0;
            if (settled || step == rule.max_iter) return {step, settled};
        }
    }

  private:
    /// A squared shift, and the sum of w (|c|^2 - 2 x c) before it.
    struct Moved {
        double objective = 0, shift = 0;
    };

    /// Totals in which empty clusters have taken the farthest points, by (distance, row).
    Totals refill(Totals totals) {
        std::vector<int> empty;
        for (int j = 0; j < k_; j++)
            if (totals.masses[j] == 0) empty.push_back(j);
        const auto far = farthest(empty.size()).sorted();
        Totals change(k_, d_);  // rounded before it is added, as in `Lloyd` and in Python
        for (size_t l = 0; l < far.size() && far[l].away > 0; l++) {
            const double weight = steps_.rows.weight(far[l].row);
            steps_.add(change, far[l].row, labels_[far[l].row], -weight);
            steps_.add(change, far[l].row, empty[l], weight);
            totals.merge(change);
        }
        return totals;
    }

    FarthestRows<T> farthest(size_t count) {
        FarthestRows<T> found(count);
        for (int64_t i = 0; i < steps_.rows.n; i++)
            if (steps_.rows.weight(i) > 0)
                found.add({steps_.away(i, rounded_.data(), labels_[i]), i});
        return found;
    }

    /// Moves the centers to the means of `now`, or to their directions. `before`: the totals of the
    /// points.
    Moved move(ThreadPool& pool, const Totals& before, const Totals& now) {
        // Numbers below which one thread is faster: waking the others takes longer than moving
        // them.
        constexpr int64_t small = 1 << 14;
        std::vector<Moved> found(k_);
        const auto one = [&](int j, int) { found[j] = move(j, before, now); };
        if (int64_t(k_) * d_ > small)
            pool.run(k_, one);
        else
            for (int j = 0; j < k_; j++) one(j, 0);
        Moved all;
        for (const Moved& part : found) all.objective += part.objective, all.shift += part.shift;
        return all;
    }

    Moved move(int j, const Totals& before, const Totals& now) {
        const double *own = &before.sums[int64_t(j) * d_], *sum = &now.sums[int64_t(j) * d_];
        double* center = centers_ + int64_t(j) * d_;
        T* rounded = &rounded_[int64_t(j) * d_];
        const double length = steps_.rows.directions() ? norm(sum) : now.masses[j];
        // Four sums each, added in turns: the latency of an addition would limit a single one.
        double cross[4]{}, square[4]{}, shift[4]{};
        for (int f = 0; f < d_; f++) {
            const double c = rounded[f];
            cross[f % 4] += own[f] * c, square[f % 4] += c * c;
            if (!(length > 0)) continue;
            const double apart = sum[f] / length - center[f];
            shift[f % 4] += apart * apart;
            center[f] = sum[f] / length, rounded[f] = T(center[f]);
        }
        const auto all = [](const double (&part)[4]) {
            return part[0] + part[1] + part[2] + part[3];
        };
        return {before.masses[j] * all(square) - 2 * all(cross), all(shift)};
    }

    double norm(const double* sum) const {
        double square = 0;
        for (int f = 0; f < d_; f++) square += sum[f] * sum[f];
        return std::sqrt(square);
    }

    Steps steps_;
    double* centers_;
    int k_, d_;
    int32_t *labels_, *previous_;
    std::vector<T> rounded_;  // the centers in T
};

/// The arguments of the kernel `lloyd_iterations`.
struct IterateArguments {
    View<double> centers, history;
    StopRule rule;
    bool fresh;

    IterateArguments(Call& call, int d)
        : centers(call.out<double>("centers", "(k, d)", {ANY, d})),
          history(call.out<double>("history", "(max_iter)", {ANY})),
          rule{call.number("tolerance"), history.shape[0]},
          fresh(call.flag("fresh")) {
        Call::require(rule.max_iter > 0, "history", "pass (max_iter) with max_iter above 0");
    }
};

/// Lloyd's iterations from centers (k, d) in float64, at most as many as `history` has places.
/// fresh: `previous` holds no labels; if not, they go on from those of the last call. Returns the
/// number of iterations and whether the stop rule ended them.
template <class T>
void run_lloyd_iterations(Workspace<T>& work, Call& call) {
    constexpr int64_t small = 1 << 18;  // numbers: bounds do not pay
    IterateArguments given(call, work.rows.d);
    int32_t *labels = work.labels(call), *previous = work.previous(call);
    Lloyd<T>& lloyd = lloyd_for(work, int(given.centers.shape[0]), given.fresh,
                                work.rows.n * work.rows.d > small);
    LloydLoop<DenseSteps<T>> loop({work.rows, lloyd}, given.centers, labels, previous);
    const Iterated found =
        loop.run(work.pool, given.rule, given.history, given.fresh, work.labels_written);
    work.labels_written = false;
    call.results = {found.count, found.settled};
}

}  // namespace lloydformer::ISA
