// Medoids, and for every row its two nearest ones.
//
// Invariant after each change: `first` and `second` are the nearest and the second nearest place
// of every row, the lower place on ties, `near` and `next` the distances to them, and `clusters`
// and `loss` the sums over all rows, added along the tree.
#pragma once

#include "fold.hpp"
#include "medoid_distances.hpp"

namespace lloydformer::ISA {

/// Ranges of rows, or of a list of them, whose sums are added along the tree.
struct Span {
    int64_t n, leaf = 2048;
};

/// What is known of a cluster, added up over its rows.
struct MedoidCluster {
    double removal = 0;  // by how much the loss rises if its rows go to their second medoids
    double error = 0;    // its part of the loss
    double size = 0;     // number of rows with weight
    double changed = 0;  // rows that came or went since it was last looked at
};

/// Everything that a relocation may undo.
template <class T>
struct MedoidTable {
    std::vector<int32_t> medoids;        // rows
    std::vector<int32_t> first, second;  // of each row: places in `medoids`; -1 if there is none
    std::vector<T> near, next;           // and the distances to them
    std::vector<MedoidCluster> clusters;
    double loss = 0;

    int k() const { return int(medoids.size()); }
};

/// The table, kept up to date when medoids come and go. On ties the lower place is nearer.
template <class T>
class MedoidPartition : public MedoidTable<T> {
  public:
    using Table = MedoidTable<T>;
    using Table::clusters;
    using Table::first;
    using Table::k;
    using Table::loss;
    using Table::medoids;
    using Table::near;
    using Table::next;
    using Table::second;

    MedoidPartition(ThreadPool& pool, const Rows<T>& weights, Metric metric)
        : pool(pool), rows(weights, metric), weights_(weights) {
        if (metric != Metric::precomputed && rows.few()) rows.keep(matrix_of(rows, pool));
        first.resize(rows.n), second.resize(rows.n), near.resize(rows.n), next.resize(rows.n);
    }

    ThreadPool& pool;
    MedoidRows<T> rows;

    double weight(int64_t i) const { return weights_.weight(i); }
    bool weighted() const { return weights_.weighted(); }
    const Rows<T>& given() const { return weights_; }

    /// True if distances are not known, and come from sums of squares.
    bool computes_squares() const {
        return rows.known(0) == nullptr && rows.metric != Metric::manhattan;
    }

    /// These medoids and no others.
    void begin(const int32_t* chosen, int count) {
        medoids.assign(chosen, chosen + count);
        clusters.assign(count, {});
        std::fill(first.begin(), first.end(), -1);
        rescan();
    }

    /// One medoid more.
    void add(int32_t x) {
        const int place = k();
        medoids.push_back(x), clusters.push_back({});
        each_distance(x, [&](int64_t i, T away, Numbers& found) { insert(i, place, away, found); });
    }

    /// Another row at a place.
    void swap(int place, int32_t x) {
        medoids[place] = x;
        if (k() == 1) return rescan();
        gather_medoids();
        each_distance(x, [&](int64_t i, T away, Numbers& found) {
            const bool mine = first[i] == place;
            if (!mine && second[i] != place) return insert(i, place, away, found);
            const bool nearest = mine ? before(away, place, next[i], second[i])
                                      : before(away, place, near[i], first[i]);
            if (mine && nearest) {
                near[i] = away;
            } else if (!mine && nearest) {
                second[i] = first[i], next[i] = near[i];
                label(i, place, found), near[i] = away;
            } else if (!mine && before(away, place, next[i], second[i])) {
                next[i] = away;
            } else {
                rescan(i, found);
            }
        });
    }

    /// One medoid less; places behind it move up.
    void remove(int place) {
        medoids.erase(medoids.begin() + place), clusters.erase(clusters.begin() + place);
        gather_medoids();
        each_leaf([&](int64_t i, Numbers& found) {
            const bool lost = first[i] == place || second[i] == place;
            first[i] = first[i] == place ? -1 : first[i] - (first[i] > place);
            second[i] -= second[i] > place;
            if (lost) rescan(i, found);
        });
    }

    /// The table as it was.
    void restore(Table& before) { std::swap(static_cast<Table&>(*this), before); }

  private:
    static bool before(T a, int place, T b, int other) {
        return a < b || (a == b && place < other);
    }

    void label(int64_t i, int place, Numbers& found) {
        if (first[i] == place) return;
        const double one = weight(i) > 0;
        if (first[i] >= 0) found[4 * first[i] + 3] += one;
        found[4 * place + 3] += one, first[i] = place;
    }

