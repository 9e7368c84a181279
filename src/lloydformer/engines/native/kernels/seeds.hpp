// Folds of k-means++: distances to the nearest seed, and what candidates would make of them.
#pragma once

#include "centers.hpp"
#include "fold.hpp"

namespace lloydformer::ISA {

/// Squared distances of a block to one center, by differences.
template <class T>
inline void distances_to(const T* lanes, int d, const T* center, V<T> (&away)[2]) {
    away[0] = away[1] = V<T>{};
    for (int f = 0; f < d; f++)
        for (int h = 0; h < 2; h++) {
            const V<T> apart = load(lanes + f * P<T> + h * W<T>) - splat(center[f]);
            away[h] += apart * apart;
        }
}

/// Seeds so far. A point whose seed is twice as far from a new one as from the point itself stays
/// with it, so only points near to a new seed are looked at. `labels` name each point's seed.
template <class T>
class Seeds {
  public:
    explicit Seeds(const Rows<T>& rows) : rows_(rows) {}

    /// Distances to the nearest seed, one being new; the mass of w d^2 in each leaf.
    void closer(Team& team, const T* seed, bool first, T* distances, int32_t* labels, int64_t leaf,
                double* masses) {
        if (first) seeds_.clear();
        const std::vector<T> reach = reaches(seed, 1);
        seeds_.insert(seeds_.end(), seed, seed + rows_.d);
        const int32_t label = int32_t(reach.size());
        team.run(int((rows_.n + leaf - 1) / leaf), [&](int number) {
            const int64_t start = number * leaf, stop = std::min(rows_.n, start + leaf);
            if (first) std::fill(distances + start, distances + stop, HUGE_SCORE<T>);
            const auto near = nearby(reach, distances, labels, start, stop);
            each_block(near, [&](const int64_t* points, int count, const T* lanes) {
                T away[P<T>];
                measure(lanes, seed, away);
                for (int r = 0; r < count; r++)
                    if (away[r] < distances[points[r]])
                        distances[points[r]] = away[r], labels[points[r]] = label;
            });
            masses[number] = mass(distances, start, stop);
        });
    }

    /// By how much the sum of w d^2 would shrink with each of m candidates as a new seed.
    Numbers gains(Team& team, const T* candidates, int m, const T* distances,
                  const int32_t* labels) const {
        const std::vector<T> reach = reaches(candidates, m);
        return fold(team, rows_.n, m, [&](Numbers& gain, int64_t start, int64_t stop) {
            const auto near = nearby(reach, distances, labels, start, stop);
            each_block(near, [&](const int64_t* points, int count, const T* lanes) {
                T now[P<T>]{}, weight[P<T>]{};
                for (int r = 0; r < count; r++) {
                    now[r] = distances[points[r]];
                    weight[r] = T(rows_.weight(points[r]));
                }
                for (int c = 0; c < m; c++) {
                    V<T> away[2], less{};
                    distances_to(lanes, rows_.d, candidates + int64_t(c) * rows_.d, away);
                    for (int h = 0; h < 2; h++)
                        less += max<T>(load(now + h * W<T>) - away[h], V<T>{}) *
                                load(weight + h * W<T>);
                    gain[c] += sum<T>(less);
                }
            });
        });
    }

    /// Greedy k-means++ in one call: seeds after the first row, each the best of some candidates
    /// that are drawn by w d^2. Ends early where no mass is left. Returns how many rows there are.
    int choose(Team& team, int64_t* chosen, int k, const double* draws, int trials, T* distances,
               int32_t* labels) {
        std::vector<T> candidates(int64_t(trials) * rows_.width), row(rows_.width);
        std::vector<int64_t> drawn(trials);
        for (int j = 1; j < k; j++) {
            double mass;
            rows_.see(chosen[j - 1], row.data());
            closer(team, row.data(), j == 1, distances, labels, rows_.n, &mass);
            if (mass <= 0) return j;
            draw(draws + (j - 1) * trials, trials, distances, drawn.data());
            for (int t = 0; t < trials; t++) {
                rows_.see(drawn[t], row.data());
                std::copy_n(row.data(), rows_.d, &candidates[int64_t(t) * rows_.d]);
            }
            const Numbers gain = gains(team, candidates.data(), trials, distances, labels);
            chosen[j] = drawn[std::max_element(gain.begin(), gain.end()) - gain.begin()];
        }
        return k;
    }

  private:
    /// The first rows at which the sum of w d^2 goes beyond fractions of the whole.
    void draw(const double* fractions, int count, const T* distances, int64_t* drawn) const {
        std::vector<double> reached(rows_.n);
        double sum = 0;
        for (int64_t i = 0; i < rows_.n; i++)
            reached[i] = sum += rows_.weight(i) * double(distances[i]);
        const auto last = std::lower_bound(reached.begin(), reached.end(), sum);
        for (int t = 0; t < count; t++) {
            const auto at = std::upper_bound(reached.begin(), reached.end(), fractions[t] * sum);
            drawn[t] = std::min(at, last) - reached.begin();
        }
    }

    /// For each seed, a quarter of the squared distance to the nearest of some new ones: points
    /// that are nearer to it than that cannot be nearer to them. A little less, for rounding.
    std::vector<T> reaches(const T* fresh, int m) const {
        std::vector<T> reach(seeds_.size() / rows_.d, HUGE_SCORE<T>);
        for (size_t s = 0; s < reach.size(); s++)
            for (int c = 0; c < m; c++) {
                const double apart = squared_distance_exactly(
                    &seeds_[s * rows_.d], fresh + int64_t(c) * rows_.d, rows_.d);
                reach[s] = std::min(reach[s], T(apart * 0.2499));
            }
        return reach;
    }

    /// Points of a range that may be nearer to a new seed than to their own.
    std::vector<int64_t> nearby(const std::vector<T>& reach, const T* distances,
                                const int32_t* labels, int64_t start, int64_t stop) const {
        std::vector<int64_t> near(stop - start);
        int64_t count = 0;
        for (int64_t i = start; i < stop; i++) {
            near[count] = i;
            count += reach.empty() || distances[i] > reach[labels[i]];
        }
        near.resize(count);
        return near;
    }

    /// The sum of w d^2, in four parts so that an addition need not wait for the last one.
    double mass(const T* distances, int64_t start, int64_t stop) const {
        double parts[4]{};
        for (int64_t i = start; i < stop; i++) parts[i % 4] += rows_.weight(i) * distances[i];
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }

    template <class Each>
    void each_block(const std::vector<int64_t>& points, Each each) const {
        Block<T> block(rows_);
        for (size_t p = 0; p < points.size(); p += P<T>) {
            const int count = int(std::min<size_t>(P<T>, points.size() - p));
            for (size_t next = p + P<T>; next < std::min(p + 2 * P<T>, points.size()); next++)
                rows_.fetch(points[next]);
            block.gather(&points[p], count);
            each(&points[p], count, block.lanes());
        }
    }

    void measure(const T* lanes, const T* center, T (&away)[P<T>]) const {
        V<T> found[2];
        distances_to(lanes, rows_.d, center, found);
        for (int h = 0; h < 2; h++) store(away + h * W<T>, found[h]);
    }

    const Rows<T>& rows_;
    std::vector<T> seeds_;
};

}  // namespace lloydformer::ISA
