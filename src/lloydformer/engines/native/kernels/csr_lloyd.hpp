// Lloyd's iteration over sparse rows: labels, sums and masses.
//
// Invariant: after a step the totals are the sums of the labels in `previous`. The order of
// additions depends on the leaves alone, not on threads or groups: a cluster belongs to one group
// at a time, which adds its rows along the whole tree.
#pragma once

#include <mutex>
#include <numeric>

#include "csr_assign.hpp"
#include "csr_workspace.hpp"
#include "totals.hpp"

namespace lloydformer::ISA {

/// Clusters in groups of about the same work, one group for each thread.
class ClusterGroups {
  public:
    ClusterGroups(int k, int n_threads)
        : count(std::min(k, n_threads)), largest((k - 1) / count + 1), members_(count) {
        deal(std::vector<int64_t>(k));
    }

    const int count, largest;  // groups, and the clusters of one at most

    /// Deals out the clusters by their work, largest first, to groups 0 to count - 1 and back, so
    /// that groups differ little. Stable: the result depends on the work alone.
    void deal(const std::vector<int64_t>& work) {
        std::vector<int> order(work.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return work[a] > work[b]; });
        for (std::vector<int>& group : members_) group.clear();
        places_.assign(work.size() + 1, {-1, -1});
        for (size_t turn = 0; turn < order.size(); turn++) {
            const int at = int(turn % (2 * count)), group = at < count ? at : 2 * count - 1 - at;
            places_[order[turn] + 1] = {group, int(members_[group].size())};
            members_[group].push_back(order[turn]);
        }
    }

    bool has(int group, int32_t label) const { return places_[label + 1].group == group; }
    int place(int32_t label) const { return places_[label + 1].place; }
    const int* members(int group) const { return members_[group].data(); }

  private:
    struct Place {
        int group, place;
    };
    std::vector<Place> places_;  // by label + 1, as -1 is no label
    std::vector<std::vector<int>> members_;
};

/// Lloyd's iterations over the same rows. Labels are found in ranges of rows; then sums are
/// computed in groups of clusters, each along the whole tree, so that no thread needs sums of its
/// own for all clusters. Only rows that change their label move sums, in row order within a leaf.
template <class T, class Index>
class CsrLloyd {
  public:
    CsrLloyd(const CsrRows<T, Index>& rows, int k, int n_threads)
        : rows_(rows), k_(k), groups_(k, n_threads), totals_(k, rows.d) {
        const Units whole(rows.n, rows.leaf, std::numeric_limits<int64_t>::max() - 1);
        trees_.assign(groups_.count, Tree<Totals>(whole, 1, Totals(groups_.largest, rows.d)));
    }

    /// Finds labels for these centers; `previous` holds those of the last call and is updated.
    /// fresh: the sums start again.
    const Totals& step(ThreadPool& pool, const CsrCenters<T>& centers, int32_t* labels,
                       int32_t* previous, bool fresh) {
        groups_.deal(find(pool, centers, labels, fresh ? nullptr : previous));
        if (fresh) totals_ = Totals(k_, rows_.d);
        add(pool, labels, previous, fresh);
        const int64_t changed = remember(pool, labels, previous);
        if (totals_.imprecise()) {
            totals_ = Totals(k_, rows_.d);
            add(pool, labels, previous, true);
        }
        totals_.changed = changed;
        return totals_;
    }

    int k() const { return k_; }

  private:
    /// Writes labels. Returns the work of moving rows to and from each cluster.
    std::vector<int64_t> find(ThreadPool& pool, const CsrCenters<T>& centers, int32_t* labels,
                              const int32_t* previous) const {
        // Work of a row besides its numbers, in numbers; chosen by hand. Only the balance between
        // threads depends on it.
        constexpr int each_row = 16;
        std::vector<int64_t> work(k_);
        std::mutex lock;
        by_ranges(pool, rows_.n, [&](Range range) {
            std::vector<int64_t> own(k_ + 1);  // by label + 1
            assign(rows_, centers, range, [&](int64_t i, const auto& row, int j) {
                labels[i] = j;
                const int32_t from = previous == nullptr ? -1 : previous[i];
                if (from != j)
                    own[from + 1] += row.count + each_row, own[j + 1] += row.count + each_row;
            });
            std::lock_guard<std::mutex> hold(lock);
            for (int j = 0; j < k_; j++) work[j] += own[j + 1];
        });
        return work;
    }

