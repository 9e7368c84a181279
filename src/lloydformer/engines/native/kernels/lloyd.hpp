// Lloyd's iteration: labels, sums and masses, updated from one iteration to the next.
//
// Invariant: after a step `previous` equals `labels`, and the totals are their sums. Only points
// whose label changes move, in row order within a leaf and along the tree between leaves, so
// bounds, ranges and threads change no bit. Sums that cancellation has made imprecise are added up
// again.
#pragma once

#include <atomic>

#include "assign.hpp"
#include "bounds_policy.hpp"
#include "group_search.hpp"
#include "screened_build.hpp"
#include "totals.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// Lloyd's iterations over the same points.
template <class T>
class Lloyd {
  public:
    /// bounded: bounds may be used.
    Lloyd(const Rows<T>& rows, int k, int n_threads, bool bounded)
        : rows_(rows),
          k_(k),
          bounded_(bounded),
          totals_(k, rows.d),
          tree_(Units(rows.n, rows.leaf, int64_t(k) * rows.d), n_threads, totals_),
          ranges_(tree_.units().without_sums()),
          bounds_(rows.n, rows.d, k),
          policy_(rows.n, rows.d, k, W<T>, is_screened(rows.screening, k, rows.d)) {}

    /// Finds labels for these centers; `previous` holds those of the last call and is updated.
    /// fresh: the sums start again. written: `labels` may differ from those of the last call.
    const Totals& step(ThreadPool& pool, const T* centers, int32_t* labels, int32_t* previous,
                       bool fresh, bool written = false) {
        if (fresh) totals_ = Totals(k_, rows_.d);
        totals_.apply(changes(pool, centers, labels, previous, fresh, written));
        if (totals_.imprecise()) {
            const int64_t changed = totals_.changed;
            totals_ = Totals(k_, rows_.d);
            totals_.apply(sums(pool, labels));
            totals_.changed = changed;
        }
        return totals_;
    }

    /// The labels of a step, and how they change the sums. The caller leaves the result empty.
    Totals& changes(ThreadPool& pool, const T* centers, int32_t* labels, int32_t* previous,
                    bool fresh, bool written) {
        const PackedCenters<T> packed(centers, k_, rows_.d, rows_.screening);
        if (fresh) policy_.begin(), bounds_.forget();
        skipped_ = bounded_ && policy_.use_bounds(bounds_.known());
        Totals& found = skipped_ ? step_with_bounds(pool, packed, labels, previous, written)
                                 : step_without(pool, packed, labels, previous, fresh);
        if (skipped_ && !policy_.keep(effort_, found.changed)) bounds_.forget();
        policy_.set_changed(found.changed);
        return found;
    }

    /// The sums of all points by label. The caller leaves the result empty.
    Totals& sums(ThreadPool& pool, const int32_t* labels) {
        return tree_.run(pool, [&](Range unit) {
            rows_.prefetch_after(unit.start, unit.stop);
            return [&, row = std::vector<T>(rows_.width)](Totals& sum, Range leaf) mutable {
                for (int64_t i = leaf.start; i < leaf.stop; i++) {
                    rows_.read(i, row.data());
                    sum.add(row.data(), labels[i], rows_.weight(i));
                }
            };
        });
    }

    /// Labels alone, for centers near those of the last step. Precondition: has_bounds(). The
    /// bounds are lost.
    void relabel(ThreadPool& pool, const PackedCenters<T>& centers, int32_t* labels,
                 const int32_t* previous) {
        bounds_.follow(centers, rows_);
        const std::vector<std::vector<int64_t>> open = find_undecided(pool, previous);
        pool.run(ranges_.count, [&](int u, int) {
            search(ranges_.unit(u), open[u], centers, labels, previous, true);
        });
        bounds_.forget();
    }

    int k() const { return k_; }
    bool has_bounds() const { return bounds_.known(); }
    /// The number of points that the last step compared with centers.
    int64_t looked_at() const { return skipped_ ? effort_.looked_at : rows_.n; }

  private:
    Totals& step_without(ThreadPool& pool, const PackedCenters<T>& centers, int32_t* labels,
                         int32_t* previous, bool fresh) {
        if (pool.size() > 1 && ranges_.count > tree_.units().count) {
            label_all(pool, rows_, ranges_, centers, labels);
            return add_changed(pool, Changed(rows_.n, true), labels, previous, fresh);
        }
        return tree_.run(pool, [&](Range unit) {
            rows_.prefetch_after(unit.start, unit.stop);
            return [=, &centers, block = PointBlock<T>(rows_)](Totals& changes,
                                                               Range leaf) mutable {
                assign(rows_, block, leaf, centers,
                       [=, &changes](int64_t i, PointBlock<T>& points, const int32_t* found) {
                           std::copy_n(found, points.count, labels + i);
                           int differ = fresh;  // few labels change: look at them together first
                           for (int r = 0; r < points.count; r++)
                               differ |= found[r] ^ previous[i + r];
                           for (int r = 0; differ != 0 && r < points.count; r++)
                               if (fresh || found[r] != previous[i + r])
                                   move(changes, i + r, points.row(r), labels, previous, fresh);
                       });
            };
        });
    }

