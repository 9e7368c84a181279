// Lloyd's iteration over sparse rows: labels, sums and masses.
#pragma once

#include "csr_assign.hpp"
#include "csr_workspace.hpp"
#include "totals.hpp"

namespace lloydformer::ISA {

/// Lloyd's iterations over the same rows. Labels are found in ranges of rows; then sums are
/// computed in groups of clusters, each along the whole tree, so that no thread needs sums of its
/// own for all clusters. Only rows that change their label move sums, in row order within a leaf.
template <class T, class Index>
class CsrLloyd {
  public:
    CsrLloyd(const CsrRows<T, Index>& rows, int k, int n_threads)
        : rows_(rows), k_(k), per_group_((k - 1) / (4 * n_threads) + 1), totals_(k, rows.d) {
        const Units whole(rows.n, rows.leaf, std::numeric_limits<int64_t>::max() - 1);
        trees_.assign(n_threads, Tree<Totals>(whole, 1, Totals(per_group_, rows.d)));
    }

    /// Finds labels for these centers; `previous` holds those of the last call and is updated.
    /// fresh: the sums start again.
    const Totals& step(ThreadPool& pool, const CsrCenters<T>& centers, int32_t* labels,
                       int32_t* previous, bool fresh) {
        by_ranges(pool, rows_.n, [&](Range range) {
            assign(rows_, centers, range, [=](int64_t i, const auto&, int j) { labels[i] = j; });
        });
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
    /// Adds the rows whose label changed to the sums; all rows if fresh.
    void add(ThreadPool& pool, const int32_t* labels, const int32_t* previous, bool fresh) {
        pool.run((k_ - 1) / per_group_ + 1, [&](int group, int thread) {
            const int first = group * per_group_;
            ThreadPool alone(1);
            totals_.apply(trees_[thread].run(alone,
                                             [&](Range) {
                                                 return [&, reader = CsrReader<T, Index>(rows_)](
                                                            Totals& sum, Range leaf) mutable {
                                                     add_leaf(sum, leaf, first, labels,
                                                              fresh ? nullptr : previous, reader);
                                                 };
                                             }),
                          first);
        });
    }

    /// Moves rows of a leaf to and from the clusters of a group. previous: null if fresh.
    void add_leaf(Totals& sum, Range leaf, int first, const int32_t* labels,
                  const int32_t* previous, CsrReader<T, Index>& reader) const {
        const auto mine = [=](int32_t label) {
            return uint32_t(label - first) < uint32_t(per_group_);
        };
        constexpr int together = 256;
        int64_t moved[together];
        for (int64_t i = leaf.start; i < leaf.stop;) {
            int count = 0;
            for (const int64_t stop = std::min(leaf.stop, i + together); i < stop; i++) {
                const int32_t from = previous == nullptr ? -1 : previous[i], to = labels[i];
                moved[count] = i;
                count += (mine(from) | mine(to)) & (from != to);  // without a branch
            }
            for (int m = 0; m < count; m++) move(sum, moved[m], first, labels, previous, reader);
        }
    }

    void move(Totals& sum, int64_t i, int first, const int32_t* labels, const int32_t* previous,
              CsrReader<T, Index>& reader) const {
        const int32_t from = previous == nullptr ? -1 : previous[i] - first, to = labels[i] - first;
        const CsrRow<T, Index> row = reader.row(i);
        if (uint32_t(from) < uint32_t(per_group_)) sum.add(row, from, -rows_.weight(i));
        if (uint32_t(to) < uint32_t(per_group_)) sum.add(row, to, rows_.weight(i));
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
    int k_, per_group_;  // clusters, and those of a group
    Totals totals_;
    std::vector<Tree<Totals>> trees_;  // by thread
};

/// Sums (k, d) and masses (k) by nearest center; labels. fresh: `previous` holds no labels.
/// Returns the number of changed labels.
template <class T, class Index>
void run_csr_nearest(CsrWorkspace<T, Index>& work, Call& call) {
    const CsrCenters<T>& centers = work.packed(call);
    int32_t *labels = work.labels(call), *previous = work.previous(call);
    double* sums = call.out<double>("sums", "(k, d)", {centers.k, centers.d});
    double* masses = call.out<double>("masses", "(k)", {centers.k});
    bool fresh = call.flag("fresh");
    if (work.lloyd == nullptr || work.lloyd->k() != centers.k) {
        work.lloyd = std::make_unique<CsrLloyd<T, Index>>(work.rows, centers.k, work.pool.size());
        fresh = true;
    }
    const Totals& totals = work.lloyd->step(work.pool, centers, labels, previous, fresh);
    std::copy(totals.sums.begin(), totals.sums.end(), sums);
    std::copy(totals.masses.begin(), totals.masses.end(), masses);
    call.results = {totals.changed};
}

}  // namespace lloydformer::ISA
