// Relocation: clusters with large errors are split, and as many of the least useful centers
// removed.
//
// A trial works on a copy of the partition; the caller keeps its centers if the objective has
// fallen. Draws are those of numerics/noise.py. Sums are added in row order within a leaf, members
// of one cluster by one thread.
#pragma once

#include <numeric>

#include "cluster_split.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

/// A step of Lloyd's algorithm: the objective before, the squared shift of all centers, and by how
/// much moving them lowers the objective.
struct LloydStep {
    double objective, shift, less;
};

/// Relocations of centers among the same points, as in algorithms/relocating.py.
template <class T>
class Relocation {
  public:
    explicit Relocation(const Rows<T>& rows)
        : rows_(rows), kept_(rows.n, rows.d), tried_(rows.n, rows.d), away_(rows.n) {}

    /// From centers (k, d) to others, in place. Returns the objectives before and after.
    std::pair<double, double> run(ThreadPool& pool, double* centers, int k, const Moves& moves) {
        assign_kept(pool, centers, k);
        tried_ = kept_;
        grow(pool, moves);
        tried_.assign(pool, rows_, 0, [](auto&&...) {});
        tried_.to_means();
        while (tried_.k > k) prune(pool);
        const double after = finish(pool);
        std::copy(tried_.centers.begin(), tried_.centers.end(), centers);
        return {objective_, after};
    }

    /// Moves centers (k, d) to the means of their points, in place; one without mass stays.
    LloydStep lloyd(ThreadPool& pool, double* centers, int k) {
        assign_kept(pool, centers, k);
        assigned_ = false;
        const double less = kept_.to_means();
        double shift = 0;
        for (int64_t f = 0; f < int64_t(k) * rows_.d; f++) {
            const double apart = kept_.centers[f] - centers[f];
            shift += apart * apart;
            centers[f] = kept_.centers[f];
        }
        return {objective_, shift, less};
    }

    /// The objective of these centers; `masses` (k) gets the mass of each cluster.
    double measure(ThreadPool& pool, const double* centers, int k, double* masses) {
        assign_kept(pool, centers, k);
        std::copy(kept_.masses.begin(), kept_.masses.end(), masses);
        return objective_;
    }

  private:
    // For removal: the least useful centers, of which the exact cost is computed.
    static constexpr int CANDIDATES = 64;
    typedef std::vector<std::vector<int64_t>> Members;  // rows of some clusters

    /// Computes labels, distances and errors for these centers, unless they are those of the last
    /// call.
    void assign_kept(ThreadPool& pool, const double* centers, int k) {
        const bool same =
            kept_.k == k && std::equal(kept_.centers.begin(), kept_.centers.end(), centers);
        if (same && assigned_) return;
        if (!same) kept_.begin(centers, k);
        assigned_ = true;
        errors_ = kept_.assign(pool, rows_, k,
                               [&](double* errors, int64_t i, PointBlock<T>& block, int r,
                                   const PackedCenters<T>& packed) {
                                   const int label = kept_.labels[i];
                                   away_[i] = squared_distance(block.row(r), packed.row(label),
                                                               packed.width);
                                   errors[label] += rows_.weight(i) * double(away_[i]);
                               });
        objective_ = std::accumulate(errors_.begin(), errors_.end(), 0.0);
    }

    /// Moves the centers to the means, and splits some clusters.
    void grow(ThreadPool& pool, const Moves& moves) {
        const std::vector<int> chosen = draw_clusters(moves);
        const Members members = members_of(chosen, kept_.labels);
        std::vector<Split> splits(chosen.size());
        const BestSplit<T> best{rows_, kept_, away_, moves};
        pool.run(int(chosen.size()), [&](int c, int) { splits[c] = best(chosen[c], members[c]); });
        tried_.to_means();
        for (size_t c = 0; c < chosen.size(); c++)
            if (splits[c].gain > 0) apply(splits[c], chosen[c], members[c]);
    }