    Totals& step_with_bounds(ThreadPool& pool, const PackedCenters<T>& centers, int32_t* labels,
                             int32_t* previous, bool written) {
        bounds_.follow(centers, rows_);
        const std::vector<std::vector<int64_t>> open = find_undecided(pool, previous);
        int64_t undecided = 0;
        for (const auto& part : open) undecided += int64_t(part.size());
        if (!policy_.is_worth_searching(undecided)) {
            bounds_.forget();
            policy_.wait_for_fewer();
            skipped_ = false;
            return step_without(pool, centers, labels, previous, false);
        }
        std::atomic<int64_t> looked_at{0}, comparisons{0};
        Changed changed(rows_.n);
        pool.run(ranges_.count, [&](int u, int) {
            const Effort effort =
                search(ranges_.unit(u), open[u], centers, labels, previous, written, &changed);
            looked_at += effort.looked_at, comparisons += effort.comparisons;
        });
        effort_ = {looked_at, comparisons};
        return add_changed(pool, changed, labels, previous, false);
    }

    /// The points that bounds do not decide, range by range; none of them if the bounds are new.
    std::vector<std::vector<int64_t>> find_undecided(ThreadPool& pool,
                                                     const int32_t* previous) const {
        std::vector<std::vector<int64_t>> open(ranges_.count);
        if (!bounds_.first())
            pool.run(ranges_.count, [&](int u, int) {
                open[u] = bounds_.find_undecided(ranges_.unit(u), previous);
            });
        return open;
    }

    class Changed;

    /// Moves the points whose label has changed; fresh: all of them.
    Totals& add_changed(ThreadPool& pool, const Changed& changed, const int32_t* labels,
                        int32_t* previous, bool fresh) {
        return tree_.run(pool, [&](Range unit) {
            if (fresh) rows_.prefetch_after(unit.start, unit.stop);
            return [&, row = std::vector<T>(rows_.width)](Totals& changes, Range leaf) mutable {
                changed.each(leaf, [&](int64_t i) {
                    if (!fresh && labels[i] == previous[i]) return;
                    rows_.read(i, row.data());
                    move(changes, i, row.data(), labels, previous, fresh);
                });
            };
        });
    }

    /// Short runs of rows in which a label has changed.
    class Changed {
      public:
        explicit Changed(int64_t n, bool all = false) : all_(all), runs_(all ? 0 : n / RUN + 1) {}

        /// Threads may share a run.
        void add(int64_t i) { runs_[i / RUN].store(true, std::memory_order_relaxed); }

        /// Calls visit(i) for the rows of these runs that are in a range, in row order.
        template <class Visit>
        void each(Range range, Visit visit) const {
            for (int64_t i = range.start, stop; i < range.stop; i = stop) {
                const int64_t run = i / RUN;
                stop = std::min(range.stop, (run + 1) * RUN);
                if (all_ || runs_[run])
                    for (; i < stop; i++) visit(i);
            }
        }

      private:
        // Rows of a run: a byte for 64 of them, and few unchanged ones are visited.
        static constexpr int64_t RUN = 64;
        bool all_;
        std::vector<std::atomic<bool>> runs_;
    };

    /// Writes the labels of a range. written: copies the previous ones first.
    Effort search(Range range, const std::vector<int64_t>& open, const PackedCenters<T>& centers,
                  int32_t* labels, const int32_t* previous, bool written,
                  Changed* changed = nullptr) {
        if (written) std::copy(previous + range.start, previous + range.stop, labels + range.start);
        return bounds_.search(rows_, range, open, centers, previous, [&](int64_t i, int32_t label) {
            labels[i] = label;
            if (changed != nullptr) changed->add(i);
        });
    }

    void move(Totals& changes, int64_t i, const T* row, const int32_t* labels, int32_t* previous,
              bool fresh) const {
        const double weight = rows_.weight(i);
        if (!fresh) changes.add(row, previous[i], -weight);
        changes.add(row, labels[i], weight);
        changes.changed += weight > 0 && labels[i] != previous[i];
        previous[i] = labels[i];
    }

