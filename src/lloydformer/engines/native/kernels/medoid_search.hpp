// The search for medoids: exchanges among near candidates, relocations, exchanges with all rows.
//
// No move raises the loss: a move after which it is not lower, as gains are rounded, is undone. So
// the search ends. plans/medoid_moves.py has the same moves.
#pragma once

#include <numeric>

#include "medoid_candidates.hpp"
#include "medoid_gains.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// Where a sweep is between two calls.
struct Sweep {
    int64_t reach = 0;   // 0: no sweep has begun
    RowList candidates;  // of this round
    size_t next = 0;     // the first candidate that was not looked at yet
    size_t idle = 0;     // candidates since the last exchange
};

/// The moves of the search, as in plans/medoid_moves.py.
template <class T>
class MedoidSearch {
  public:
    MedoidSearch(ThreadPool& pool, const Rows<T>& rows, Metric metric)
        : state(pool, rows, metric), candidates_(state), gains_(state) {}

    MedoidPartition<T> state;

    /// Begins with these medoids.
    void begin(const RowList& chosen) {
        sweep_ = {};
        state.begin(chosen.data(), int(chosen.size()));
    }

    /// For each cluster whose rows have changed: the best exchange with one of its rows near its
    /// mean, as far as its rows and those next to it know. At most so many rounds over all
    /// clusters. `slack`: the share of rows that must have changed.
    void descend(int64_t rounds, double slack) {
        sweep_ = {};
        for (bool any = true; any && rounds > 0; rounds--) {
            any = false;
            for (int j = 0; j < state.k(); j++)
                if (state.clusters[j].changed > slack * state.clusters[j].size)
                    any = improve(j) || any;
        }
    }

    /// Exchanges with drawn candidates, over all rows. Returns whether the loss fell.
    bool exchange_drawn(const Noise& noise) {
        sweep_ = {};
        const RowList drawn = candidates_.drawn(noise, 0, nullptr, BATCH);
        return exchange(drawn.data(), int(drawn.size()));
    }

    /// Exchanges over all rows with the `reach` rows of each cluster that are nearest to its mean,
    /// until a whole pass over these candidates finds none. Looks at about `most` candidates, then
    /// returns false; the next call continues there, unless another move was made. Returns true at
    /// the end.
    bool sweep(int64_t reach, int64_t most) {
        if (sweep_.reach != reach) sweep_ = {}, sweep_.reach = reach;
        for (; most > 0; most -= BATCH) {
            if (sweep_.next >= sweep_.candidates.size()) begin_round();
            if (sweep_.idle >= sweep_.candidates.size()) return sweep_ = {}, true;
            const int32_t* rows = &sweep_.candidates[sweep_.next];
            const int count = int(std::min<size_t>(BATCH, sweep_.candidates.size() - sweep_.next));
            sweep_.idle = exchange(rows, count) ? 0 : sweep_.idle + count;
            sweep_.next += count;
        }
        return false;
    }

    /// Splits some clusters and removes as many medoids. Returns true, and keeps the result, if the
    /// loss falls.
    bool relocate(const Noise& grow, const Noise& draw, int moved, int draws, double slack) {
        sweep_ = {};
        MedoidTable<T> before = state;
        const int k = state.k();
        for (int b : draw_clusters(grow, moved)) split(b, draw, draws);
        descend(1, slack);
        while (state.k() > k) state.remove(cheapest());
        descend(1, slack);
        if (state.loss < (1 - KEPT) * before.loss) return true;
        state.restore(before);
        return false;
    }

  private:
    static constexpr int LOCAL = BATCH / 2;  // candidates of `descend`: half the time of a batch
    // Parts of the loss that a relocation and an exchange must gain: RELOCATION_GAIN and
    // EXCHANGE_GAIN of numerics/search_constants.py. Smaller gains may be rounding, with
    // which the search would never end.
    static constexpr double KEPT = 1e-6;
    static constexpr double LEAST = 1e-9;

