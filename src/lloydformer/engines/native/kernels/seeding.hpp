// The folds NewSeed and Potential and the task PlusPlusSeeds of k-means++: distances to the
// nearest seed, and by how much candidates would reduce them.
//
// Before and after, `distances` and `labels` are those of the nearest seed so far, the first of
// equally near ones. Rows that the triangle inequality rules out are skipped, and where there is a
// copy of the rows in int8, candidates that its products rule out; nothing would have changed.
#pragma once

#include "candidate_screen.hpp"
#include "workspace.hpp"

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

/// The seeds so far. A point keeps its seed if the new seed is at least twice as far from that seed
/// as the point is, so only points near a new seed are compared with it. `labels` hold the number
/// of each point's seed.
template <class T>
class Seeding {
  public:
    explicit Seeding(const Rows<T>& rows) : rows_(rows) {}

    bool empty() const { return seeds_.empty(); }

    /// Updates the distances to the nearest seed for a new seed; the sum of w d^2 in each range of
    /// `leaf` rows. first: there are no other seeds.
    void add_seed(ThreadPool& pool, const T* seed, bool first, T* distances, int32_t* labels,
                  int64_t leaf, double* masses) {
        if (first) seeds_.clear(), nearer_.clear();
        const int candidate = find_candidate(seed, leaf);
        const std::vector<T> reach = candidate < 0 ? reaches(seed, 1) : std::vector<T>();
        const int32_t label = int32_t(seeds_.size() / rows_.d);
        seeds_.insert(seeds_.end(), seed, seed + rows_.d);
        pool.run(int((rows_.n + leaf - 1) / leaf), [&](int number, int) {
            const int64_t start = number * leaf, stop = std::min(rows_.n, start + leaf);
            if (candidate >= 0) {
                for (const auto& [row, away] : nearer_[number][candidate])
                    distances[start + row] = away, labels[start + row] = label;
                masses[number] = mass(distances, start, stop);
                return;
            }
            if (first) {
                std::fill(distances + start, distances + stop, HUGE_SCORE<T>);
                // No row is nearer to NaN: labels are indices, and not all of them are set below.
                std::fill(labels + start, labels + stop, 0);
            }
            PointBlock<T> block(rows_);
            const auto near = nearby(reach, distances, labels, {start, stop});
            each_block(near, block, [&](const int64_t* points, int count) {
                T away[P<T>];
                measure(block.lanes(), seed, away);
                for (int r = 0; r < count; r++)
                    if (away[r] < distances[points[r]])
                        distances[points[r]] = away[r], labels[points[r]] = label;
            });
            masses[number] = mass(distances, start, stop);
        });
        nearer_.clear();
    }

    /// By how much the sum of w d^2 would shrink with each of m candidates as a new seed.
    Numbers gains(ThreadPool& pool, const T* candidates, int m, const T* distances,
                  const int32_t* labels) {
        const std::vector<T> reach = reaches(candidates, m);
        nearer_.clear();
        if (is_screened(m)) return screened_gains(pool, candidates, m, reach, distances, labels);
        return fold(pool, rows_, m, [&](Range) {
            return [&, block = PointBlock<T>(rows_)](Numbers& gain, Range leaf) mutable {
                const auto near = nearby(reach, distances, labels, leaf);
                each_block(near, block, [&](const int64_t* points, int count) {
                    T now[P<T>]{}, weight[P<T>]{};
                    for (int r = 0; r < count; r++) {
                        now[r] = distances[points[r]];
                        weight[r] = T(rows_.weight(points[r]));
                    }
                    for (int c = 0; c < m; c++) {
                        V<T> away[2], less{};
                        distances_to(block.lanes(), rows_.d, candidates + int64_t(c) * rows_.d,
                                     away);
                        for (int h = 0; h < 2; h++)
                            less += max<T>(load(now + h * W<T>) - away[h], V<T>{}) *
                                    load(weight + h * W<T>);
                        gain[c] += sum<T>(less);
                    }
                });
            };
        });
    }

