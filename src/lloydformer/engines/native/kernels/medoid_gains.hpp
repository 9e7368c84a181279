// By how much exchanges of medoids lower the loss: a table of candidates and medoids.
//
// Gains are added in float64 along the tree, in row order within a leaf. They are rounded, so the
// search checks the loss after each exchange.
#pragma once

#include "medoid_partition.hpp"

namespace lloydformer::ISA {

/// The best exchange of a table: candidate `row` comes, the medoid at `place` goes.
struct Exchange {
    int32_t row = -1;
    int place = -1;
    double gain = 0;
};

/// Gains: by how much the loss falls if a candidate takes the place of a medoid, for all pairs of a
/// batch of candidates and the medoids at once.
///
/// With a candidate at the distance a of a row, and the row's medoids at r <= s: where a < r the
/// loss falls by r - a whichever medoid goes, and the row no longer misses its own medoid, s - r;
/// where r <= a < s it misses its own medoid by s - a less.
template <class T>
class MedoidGains {
  public:
    explicit MedoidGains(const MedoidPartition<T>& partition)
        : state_(partition), batch_(partition.rows, partition.rows.known(0) == nullptr) {}

    /// The best exchange by the rows of a list: a lower bound of its gain, as every other row can
    /// only add to the gain. Null: all rows, and the gain is exact.
    Exchange best(const int32_t* candidates, int count, const std::vector<int32_t>* list) {
        if (count == 0) return {};
        batch_.gather(candidates, count);
        const int64_t n = list == nullptr ? state_.rows.n : int64_t(list->size());
        const Numbers table =
            fold(state_.pool, Span{n}, int64_t(state_.k() + 1) * BATCH, [&](Range) {
                return [&](Numbers& sums, Range leaf) {
                    DistanceTile<T> tile;
                    for (int64_t t = leaf.start; t < leaf.stop; t += BATCH)
                        add(tile, list, t, int(std::min<int64_t>(BATCH, leaf.stop - t)), sums);
                };
            });
        return best_of(table);
    }

  private:
    /// Adds rows from `start` on, or these of a list.
    void add(DistanceTile<T>& tile, const std::vector<int32_t>* list, int64_t start, int count,
             Numbers& table) const {
        if (list == nullptr)
            tile.read(state_.rows, batch_, start, count);
        else
            tile.gather(state_.rows, batch_, &(*list)[start], count);
        for (int t = 0; t < count; t++)
            add(list == nullptr ? start + t : (*list)[start + t], tile[t], table.data());
    }

    void add(int64_t i, const T* away, double* table) const {
        const double r = state_.near[i], s = state_.next[i], w = state_.weight(i);
        double* own = table + int64_t(state_.first[i] + 1) * BATCH;
        for (int part = 0; part < batch_.lanes_used(); part += W<T>) {
            if (bits(load(away + part) < splat(state_.next[i])) == 0) continue;  // nothing to add
            for (int p = part; p < part + W<T>; p += W<double>) {
                const V<double> a = as_doubles(away + p);
                const V<double> least = min<double>(a, splat(r)), most = min<double>(a, splat(s));
                const V<double> saved = w * (splat(r) - least);  // r - a, if above 0
                const V<double> missed = w * (splat(s) - max<double>(most, splat(r)));
                store(table + p, load(table + p) + saved);
                store(own + p, load(own + p) + missed);
            }
        }
    }

    /// On ties the first candidate, and the lowest place.
    Exchange best_of(const Numbers& table) const {
        alignas(64) double gains[BATCH], places[BATCH];
        for (int p = 0; p < batch_.lanes_used(); p += W<double>) {
            const V<double> saved = load(&table[p]);
            V<double> best = splat(-HUGE_SCORE<double>), place{};
            for (int j = 0; j < state_.k(); j++) {
                const V<double> gain =
                    saved + load(&table[int64_t(j + 1) * BATCH + p]) - state_.clusters[j].removal;
                const auto more = gain > best;
                best = more ? gain : best, place = more ? splat(double(j)) : place;
            }
            store(gains + p, best), store(places + p, place);
        }
        const int c = int(std::max_element(gains, gains + batch_.count) - gains);
        return {batch_.index[c], int(places[c]), gains[c]};
    }

    const MedoidPartition<T>& state_;
    RowBatch<T> batch_;
};

}  // namespace lloydformer::ISA