    bool exchange(const int32_t* rows, int count, const RowList* list = nullptr) {
        bool any = false;
        while (true) {
            const Exchange best = gains_.best(rows, count, list);
            if (best.row < 0 || !(best.gain > LEAST * state.loss) || !swap_if_better(best))
                return any;
            any = true;
            if (list != nullptr) return any;
        }
    }

    /// Returns true if the loss fell. Where it did not, because gains are rounded, the table is
    /// restored: so the search ends. Losses are compared by `order_of`, so that it also ends where
    /// one of them is NaN.
    bool swap_if_better(const Exchange& best) {
        const int32_t row = state.medoids[best.place];
        const std::vector<MedoidCluster> clusters = state.clusters;
        const double loss = state.loss;
        state.swap(best.place, best.row);
        if (order_of(state.loss) < order_of(loss)) return true;
        state.swap(best.place, row);
        state.clusters = clusters, state.loss = loss;
        return false;
    }

    /// The candidates of a sweep, by the clusters as they are now.
    void begin_round() {
        sweep_.candidates.clear(), sweep_.next = 0;
        for (int j = 0; j < state.k(); j++) {
            const RowList near = nearest(j, sweep_.reach);
            sweep_.candidates.insert(sweep_.candidates.end(), near.begin(), near.end());
        }
    }

    RowList nearest(int j, int64_t count) {
        const RowList own = candidates_.members(j, false);
        if (state.rows.metric == Metric::precomputed) return own;
        return candidates_.nearest_to_mean(own, size_t(count));
    }

    bool improve(int j) {
        state.clusters[j].changed = 0;
        const RowList near = nearest(j, LOCAL), list = candidates_.members(j, true);
        const int count = int(std::min<size_t>(BATCH, near.size()));  // the others wait for a sweep
        return count > 1 && exchange(near.data(), count, &list);
    }

    /// Clusters with the largest 2 log e + Gumbel noise.
    std::vector<int> draw_clusters(const Noise& noise, int count) const {
        std::vector<std::pair<int64_t, int>> order;
        for (int j = 0; j < state.k(); j++) {
            const double e = state.clusters[j].error, u = noise.uniform(j / 2, 0)[j % 2];
            if (e > 0) order.push_back({order_of(std::log(-std::log(u)) - 2 * std::log(e)), j});
        }
        std::sort(order.begin(), order.end());
        order.resize(std::min<size_t>(count, order.size()));
        std::vector<int> chosen;
        for (const auto& each : order) chosen.push_back(each.second);
        return chosen;
    }

    int cheapest() const {
        const auto less = [](const MedoidCluster& a, const MedoidCluster& b) {
            return a.removal < b.removal;
        };
        const auto& all = state.clusters;
        return int(std::min_element(all.begin(), all.end(), less) - all.begin());
    }

    /// Splits a cluster in two by the best of some draws, if that gains anything.
    void split(int b, const Noise& noise, int draws) {
        const RowList own = candidates_.members(b, false);
        double best = 0;
        int32_t kept = -1, added = -1;
        for (int h = 0; h < draws; h++) {
            const RowList drawn = candidates_.drawn(noise, h, &own, 1);
            if (drawn.empty()) return;
            const auto away = candidates_.distances_to(drawn[0], own);
            RowList halves[2];
            for (size_t t = 0; t < own.size(); t++)
                halves[away[t] < state.near[own[t]] ? 0 : 1].push_back(own[t]);
            if (halves[0].empty() || halves[1].empty()) continue;
            double gain = 0;
            int32_t middles[2];
            for (int side = 0; side < 2; side++) {
                middles[side] = candidates_.nearest_to_mean(halves[side], 1)[0];
                gain += gain_of(middles[side], halves[side]);
            }
            if (gain > best) best = gain, added = middles[0], kept = middles[1];
        }
        if (added < 0) return;
        if (kept != state.medoids[b]) state.swap(b, kept);
        state.add(added);
    }