    /// Greedy k-means++ from chosen[0] on: each seed is the best of `trials` candidates that are
    /// drawn with probabilities w d^2. Returns the number of seeds: fewer than k if no mass is
    /// left.
    int choose(ThreadPool& pool, int64_t* chosen, int k, const double* draws, int trials,
               T* distances, int32_t* labels) {
        std::vector<T> candidates(int64_t(trials) * rows_.width), row(rows_.width);
        std::vector<int64_t> drawn(trials);
        for (int j = 1; j < k; j++) {
            double mass;
            rows_.read(chosen[j - 1], row.data());
            add_seed(pool, row.data(), j == 1, distances, labels, rows_.n, &mass);
            if (mass <= 0) return j;
            draw(draws + (j - 1) * trials, trials, distances, drawn.data());
            for (int t = 0; t < trials; t++) {
                rows_.read(drawn[t], row.data());
                std::copy_n(row.data(), rows_.d, &candidates[int64_t(t) * rows_.d]);
            }
            const Numbers gain = gains(pool, candidates.data(), trials, distances, labels);
            chosen[j] = drawn[std::max_element(gain.begin(), gain.end()) - gain.begin()];
        }
        nearer_.clear();  // rows are not compared with the last seed
        return k;
    }

  private:
    // Seeds from which on candidates are screened: before, each is the nearest of many rows.
    static constexpr int64_t FEW_SEEDS = 16;
    // Candidates that are screened together: with more, lists of rows would take too much memory.
    static constexpr int MOST_CANDIDATES = TILE_CENTERS;

    /// Rows that a candidate is nearer to, counted from the first row of their leaf, and how near.
    typedef std::vector<std::pair<int32_t, T>> RowsNearer;

    bool is_screened(int m) const {
        return rows_.int8 != nullptr && m <= MOST_CANDIDATES &&
               int64_t(seeds_.size()) >= FEW_SEEDS * rows_.d;
    }

    /// `gains` by screening. Also notes the rows that each candidate is nearer to, and how near:
    /// one of the candidates will be the next seed. Sums have the bits of `gains`, which adds up
    /// blocks of the rows that `nearby` finds: here as well, and rows that are ruled out would have
    /// added 0.
    Numbers screened_gains(ThreadPool& pool, const T* candidates, int m,
                           const std::vector<T>& reach, const T* distances, const int32_t* labels) {
        const CandidateScreen<T> screen(*rows_.int8, candidates, m, rows_.d);
        last_.assign(candidates, candidates + int64_t(m) * rows_.d);
        nearer_.assign((rows_.n + rows_.leaf - 1) / rows_.leaf, std::vector<RowsNearer>(m));
        return fold(pool, rows_, m, [&](Range) {
            return [&, block = PointBlock<T>(rows_)](Numbers& gain, Range leaf) mutable {
                const auto near = nearby(reach, distances, labels, leaf);
                std::vector<std::vector<int64_t>> places(m);
                screen.run(
                    int64_t(near.size()), [&](int64_t p) { return near[p]; },
                    [&](int64_t i) { return distances[i]; },
                    [&](int64_t p, int c) { places[c].push_back(p); });
                for (int c = 0; c < m; c++) {
                    const T* candidate = candidates + int64_t(c) * rows_.d;
                    RowsNearer& found = nearer_[leaf.start / rows_.leaf][c];
                    gain[c] +=
                        gain_of(candidate, near, places[c], block, distances, leaf.start, found);
                }
            };
        });
    }

