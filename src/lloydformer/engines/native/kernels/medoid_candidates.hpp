// Candidates for medoids: rows near the mean of a cluster, and rows that are drawn.
//
// Ties go to the lower row, so threads do not matter. Draws are those of numerics/noise.py.
#pragma once

#include "medoid_partition.hpp"
#include "philox.hpp"

namespace lloydformer::ISA {

typedef std::vector<int32_t> RowList;  // row numbers, ascending

/// Rows of a partition, found in several ways.
template <class T>
class MedoidCandidates {
  public:
    explicit MedoidCandidates(const MedoidPartition<T>& partition) : state_(partition) {}

    /// Rows with weight whose nearest medoid is at a place; with `next`, or whose second nearest
    /// is.
    RowList members(int place, bool next) const {
        const Units units = Units(state_.rows.n, 8192, 1);
        std::vector<RowList> parts(units.count);
        state_.pool.run(units.count,
                        [&](int u, int) { collect(units.unit(u), place, next, parts[u]); });
        RowList all = std::move(parts[0]);
        for (int u = 1; u < units.count; u++)
            all.insert(all.end(), parts[u].begin(), parts[u].end());
        return all;
    }

    /// The weighted mean of some rows.
    Aligned<T> mean(const RowList& list) const {
        const int d = state_.rows.d;
        const Numbers sums = fold(state_.pool, Span{int64_t(list.size())}, d + 1, [&](Range) {
            return [&](Numbers& found, Range leaf) {
                for (int64_t t = leaf.start; t < leaf.stop; t++) {
                    const T* x = state_.rows[list[t]];
                    const double w = state_.weight(list[t]);
                    for (int f = 0; f < d; f++) found[f] += w * x[f];
                    found[d] += w;
                }
            };
        });
        Aligned<T> found(d);
        for (int f = 0; f < d; f++) found[f] = T(sums[f] / (sums[d] > 0 ? sums[d] : 1));
        return found;
    }

    /// Distances of a place, or a row, to some rows.
    std::vector<T> distances_to(const T* x, const RowList& list) const {
        std::vector<T> found(list.size());
        const Units units(int64_t(list.size()), 1024, 1);
        state_.pool.run(list.empty() ? 0 : units.count, [&](int u, int) {
            RowBatch<T> batch(state_.rows, true);
            BatchDistances<T> away;
            for (int64_t t = units.unit(u).start; t < units.unit(u).stop; t += BATCH) {
                const int count = int(std::min<int64_t>(BATCH, units.unit(u).stop - t));
                batch.gather(&list[t], count);
                distances_from(state_.rows, x, batch, away);
                std::copy_n(away.to, count, &found[t]);
            }
        });
        return found;
    }

    /// Distances of row x to some rows: looked up if they are known.
    std::vector<T> distances_to(int32_t x, const RowList& list) const {
        const T* known = state_.rows.known(x);
        if (known == nullptr) return distances_to(state_.rows[x], list);
        std::vector<T> found(list.size());
        for (size_t t = 0; t < list.size(); t++) found[t] = known[list[t]];
        return found;
    }

    /// The rows of a list that are nearest to its mean, nearest first. Two rows are equally near to
    /// it, so rounding must not order them.
    RowList nearest_to_mean(const RowList& list, size_t count) const {
        if (list.size() <= 2)
            return RowList(list.begin(), list.begin() + std::min(count, list.size()));
        const std::vector<T> away = distances_to(mean(list).data(), list);
        return first_of(away, list, count);
    }

    /// Rows of a list, or of all if it is null, drawn without replacement in proportion to weight
    /// times distance to the medoid: those with the largest log w r + Gumbel noise.
    RowList drawn(const Noise& noise, int number, const RowList* list, size_t count) const {
        const int64_t n = list == nullptr ? state_.rows.n : int64_t(list->size());
        const Units units(n, 4096, 1);
        std::vector<std::vector<Key>> parts(units.count);
        state_.pool.run(n == 0 ? 0 : units.count, [&](int u, int) {
            std::vector<Key>& best = parts[u];  // a heap, the last one on top
            for (int64_t t = units.unit(u).start; t < units.unit(u).stop; t++) {
                const int32_t i = list == nullptr ? int32_t(t) : (*list)[t];
                const double mass = state_.weight(i) * double(state_.near[i]);
                if (!(mass > 0)) continue;
                const double uniform = noise.uniform(number / 2, i)[number % 2];
                const bool full = best.size() == count;
                if (full && (1 - uniform) / mass > best[0].late) continue;  // -log u >= 1 - u
                const Key key{-std::log(uniform) / mass, i};
                if (full && !(key < best[0])) continue;
                if (full) std::pop_heap(best.begin(), best.end()), best.pop_back();
                best.push_back(key);
                std::push_heap(best.begin(), best.end());
            }
        });
        std::vector<Key> all;
        for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
        std::sort(all.begin(), all.end());
        all.resize(std::min(count, all.size()));
        RowList rows;
        for (const Key& key : all) rows.push_back(key.row);
        return rows;
    }

  private:
    /// A drawn row: the smallest `late` are drawn.
    struct Key {
        double late;
        int32_t row;

        bool operator<(const Key& other) const {
            return std::make_pair(order_of(late), row) <
                   std::make_pair(order_of(other.late), other.row);
        }
    };

    void collect(Range range, int place, bool next, RowList& found) const {
        typedef I<float> Places;
        constexpr int lanes = W<float>;
        const int32_t *first = state_.first.data(), *second = state_.second.data();
        const Places wanted = Places{} + place;
        int64_t i = range.start;
        for (; i + lanes <= range.stop; i += lanes) {
            Places a, b;
            std::memcpy(&a, first + i, sizeof a), std::memcpy(&b, second + i, sizeof b);
            const Places own = a == wanted, other = b == wanted;
            unsigned hits = bits(own) | (next ? bits(other) : 0u);
            for (; hits != 0; hits &= hits - 1) add_row(i + __builtin_ctz(hits), found);
        }
        for (; i < range.stop; i++)
            if (first[i] == place || (next && second[i] == place)) add_row(i, found);
    }

    void add_row(int64_t i, RowList& found) const {
        if (state_.weight(i) > 0) found.push_back(int32_t(i));
    }

    static RowList first_of(const std::vector<T>& away, const RowList& list, size_t count) {
        std::vector<std::pair<decltype(order_of(T())), int32_t>> order(list.size());
        for (size_t t = 0; t < list.size(); t++) order[t] = {order_of(away[t]), list[t]};
        count = std::min(count, order.size());
        std::partial_sort(order.begin(), order.begin() + count, order.end());
        RowList rows(count);
        for (size_t t = 0; t < count; t++) rows[t] = order[t].second;
        return rows;
    }

    const MedoidPartition<T>& state_;
};

}  // namespace lloydformer::ISA