    void insert(int64_t i, int place, T away, Numbers& found) {
        if (before(away, place, near[i], first[i])) {
            second[i] = first[i], next[i] = near[i];
            label(i, place, found), near[i] = away;
        } else if (second[i] < 0 || before(away, place, next[i], second[i])) {
            second[i] = place, next[i] = away;
        }
    }

    void gather_medoids() {
        batches_.assign((k() + BATCH - 1) / BATCH, RowBatch<T>(rows, rows.known(0) == nullptr));
        for (size_t b = 0; b < batches_.size(); b++)
            batches_[b].gather(&medoids[b * BATCH], std::min(BATCH, k() - int(b) * BATCH));
    }

    void rescan() {
        gather_medoids();
        each_leaf([&](int64_t i, Numbers& found) { rescan(i, found); });
        if (k() > 1) return;
        // A second medoid that is farther than any row can be from another: its distance cancels.
        // By the triangle inequality, four times the largest square; a matrix need not have it.
        if (rows.metric != Metric::precomputed)
            far_ = 4 * *std::max_element(near.begin(), near.end());
        else if (far_ < 0)
            far_ = 2 * *std::max_element(rows.known(0), rows.known(rows.n));
        std::fill(next.begin(), next.end(), far_);
        each_leaf([](int64_t, Numbers&) {});
    }

    /// Searches both medoids of a row among all. Here places are checked, once for all moves: the
    /// first two are taken at any distance, so a row has a label even where distances are NaN or
    /// not below HUGE_SCORE. `swap`, `add` and `remove` only pass on places, or search here.
    void rescan(int64_t i, Numbers& found) {
        int a = -1, b = -1;
        T to_a = HUGE_SCORE<T>, to_b = HUGE_SCORE<T>;
        BatchDistances<T> away;
        for (size_t batch = 0; batch < batches_.size(); batch++) {
            distances(rows, i, batches_[batch], away);
            for (int r = 0; r < batches_[batch].count; r++) {
                if (b >= 0 && !(away.to[r] < to_b)) continue;
                const int place = int(batch) * BATCH + r;
                if (a < 0 || away.to[r] < to_a)
                    b = a, to_b = to_a, a = place, to_a = away.to[r];
                else
                    b = place, to_b = away.to[r];
            }
        }
        label(i, a, found);
        near[i] = to_a, second[i] = b, next[i] = to_b;
    }

    /// Calls work(i, numbers) for every row, and adds up the clusters afterwards.
    template <class Work>
    void each_leaf(Work work) {
        each_range([&](Numbers& found, Range leaf) {
            for (int64_t i = leaf.start; i < leaf.stop; i++) work(i, found);
        });
    }

    /// The same with the distance of each row to row x.
    template <class Work>
    void each_distance(int32_t x, Work work) {
        each_range([&, batch = RowBatch<T>(rows, rows.known(0) == nullptr)](Numbers& found,
                                                                            Range leaf) mutable {
            BatchDistances<T> away;
            if (const T* known = rows.known(x); known != nullptr) {
                for (int64_t i = leaf.start; i < leaf.stop; i++) work(i, known[i], found);
                return;
            }
            for (int64_t i = leaf.start; i < leaf.stop; i += BATCH) {
                batch.read(i, int(std::min<int64_t>(BATCH, leaf.stop - i)));
                distances(rows, x, batch, away);
                for (int r = 0; r < batch.count; r++) work(i + r, away.to[r], found);
            }
        });
    }

    template <class Work>
    void each_range(Work work) {
        const Numbers found = fold(pool, Span{rows.n}, 4 * k(), [&](Range) {
            return [&, work](Numbers& numbers, Range leaf) mutable {
                work(numbers, leaf);
                for (int64_t i = leaf.start; i < leaf.stop; i++) {
                    double* own = &numbers[4 * first[i]];
                    const double w = weight(i);
                    own[0] += w * (double(next[i]) - double(near[i]));
                    own[1] += w * double(near[i]);
                    own[2] += w > 0;
                }
            };
        });
        loss = 0;
        for (int j = 0; j < k(); j++) {
            const double changed = clusters[j].changed + found[4 * j + 3];
            clusters[j] = {found[4 * j], found[4 * j + 1], found[4 * j + 2], changed};
            loss += clusters[j].error;
        }
    }

    const Rows<T>& weights_;
    T far_ = -1;                        // distance to the second medoid if there is one medoid
    std::vector<RowBatch<T>> batches_;  // of the medoids
};

}  // namespace lloydformer::ISA