    /// The gain of one candidate from rows near[p] for the places p; appends those that it is
    /// nearer to.
    double gain_of(const T* candidate, const std::vector<int64_t>& near,
                   const std::vector<int64_t>& places, PointBlock<T>& block, const T* distances,
                   int64_t start, RowsNearer& found) const {
        double gain = 0;
        T less[P<T>]{}, weight[P<T>]{}, away[P<T>];
        int64_t numbers[P<T>], current = -1;  // the block of `near` that is added up
        const auto finish = [&] {
            V<T> total{};
            for (int h = 0; h < 2; h++) total += load(less + h * W<T>) * load(weight + h * W<T>);
            gain += sum<T>(total);
            std::fill_n(less, P<T>, T(0)), std::fill_n(weight, P<T>, T(0));
        };
        for (size_t first = 0; first < places.size(); first += P<T>) {
            const int count = int(std::min<size_t>(P<T>, places.size() - first));
            for (int r = 0; r < count; r++) numbers[r] = near[places[first + r]];
            for (size_t next = first + P<T>; next < std::min(first + 2 * P<T>, places.size());
                 next++)
                rows_.prefetch(near[places[next]]);
            block.gather(numbers, count);
            measure(block.lanes(), candidate, away);
            for (int r = 0; r < count; r++) {
                const T now = distances[numbers[r]];
                if (!(away[r] < now)) continue;
                const int64_t p = places[first + r];
                if (p / P<T> != current && current >= 0) finish();
                current = p / P<T>;
                less[p % P<T>] = now - away[r];
                weight[p % P<T>] = T(rows_.weight(numbers[r]));
                found.emplace_back(int32_t(numbers[r] - start), away[r]);
            }
        }
        if (current >= 0) finish();
        found.shrink_to_fit();  // kept until the seed is chosen, for all leaves
        return gain;
    }

    /// The candidate of the last `gains` that this seed is; -1 if it is none, or nothing is known.
    int find_candidate(const T* seed, int64_t leaf) const {
        if (nearer_.empty() || leaf != rows_.leaf) return -1;
        for (size_t c = 0; c < nearer_[0].size(); c++)
            if (std::equal(seed, seed + rows_.d, &last_[c * rows_.d])) return int(c);
        return -1;
    }

    /// The first rows at which the running sum of w d^2 exceeds fractions of the total.
    void draw(const double* fractions, int count, const T* distances, int64_t* drawn) const {
        std::vector<double> reached(rows_.n);
        double sum = 0;
        for (int64_t i = 0; i < rows_.n; i++)
            reached[i] = sum += rows_.weight(i) * double(distances[i]);
        const auto last = std::lower_bound(reached.begin(), reached.end(), sum);
        // Checked here, once for all draws: sums that are NaN or infinite have no order.
        for (int t = 0; t < count; t++) {
            const auto at = std::upper_bound(reached.begin(), reached.end(), fractions[t] * sum);
            drawn[t] = std::min<int64_t>(std::min(at, last) - reached.begin(), rows_.n - 1);
        }
    }

    /// For each seed, a quarter of the squared distance to the nearest of m new ones: points
    /// closer to the seed than that cannot be closer to a new one. 0.2499 in place of 0.25 is a
    /// margin for the rounding of distances in T.
    std::vector<T> reaches(const T* fresh, int m) const {
        std::vector<T> reach(seeds_.size() / rows_.d, HUGE_SCORE<T>);
        for (size_t s = 0; s < reach.size(); s++)
            for (int c = 0; c < m; c++) {
                const double apart = squared_distance_in_parts(
                    &seeds_[s * rows_.d], fresh + int64_t(c) * rows_.d, rows_.d);
                reach[s] = std::min(reach[s], T(apart * 0.2499));
            }
        return reach;
    }

    /// Points of a range that may be nearer to a new seed than to their own.
    std::vector<int64_t> nearby(const std::vector<T>& reach, const T* distances,
                                const int32_t* labels, Range range) const {
        std::vector<int64_t> near(range.stop - range.start);
        int64_t count = 0;
        for (int64_t i = range.start; i < range.stop; i++) {
            near[count] = i;
            // Labels are those of `add_seed`: numbers of seeds, which no distance can change.
            count += reach.empty() || distances[i] > reach[labels[i]];
        }
        near.resize(count);
        return near;
    }