    /// Clusters with the largest 2 log e + g, in this order; g is Gumbel noise.
    std::vector<int> draw_clusters(const Moves& moves) const {
        const Noise noise{moves.seed, moves.layer, GROW};
        std::vector<double> scores(kept_.k);
        for (int j = 0; j < kept_.k; j++)
            scores[j] = errors_[j] > 0 ? 2 * std::log(errors_[j]) -
                                             std::log(-std::log(noise.uniform(j / 2, 0)[j % 2]))
                                       : -HUGE_SCORE<double>;
        return first_of(moves.moved, scores, [](int64_t a, int64_t b) { return a > b; });
    }

    /// The near half becomes the last cluster; the other one keeps its number.
    void apply(const Split& split, int b, const std::vector<int64_t>& rows) {
        std::vector<double> mean(split.sums);
        for (double& number : mean) number /= split.mass;
        const int slot = tried_.add(mean.data());
        for (size_t m = 0; m < rows.size(); m++)
            if (split.near[m]) tried_.labels[rows[m]] = slot;
        for (int f = 0; f < rows_.d; f++) {
            tried_.sums[int64_t(slot) * rows_.d + f] = split.sums[f];
            tried_.sums[int64_t(b) * rows_.d + f] -= split.sums[f];
        }
        tried_.masses[slot] = split.mass, tried_.masses[b] -= split.mass;
        tried_.counts[slot] = split.count, tried_.counts[b] -= split.count;
        for (int f = 0; f < rows_.d; f++)
            tried_.centers[int64_t(b) * rows_.d + f] =
                tried_.sums[int64_t(b) * rows_.d + f] / tried_.masses[b];
    }

    /// Removes the center that costs the least, and moves the others to the means.
    void prune(ThreadPool& pool) {
        // Without a choice of candidates nothing is computed for it.
        const bool chosen = tried_.k > CANDIDATES;
        const Numbers utility = tried_.assign(
            pool, rows_, tried_.k,
            [&](double* useful, int64_t i, PointBlock<T>& block, int r,
                const PackedCenters<T>& packed) {
                if (!chosen) return;
                const int label = tried_.labels[i];
                useful[label] += rows_.weight(i) *
                                 second_less_first(block.row(r), packed, label, tried_.others[i]);
            });
        std::vector<int> candidates =
            first_of(CANDIDATES, utility, [](int64_t a, int64_t b) { return a < b; });
        std::sort(candidates.begin(), candidates.end());
        const Members members = members_of(candidates, tried_.labels);
        std::vector<double> costs(candidates.size());
        pool.run(int(candidates.size()),
                 [&](int c, int) { costs[c] = cost(candidates[c], members[c]); });
        // An index also where costs are NaN: the search returns one of the elements.
        const size_t cheapest = std::min_element(costs.begin(), costs.end()) - costs.begin();
        const double limit = costs[cheapest] + TIE * objective_;
        size_t best = 0;  // the first of equal costs, so that rounding does not choose
        while (best < cheapest && costs[best] > limit) best++;
        std::vector<T> row(rows_.width);
        for (int64_t i : members[best]) {
            rows_.read(i, row.data());
            tried_.move(row.data(), candidates[best], tried_.others[i], rows_.weight(i));
            tried_.labels[i] = tried_.others[i];
        }
        tried_.to_means();
        tried_.erase(candidates[best]);
    }