    double gain_of(int32_t x, const RowList& list) const {
        const auto away = candidates_.distances_to(x, list);
        double gain = 0;
        for (size_t t = 0; t < list.size(); t++)
            gain += state.weight(list[t]) * (double(state.near[list[t]]) - double(away[t]));
        return gain;
    }

    MedoidCandidates<T> candidates_;
    MedoidGains<T> gains_;
    Sweep sweep_;
};

constexpr int SPLIT_HEAD = 5, DRAWN_HEAD = 6;  // places in noise.HEADS

/// Returns the search that `medoid_begin` made.
template <class T>
MedoidSearch<T>& current_search(Workspace<T>& work) {
    Call::require(work.medoid_search != nullptr, "kernel", "call medoid_begin first");
    return *work.medoid_search;
}

/// Writes the medoids (k); returns the loss, whether it fell, and whether the move is done.
template <class T>
void write_result(MedoidSearch<T>& search, Call& call, bool fell, bool done = true) {
    const int k = search.state.k();
    int64_t* rows = call.out<int64_t>("medoids", "(k)", {k});
    std::copy(search.state.medoids.begin(), search.state.medoids.end(), rows);
    call.results = {search.state.loss, fell, done};
}

/// Begins with medoids (k) by a metric.
template <class T>
void run_medoid_begin(Workspace<T>& work, Call& call) {
    const auto rows = call.out<int64_t>("medoids", "(k)", {ANY});
    const int64_t number = call.integer("metric");
    Call::require(number >= 0 && number <= int64_t(Metric::precomputed), "metric",
                  "pass a number from 0 to 3");
    const auto metric = Metric(number);
    // A row number is a column number of the matrix.
    if (metric == Metric::precomputed)
        Call::require(work.rows.n == work.rows.d && work.rows.stored() != nullptr, "metric",
                      "pass 3 for a square matrix of distances, which is not scaled");
    Call::require(rows.shape[0] > 0, "medoids", "pass at least one row");
    auto& search = work.medoid_search;
    if (search == nullptr || search->state.rows.metric != metric)
        search = std::make_unique<MedoidSearch<T>>(work.pool, work.rows, metric);
    if (search->state.computes_squares()) work.copy_for_exchanges();
    RowList chosen;
    for (int64_t j = 0; j < rows.shape[0]; j++) {
        Call::require(rows[j] >= 0 && rows[j] < work.rows.n, "medoids", "pass rows of the points");
        chosen.push_back(int32_t(rows[j]));
    }
    search->begin(chosen);
    write_result(*search, call, false);
}

template <class T>
void run_medoid_descend(Workspace<T>& work, Call& call) {
    MedoidSearch<T>& search = current_search(work);
    const double before = search.state.loss;
    search.descend(call.integer("rounds"), call.number("slack"));
    write_result(search, call, search.state.loss < before);
}

template <class T>
void run_medoid_exchange(Workspace<T>& work, Call& call) {
    const Noise noise{uint64_t(call.integer("seed")), call.integer("layer"), DRAWN_HEAD};
    const bool fell = current_search(work).exchange_drawn(noise);
    write_result(current_search(work), call, fell);
}

template <class T>
void run_medoid_relocate(Workspace<T>& work, Call& call) {
    const uint64_t seed = uint64_t(call.integer("seed"));
    const int64_t layer = call.integer("layer");
    const bool fell = current_search(work).relocate(
        {seed, layer, SPLIT_HEAD}, {seed, layer, DRAWN_HEAD}, int(call.integer("moved")),
        int(call.integer("draws")), call.number("slack"));
    write_result(current_search(work), call, fell);
}

template <class T>
void run_medoid_sweep(Workspace<T>& work, Call& call) {
    MedoidSearch<T>& search = current_search(work);
    const double before = search.state.loss;
    const bool done = search.sweep(call.integer("reach"), call.integer("most"));
    write_result(search, call, search.state.loss < before, done);
}

}  // namespace lloydformer::ISA