    /// The sum of w d^2, in four independent parts for speed.
    double mass(const T* distances, int64_t start, int64_t stop) const {
        double parts[4]{};
        for (int64_t i = start; i < stop; i++) parts[i % 4] += rows_.weight(i) * distances[i];
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }

    template <class Each>
    void each_block(const std::vector<int64_t>& points, PointBlock<T>& block, Each each) const {
        for (size_t p = 0; p < points.size(); p += P<T>) {
            const int count = int(std::min<size_t>(P<T>, points.size() - p));
            for (size_t next = p + P<T>; next < std::min(p + 2 * P<T>, points.size()); next++)
                rows_.prefetch(points[next]);
            block.gather(&points[p], count);
            each(&points[p], count);
        }
    }

    void measure(const T* lanes, const T* center, T (&away)[P<T>]) const {
        V<T> found[2];
        distances_to(lanes, rows_.d, center, found);
        for (int h = 0; h < 2; h++) store(away + h * W<T>, found[h]);
    }

    const Rows<T>& rows_;
    std::vector<T> seeds_;
    std::vector<T> last_;                          // candidates of the last `gains`
    std::vector<std::vector<RowsNearer>> nearer_;  // by leaf and candidate
};

template <class T>
Seeding<T>& seeding_of(Workspace<T>& work) {
    if (work.seeding == nullptr) work.seeding = std::make_unique<Seeding<T>>(work.rows);
    return *work.seeding;
}

/// Adds a seed; the sum of w d^2 in each leaf.
template <class T>
void run_new_seed(Workspace<T>& work, Call& call) {
    const Rows<T>& rows = work.rows;
    const auto seed = call.in<T>("seed", "(d)", {rows.d});
    const bool first = call.flag("first");
    int32_t* labels = work.labels(call);
    T* distances = work.distances(call);
    const int64_t n_leaves = (rows.n + rows.leaf - 1) / rows.leaf;
    double* masses = call.out<double>("masses", "(n_leaves)", {n_leaves});
    Call::require(first || !seeding_of(work).empty(), "first", "pass True: there is no seed yet");
    if (first) work.copy_for_seeding();
    work.labels_written = true;
    seeding_of(work).add_seed(work.pool, seed, first, distances, labels, rows.leaf, masses);
}

/// By how much the sum of w d^2 would shrink with each of the candidates (m, d) as a new seed, (m).
template <class T>
void run_potential(Workspace<T>& work, Call& call) {
    const auto candidates = call.in<T>("candidates", "(m, d)", {ANY, work.rows.d});
    const int32_t* labels = work.labels(call);
    const T* distances = work.distances(call);
    const int64_t m = candidates.shape[0];
    double* gains = call.out<double>("gains", "(m)", {m});
    const Numbers found = seeding_of(work).gains(work.pool, candidates, int(m), distances, labels);
    std::copy(found.begin(), found.end(), gains);
}

/// Greedy k-means++ in one call: rows (k), of which the first one is given, with draws
/// (k - 1, trials) from [0, 1). Returns the number of seeds.
template <class T>
void run_plus_plus_seeds(Workspace<T>& work, Call& call) {
    const auto rows = call.out<int64_t>("rows", "(k)", {ANY});
    const int64_t k = rows.shape[0];
    const auto draws = call.in<double>("draws", "(k - 1, trials)", {k - 1, ANY});
    Call::require(k > 0 && rows[0] >= 0 && rows[0] < work.rows.n, "rows",
                  "pass (k) whose first number is a row, from 0 to n - 1");
    int32_t* labels = work.labels(call);
    T* distances = work.distances(call);
    work.labels_written = true;
    call.results = {int64_t(seeding_of(work).choose(work.pool, rows, int(k), draws,
                                                    int(draws.shape[1]), distances, labels))};
}

}  // namespace lloydformer::ISA
