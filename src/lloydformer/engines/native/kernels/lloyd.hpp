// Sums, masses and labels of Lloyd's iteration, from one iteration to the next.
#pragma once

#include "assign.hpp"
#include "bounds.hpp"
#include "team.hpp"

namespace lloydformer::ISA {

/// Sums of points and weights by label, in float64; `count` of points that have weight.
struct Totals {
    std::vector<double> sums, masses;
    std::vector<int64_t> counts;
    int64_t changed = 0;

    Totals(int k, int d) : sums(int64_t(k) * d), masses(k), counts(k) {}

    template <class T> void add(const T* row, int d, int label, double weight) {
        double* sum = &sums[int64_t(label) * d];
        for (int f = 0; f < d; f++) sum[f] += weight * row[f];
        masses[label] += weight;
        counts[label] += (weight > 0) - (weight < 0);
    }

    void merge(const Totals& other) {
        for (size_t i = 0; i < sums.size(); i++) sums[i] += other.sums[i];
        for (size_t j = 0; j < masses.size(); j++) masses[j] += other.masses[j], counts[j] += other.counts[j];
        changed += other.changed;
    }

    /// What additions and subtractions left behind of a cluster that has no point.
    void clear_empty(int d) {
        for (size_t j = 0; j < masses.size(); j++)
            if (counts[j] == 0) {
                masses[j] = 0;
                std::fill_n(&sums[j * d], d, 0.0);
            }
    }
};

/// Lloyd's iterations over the same points. Only points that change their label move sums.
template <class T> class Lloyd {
  public:
    Lloyd(const Rows<T>& rows, int k, bool bounded)
        : rows_(rows), k_(k), bounded_(bounded), segments_(rows.n, int64_t(k) * rows.d), totals_(k, rows.d),
          bounds_(rows.n, rows.d, k) {}

    /// Labels for these centers; `before` holds those of the last call and is written, too.
    const Totals& step(Team& team, const T* centers, int32_t* labels, int32_t* before, bool fresh) {
        const Packed<T> packed(centers, k_, rows_.d);
        if (fresh) totals_ = Totals(k_, rows_.d), bounds_.forget(), few_changed_ = false;
        const bool skipping = bounded_ && (bounds_.known() || few_changed_);
        if (skipping) bounds_.follow(packed, rows_);
        std::vector<Totals> moved(segments_.count, Totals(k_, rows_.d));
        team.run(segments_.count, [&](int s) {
            Totals& mine = moved[s];
            const auto move = [&](int64_t i, int32_t label, const T* row) {
                const double weight = rows_.weight(i);
                if (before[i] >= 0) mine.add(row, rows_.d, before[i], -weight);
                mine.add(row, rows_.d, label, weight);
                mine.changed += weight > 0;
                before[i] = labels[i] = label;
            };
            const int64_t start = segments_.start(s), stop = segments_.start(s + 1);
            if (skipping)
                bounds_.assign(rows_, start, stop, packed, before, move);
            else
                assign(rows_, start, stop, packed, [&](int64_t i, Block<T>& block, const int32_t* found) {
                    for (int r = 0; r < block.count; r++)
                        if (found[r] != before[i + r]) move(i + r, found[r], block.row(r));
                });
        });
        totals_.changed = 0;
        for (const Totals& part : moved) totals_.merge(part);
        totals_.clear_empty(rows_.d);
        few_changed_ = totals_.changed < rows_.n / 8;
        return totals_;
    }

    /// Do bounds say which points to look at?
    bool skips() const { return bounds_.known(); }

  private:
    const Rows<T>& rows_;
    int k_;
    bool bounded_;
    Segments segments_;
    Totals totals_;
    Bounds<T> bounds_;
    bool few_changed_ = false;
};

}  // namespace lloydformer::ISA
