// By how much exchanges of medoids lower the loss: a table of candidates and medoids.
//
// Gains are added in float64 along the tree, in row order within a leaf. They are rounded, so the
// search checks the loss after each exchange. Rows to which every candidate is farther than their
// second medoid add 0 to all gains: products in int8 rule most of them out.
#pragma once

#include <memory>

#include "candidate_screen.hpp"
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
        // The rows of a list are near the candidates.
        const auto screen = list == nullptr ? screen_for(candidates, count) : nullptr;
        const Numbers table =
            fold(state_.pool, Span{n}, int64_t(state_.k() + 1) * BATCH, [&](Range) {
                return [&](Numbers& sums, Range leaf) {
                    if (screen != nullptr) {
                        const std::vector<int32_t> near = rows_near(*screen, leaf);
                        return add_range(&near, {0, int64_t(near.size())}, sums);
                    }
                    add_range(list, leaf, sums);
                };
            });
        return best_of(table);
    }

  private:
    /// Null if all distances are computed.
    std::unique_ptr<CandidateScreen<T>> screen_for(const int32_t* candidates, int count) const {
        const Rows<T>& rows = state_.given();
        if (rows.int8 == nullptr || !state_.computes_squares()) return nullptr;
        if (!exchanges_are_screened(rows.screening, rows.d)) return nullptr;
        std::vector<T> row(rows.width), packed(int64_t(count) * rows.d);
        for (int c = 0; c < count; c++) {
            rows.read(candidates[c], row.data());
            std::copy_n(row.data(), rows.d, &packed[int64_t(c) * rows.d]);
        }
        return std::make_unique<CandidateScreen<T>>(*rows.int8, packed.data(), count, rows.d);
    }

    /// The rows of a range to which a candidate may be nearer than their second medoid.
    std::vector<int32_t> rows_near(const CandidateScreen<T>& screen, Range range) const {
        const int64_t n = range.stop - range.start;
        std::vector<char> near(n);
        screen.run(
            n, [&](int64_t p) { return range.start + p; },
            [&](int64_t i) {
                const double next = state_.next[i];
                // The root of a distance in T is rounded once more.
                return state_.rows.metric == Metric::euclidean
                           ? next * next * (1 + 4 * double(std::numeric_limits<T>::epsilon()))
                           : next;
            },
            [&](int64_t p, int) { near[p] = 1; });
        std::vector<int32_t> found;
        for (int64_t p = 0; p < n; p++)
            if (near[p]) found.push_back(int32_t(range.start + p));
        return found;
    }

    /// Adds the rows of a range, or those of a list.
    void add_range(const std::vector<int32_t>* list, Range range, Numbers& table) const {
        DistanceTile<T> tile;
        for (int64_t t = range.start; t < range.stop; t += BATCH)
            add(tile, list, t, int(std::min<int64_t>(BATCH, range.stop - t)), table);
    }

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

    /// On ties the first candidate, and the lowest place. Here row and place are indices whatever
    /// the gains are: `place` begins with 0, and changes to a place that was compared.
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