    /// By how much the objective grows if the points of a cluster go to their second nearest
    /// center. For those that go to j: n_j n_aj / (n_j + n_aj) |m_aj - m_j|^2 - n_aj |m_aj -
    /// m_a|^2.
    double cost(int a, const std::vector<int64_t>& rows) const {
        const int d = rows_.d;
        std::vector<double> sums(int64_t(tried_.k) * d), masses(tried_.k);
        std::vector<T> row(rows_.width);
        for (size_t m = 0; m < rows.size(); m++) {
            const int64_t i = rows[m];
            // The rows of a cluster are scattered in memory.
            if (m + 4 < rows.size()) rows_.prefetch(rows[m + 4]);
            rows_.read(i, row.data());
            const double weight = rows_.weight(i);
            double* sum = &sums[int64_t(tried_.others[i]) * d];
            for (int f = 0; f < d; f++) sum[f] += weight * row[f];
            masses[tried_.others[i]] += weight;
        }
        const double here = tried_.masses[a];
        double lost = 0;
        for (int j = 0; j < tried_.k && here > 0; j++) {
            if (masses[j] <= 0) continue;
            const double there = tried_.masses[j];
            const double *sum = &sums[int64_t(j) * d], *own = &tried_.sums[int64_t(a) * d],
                         *theirs = &tried_.sums[int64_t(j) * d];
            double to = 0, from = 0;
            for (int f = 0; f < d; f++) {
                const double mean = sum[f] / masses[j];
                const double left = mean - own[f] / here;
                const double joined = there > 0 ? mean - theirs[f] / there : 0;
                from += left * left, to += joined * joined;
            }
            lost += there * masses[j] / (there + masses[j]) * to - masses[j] * from;
        }
        return lost;
    }

    /// A last step. Returns the objective of its partition.
    double finish(ThreadPool& pool) {
        const Numbers found = tried_.assign(
            pool, rows_, 1,
            [&](double* sum, int64_t i, PointBlock<T>& block, int r,
                const PackedCenters<T>& packed) {
                *sum += rows_.weight(i) *
                        double(squared_distance(block.row(r), packed.row(tried_.labels[i]),
                                                packed.width));
            });
        return found[0] - tried_.to_means();
    }

    /// The indices of the first `count` numbers in an order; on ties the lower index.
    template <class Before>
    static std::vector<int> first_of(size_t count, const std::vector<double>& numbers,
                                     Before before) {
        std::vector<int> order(numbers.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
            return before(order_of(numbers[a]), order_of(numbers[b]));
        });
        order.resize(std::min(count, order.size()));
        return order;
    }

    Members members_of(const std::vector<int>& clusters, const std::vector<int32_t>& labels) const {
        std::vector<int> place(std::max(kept_.k, tried_.k), -1);
        Members members(clusters.size());
        for (size_t c = 0; c < clusters.size(); c++) place[clusters[c]] = int(c);
        for (size_t i = 0; i < labels.size(); i++)
            if (place[labels[i]] >= 0) members[place[labels[i]]].push_back(int64_t(i));
        return members;
    }

    const Rows<T>& rows_;
    Partition<T> kept_, tried_;
    std::vector<T> away_;  // squared distances to the kept centers
    Numbers errors_;       // by cluster
    double objective_ = 0;
    bool assigned_ = false;  // labels are those of the kept centers
};

/// Relocates centers (k, d) in float64, in place: `moved` of them, each to the best of `draws`
/// splits. Returns the objectives before and after.
template <class T>
void run_relocation(Workspace<T>& work, Call& call) {
    const auto centers = call.out<double>("centers", "(k, d)", {ANY, work.rows.d});
    const Moves moves{uint64_t(call.integer("seed")), call.integer("layer"),
                      int(call.integer("moved")), int(call.integer("draws"))};
    Call::require(moves.moved > 0, "moved", "pass a number above 0");
    Call::require(moves.draws > 0, "draws", "pass a number above 0");
    const int k = int(centers.shape[0]);
    work.copy_for_two_nearest(k + std::min(k, moves.moved));  // splits come first

    if (work.relocation == nullptr) work.relocation = std::make_unique<Relocation<T>>(work.rows);
    const auto found = work.relocation->run(work.pool, centers, k, moves);
    call.results = {found.first, found.second};
}

}  // namespace lloydformer::ISA
