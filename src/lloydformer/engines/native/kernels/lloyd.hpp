// Sums, masses and labels of Lloyd's iteration, from one iteration to the next.
#pragma once

#include "assign.hpp"
#include "meeting.hpp"
#include "session.hpp"
#include "team.hpp"
#include "worth.hpp"

namespace lloydformer::ISA {

/// Sums of points and weights by label, in float64, and numbers of points that have weight.
struct Totals {
    std::vector<double> sums, masses;
    std::vector<int64_t> counts;
    int64_t changed = 0;
    Effort effort;

    Totals(int k, int d) : sums(int64_t(k) * d), masses(k), counts(k), d_(d), touched_(k) {}

    template <class T>
    void add(const T* row, int label, double weight) {
        double* sum = &sums[int64_t(label) * d_];
        for (int f = 0; f < d_; f++) sum[f] += weight * row[f];
        masses[label] += weight;
        counts[label] += (weight > 0) - (weight < 0);
        touched_[label] = true;
    }

    /// Takes what another one has; that is empty afterwards.
    void take(Totals& other) {
        for (size_t j = 0; j < masses.size(); j++) {
            if (!other.touched_[j]) continue;
            for (int f = 0; f < d_; f++) sums[j * d_ + f] += other.sums[j * d_ + f];
            masses[j] += other.masses[j], counts[j] += other.counts[j];
            if (counts[j] == 0) clear(j);  // of what additions and subtractions leave behind
            other.clear(j);
        }
        changed += other.changed, effort.looked_at += other.effort.looked_at,
            effort.met += other.effort.met;
        other.changed = 0, other.effort = {};
    }

    void clear(size_t j) {
        std::fill_n(&sums[j * d_], d_, 0.0);
        masses[j] = 0, counts[j] = 0;
        touched_[j] = false;
    }

  private:
    int d_;
    std::vector<char> touched_;
};

/// Lloyd's iterations over the same points. Only points that change their label move sums.
template <class T>
class Lloyd {
  public:
    Lloyd(const Rows<T>& rows, int k, bool bounded)
        : rows_(rows),
          k_(k),
          bounded_(bounded),
          segments_(rows.n, int64_t(k) * rows.d),
          totals_(k, rows.d),
          moved_(segments_.count, totals_),
          bounds_(rows.n, rows.d, k),
          worth_(rows.n, rows.d, k, W<T>) {}

    /// Labels for these centers; `before` holds those of the last call and is written, too.
    /// fresh: the sums begin anew. written: labels may not be those of the last call.
    const Totals& step(Team& team, const T* centers, int32_t* labels, int32_t* before, bool fresh,
                       bool written = false) {
        const Packed<T> packed(centers, k_, rows_.d);
        if (fresh) totals_ = Totals(k_, rows_.d), worth_.begin(), bounds_.forget();
        skipped_ = bounded_ && worth_.now(bounds_.known());
        if (skipped_) bounds_.follow(packed, rows_);
        team.run(segments_.count, [&](int s) {
            Totals& mine = moved_[s];
            const auto move = [&](int64_t i, int32_t label, const T* row) {
                const double weight = rows_.weight(i);
                if (!fresh) mine.add(row, before[i], -weight);
                mine.add(row, label, weight);
                mine.changed += weight > 0 && label != before[i];
                before[i] = labels[i] = label;
            };
            const int64_t start = segments_.start(s), stop = segments_.start(s + 1);
            if (skipped_ && written) std::copy(before + start, before + stop, labels + start);
            if (skipped_)
                mine.effort = bounds_.assign(rows_, start, stop, packed, before, move);
            else
                assign(rows_, start, stop, packed,
                       [&](int64_t i, Block<T>& block, const int32_t* found) {
                           std::copy_n(found, block.count, labels + i);
                           for (int r = 0; r < block.count; r++)
                               if (fresh || found[r] != before[i + r])
                                   move(i + r, found[r], block.row(r));
                       });
        });
        totals_.changed = 0, totals_.effort = {};
        for (Totals& part : moved_) totals_.take(part);
        if (skipped_ && !worth_.keep(totals_.effort, totals_.changed)) bounds_.forget();
        worth_.see(totals_.changed);
        return totals_;
    }

    /// Labels alone, for centers near those of the last step. It has bounds, and loses them.
    void relabel(Team& team, const Packed<T>& centers, int32_t* labels, const int32_t* before) {
        bounds_.follow(centers, rows_);
        team.run(segments_.count, [&](int s) {
            const int64_t start = segments_.start(s), stop = segments_.start(s + 1);
            std::copy(before + start, before + stop, labels + start);
            bounds_.assign(rows_, start, stop, centers, before,
                           [&](int64_t i, int32_t label, const T*) { labels[i] = label; });
        });
        bounds_.forget();
    }

    /// Do bounds say which points to look at?
    bool skips() const { return bounds_.known(); }
    /// How many points the last step looked at.
    int64_t looked_at() const { return skipped_ ? totals_.effort.looked_at : rows_.n; }

  private:
    const Rows<T>& rows_;
    int k_;
    bool bounded_, skipped_ = false;
    Segments segments_;
    Totals totals_;
    std::vector<Totals> moved_;  // by segment, in one step
    Bounds<T> bounds_;
    Worth worth_;
};

}  // namespace lloydformer::ISA