    const Rows<T>& rows_;
    int k_;
    bool bounded_, skipped_ = false;
    Totals totals_;
    Tree<Totals> tree_;  // of the changes in one step
    Units ranges_;       // in which labels are searched
    Effort effort_;
    Bounds<T> bounds_;
    BoundsPolicy policy_;
};

/// Returns the session's Lloyd for k clusters. If there is none, makes one and sets `fresh`.
/// bounded: it may use bounds if there is memory for them. Fits of at most 2^18 numbers in
/// one call use none: they end before bounds save what it takes to build them.
template <class T>
Lloyd<T>& lloyd_for(Workspace<T>& work, int k, bool& fresh, bool bounded = true) {
    work.copy_to_int8(k);
    if (work.lloyd == nullptr || work.lloyd->k() != k) {
        bounded &= work.bounds_bytes / Bounds<T>::bytes(work.rows.d, k) >= work.rows.n;
        work.lloyd = std::make_unique<Lloyd<T>>(work.rows, k, work.pool.size(), bounded);
        fresh = true;
    }
    return *work.lloyd;
}

/// The arguments of `nearest_sums` and `nearest_sum_changes`.
template <class T>
struct NearestArguments {
    View<const T> centers;
    int k;
    int32_t *labels, *previous;
    bool fresh;

    NearestArguments(Workspace<T>& work, Call& call)
        : centers(call.in<T>("centers", "(k, d)", {ANY, work.rows.d})),
          k(int(centers.shape[0])),
          labels(work.labels(call)),
          previous(work.previous(call)),
          fresh(call.flag("fresh")) {}
};

/// The sums (k, d) and masses (k) that a call asks for, and numbers of points (k) if it does.
struct SumArrays {
    double *sums, *masses;
    int64_t* counts = nullptr;

    SumArrays(Call& call, int k, int d, bool counted)
        : sums(call.out<double>("sums", "(k, d)", {k, d})),
          masses(call.out<double>("masses", "(k)", {k})),
          counts(counted ? call.out<int64_t>("counts", "(k)", {k}).data : nullptr) {}

    void fill(const Totals& found) const {
        std::copy(found.sums.begin(), found.sums.end(), sums);
        std::copy(found.masses.begin(), found.masses.end(), masses);
        if (counts != nullptr) std::copy(found.counts.begin(), found.counts.end(), counts);
    }
};

/// Sums (k, d) and masses (k) by nearest center; labels. fresh: `previous` holds no labels.
/// Returns the number of changed labels.
template <class T>
void run_nearest_sums(Workspace<T>& work, Call& call) {
    NearestArguments<T> given(work, call);
    const SumArrays out(call, given.k, work.rows.d, false);
    Lloyd<T>& lloyd = lloyd_for(work, given.k, given.fresh);
    const Totals& totals = lloyd.step(work.pool, given.centers, given.labels, given.previous,
                                      given.fresh, work.labels_written);
    work.labels_written = false;
    out.fill(totals);
    call.results = {totals.changed};
}

/// `nearest_sums` for a part of the data: by how much its labels change the sums, for the caller to
/// add up. Returns the number of changed labels, and true if the sums start again.
template <class T>
void run_nearest_sum_changes(Workspace<T>& work, Call& call) {
    NearestArguments<T> given(work, call);
    const SumArrays out(call, given.k, work.rows.d, true);
    Lloyd<T>& lloyd = lloyd_for(work, given.k, given.fresh);
    Totals changes(given.k, work.rows.d);
    changes.merge(lloyd.changes(work.pool, given.centers, given.labels, given.previous, given.fresh,
                                work.labels_written));
    work.labels_written = false;
    out.fill(changes);
    call.results = {changes.changed, given.fresh};
}

/// The sums of all points by label (k clusters, those of the last `nearest_sum_changes`), added up
/// from the beginning.
template <class T>
void run_label_sums(Workspace<T>& work, Call& call) {
    const int32_t* labels = work.labels(call);
    const int k = int(call.integer("k"));
    const SumArrays out(call, k, work.rows.d, true);
    Call::require(work.lloyd != nullptr && work.lloyd->k() == k, "k",
                  "run `nearest_sum_changes` first");
    Totals sums(k, work.rows.d);
    sums.merge(work.lloyd->sums(work.pool, labels));
    out.fill(sums);
}

/// Returns the number of points that the last `nearest_sums` compared with centers.
template <class T>
void run_looked_at(Workspace<T>& work, Call& call) {
    call.results = {work.lloyd == nullptr ? int64_t(0) : work.lloyd->looked_at()};
}

}  // namespace lloydformer::ISA