    /// Adds the rows whose label changed to the sums; all rows if fresh.
    void add(ThreadPool& pool, const int32_t* labels, const int32_t* previous, bool fresh) {
        pool.run(groups_.count, [&](int group, int) {
            ThreadPool alone(1);
            totals_.apply(trees_[group].run(alone,
                                            [&](Range) {
                                                return [&, reader = CsrReader<T, Index>(rows_)](
                                                           Totals& sum, Range leaf) mutable {
                                                    add_leaf(sum, leaf, group, labels,
                                                             fresh ? nullptr : previous, reader);
                                                };
                                            }),
                          groups_.members(group));
        });
    }

    /// Moves rows of a leaf to and from the clusters of a group. previous: null if fresh.
    void add_leaf(Totals& sum, Range leaf, int group, const int32_t* labels,
                  const int32_t* previous, CsrReader<T, Index>& reader) const {
        // Rows whose labels are compared before any is moved, without branches; and rows that are
        // prefetched before they are moved, as moved rows are scattered in memory. Chosen by hand.
        constexpr int together = 256, prefetched = 8;
        int64_t moved[together + prefetched];
        for (int64_t start = leaf.start; start < leaf.stop; start += together) {
            const int64_t stop = std::min(leaf.stop, start + together);
            int count = 0;
            for (int64_t i = start; i < stop; i++) {
                const int32_t from = previous == nullptr ? -1 : previous[i], to = labels[i];
                moved[count] = i;
                count += (from != to) & (groups_.has(group, from) | groups_.has(group, to));
            }
            std::fill_n(moved + count, prefetched, start);
            for (int m = 0; m < count; m++) {
                rows_.prefetch(moved[m + prefetched]);
                const int64_t i = moved[m];
                move(sum, i, group, previous == nullptr ? -1 : previous[i], labels[i], reader);
            }
        }
    }

    void move(Totals& sum, int64_t i, int group, int32_t from, int32_t to,
              CsrReader<T, Index>& reader) const {
        const CsrRow<T, Index> row = reader.row(i);
        const double weight = rows_.weight(i);
        if (groups_.has(group, from)) sum.add(row, groups_.place(from), -weight);
        if (groups_.has(group, to)) sum.add(row, groups_.place(to), weight);
    }

    /// Copies labels to `previous`. Returns how many rows with weight changed.
    int64_t remember(ThreadPool& pool, const int32_t* labels, int32_t* previous) const {
        std::atomic<int64_t> changed{0};
        by_ranges(pool, rows_.n, [&](Range range) {
            int64_t found = 0;
            for (int64_t i = range.start; i < range.stop; i++) {
                found += labels[i] != previous[i] && rows_.weight(i) > 0;
                previous[i] = labels[i];
            }
            changed += found;
        });
        return changed;
    }

    const CsrRows<T, Index>& rows_;
    int k_;
    ClusterGroups groups_;
    Totals totals_;
    std::vector<Tree<Totals>> trees_;  // by group
};

/// Returns the session's CsrLloyd for k clusters. If there is none, makes one and sets `fresh`.
template <class T, class Index>
CsrLloyd<T, Index>& csr_lloyd_for(CsrWorkspace<T, Index>& work, int k, bool& fresh) {
    if (work.lloyd == nullptr || work.lloyd->k() != k) {
        work.lloyd = std::make_unique<CsrLloyd<T, Index>>(work.rows, k, work.pool.size());
        fresh = true;
    }
    return *work.lloyd;
}

/// Sums (k, d) and masses (k) by nearest center; labels. fresh: `previous` holds no labels.
/// Returns the number of changed labels.
template <class T, class Index>
void run_csr_nearest_sums(CsrWorkspace<T, Index>& work, Call& call) {
    const CsrCenters<T>& centers = work.packed(call);
    int32_t *labels = work.labels(call), *previous = work.previous(call);
    double* sums = call.out<double>("sums", "(k, d)", {centers.k, centers.d});
    double* masses = call.out<double>("masses", "(k)", {centers.k});
    bool fresh = call.flag("fresh");
    CsrLloyd<T, Index>& lloyd = csr_lloyd_for(work, centers.k, fresh);
    const Totals& totals = lloyd.step(work.pool, centers, labels, previous, fresh);
    std::copy(totals.sums.begin(), totals.sums.end(), sums);
    std::copy(totals.masses.begin(), totals.masses.end(), masses);
    call.results = {totals.changed};
}

}  // namespace lloydformer::ISA
