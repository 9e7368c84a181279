// Recombination of two solutions: merging of centers, and the mutation of a child.
//
// Merging follows plans/recombining.py: always the cheapest pair, the first one of equal costs.
// Draws are those of numerics/noise.py, and the lowest row wins ties, so threads do not matter.
#pragma once

#include "assign.hpp"
#include "philox.hpp"
#include "workspace.hpp"

namespace lloydformer::ISA {

constexpr int DROPPED = 8, PLANTED = 9;  // places in noise.HEADS

/// Merges the cheapest pair of centers by Ward's cost, as in plans/recombining.py: each center
/// knows its cheapest partner among those after it.
class Merging {
  public:
    Merging(double* centers, double* masses, int count, int d)
        : centers_(centers),
          masses_(masses),
          count_(count),
          d_(d),
          costs_(int64_t(count) * count),
          least_(count),
          partners_(count, NONE),
          alive_(count, 1) {
        for (int a = 0; a < count; a++) {
            for (int b = a + 1; b < count; b++) at(a, b) = cost(a, b);
            find_partner(a);
        }
    }

    /// Merges one pair, the first one of equal costs.
    void merge() {
        // Precondition: two centers are alive. Then the first of them has a partner, whatever the
        // costs are: they may be infinite or NaN. So `a` and `b` are two centers that are alive.
        int a = NONE;
        for (int j = 0; j < count_; j++)
            if (partners_[j] != NONE && (a == NONE || order_of(least_[j]) < order_of(least_[a])))
                a = j;
        const int b = partners_[a];
        const double both = masses_[a] + masses_[b];
        for (int f = 0; f < d_ && both > 0; f++)
            row(a)[f] = (masses_[a] * row(a)[f] + masses_[b] * row(b)[f]) / both;
        masses_[a] = both;
        alive_[b] = 0, partners_[b] = NONE;
        for (int j = 0; j < count_; j++)
            if (alive_[j] && j != a) at(std::min(a, j), std::max(a, j)) = cost(a, j);
        for (int j = 0; j < count_; j++) {
            if (!alive_[j]) continue;
            if (j == a || partners_[j] == a || partners_[j] == b)
                find_partner(j);
            else if (j < a && std::make_pair(order_of(at(j, a)), a) <
                                  std::make_pair(order_of(least_[j]), partners_[j]))
                partners_[j] = a, least_[j] = at(j, a);
        }
    }

    bool alive(int j) const { return alive_[j] != 0; }
    double* row(int j) const { return centers_ + int64_t(j) * d_; }

  private:
    static constexpr int NONE = -1;  // no center after it is alive

    double& at(int a, int b) { return costs_[int64_t(a) * count_ + b]; }

    double cost(int a, int b) const {
        const double both = masses_[a] + masses_[b];
        if (!(both > 0)) return 0;
        const double *x = row(a), *y = row(b);
        double away[4]{};  // several sums, as an addition takes cycles
        for (int f = 0; f < d_; f++) away[f % 4] += (x[f] - y[f]) * (x[f] - y[f]);
        return masses_[a] * (masses_[b] / both) * (away[0] + away[1] + away[2] + away[3]);
    }

    void find_partner(int a) {
        partners_[a] = NONE;
        for (int b = a + 1; b < count_; b++)
            if (alive_[b] && (partners_[a] == NONE || order_of(at(a, b)) < order_of(least_[a])))
                partners_[a] = b, least_[a] = at(a, b);
    }

    double *centers_, *masses_;
    int count_, d_;
    std::vector<double> costs_, least_;
    std::vector<int> partners_;
    std::vector<char> alive_;
};

/// Merges `centers` (u, d) with `masses` (u), both overwritten, to `merged` (k, d).
template <class T>
void run_ward_merging(Workspace<T>& work, Call& call) {
    const int d = work.rows.d;
    const auto centers = call.out<double>("centers", "(u, d)", {ANY, d});
    const int64_t count = centers.shape[0];
    const auto masses = call.out<double>("masses", "(u)", {count});
    const auto merged = call.out<double>("merged", "(k, d)", {ANY, d});
    const int64_t k = merged.shape[0];
    Call::require(k > 0 && k <= count, "merged", "pass at least one center and at most u");
    Merging merging(centers, masses, int(count), d);
    for (int64_t left = count; left > k; left--) merging.merge();
    double* to = merged;
    for (int j = 0; j < count; j++)
        if (merging.alive(j)) to = std::copy_n(merging.row(j), d, to);
}

/// A row that was drawn: the one with the smallest -log u / (w r).
struct DrawnRow {
    double late = HUGE_SCORE<double>;
    int64_t row = -1;
};

/// Moves one of the centers (k, d) in float64, drawn at random, to a row that is drawn in
/// proportion to weight times squared distance to the other centers. number: of the mutation.
template <class T>
void run_mutation(Workspace<T>& work, Call& call) {
    const Rows<T>& rows = work.rows;
    const auto centers = call.out<double>("centers", "(k, d)", {ANY, rows.d});
    const int k = int(centers.shape[0]), d = rows.d;
    const uint64_t seed = uint64_t(call.integer("seed"));
    const int64_t number = call.integer("number");
    Call::require(k > 1, "centers", "pass at least two");
    const Noise which{seed, number, DROPPED}, where{seed, number, PLANTED};
    int dropped = 0;
    for (int j = 1; j < k; j++)  // the largest u has the largest Gumbel noise
        if (which.uniform(j / 2, 0)[j % 2] > which.uniform(dropped / 2, 0)[dropped % 2])
            dropped = j;
    std::vector<T> others;
    for (int j = 0; j < k; j++)
        if (j != dropped)
            for (int f = 0; f < d; f++) others.push_back(T(centers[int64_t(j) * d + f]));
    const PackedCenters<T> packed(others.data(), k - 1, d, rows.screening);
    const Units ranges = Units(rows.n, rows.leaf, 1).without_sums();
    std::vector<DrawnRow> found(ranges.count);
    work.pool.run(ranges.count, [&](int u, int) {
        PointBlock<T> block(rows);
        DrawnRow best;
        assign(rows, block, ranges.unit(u), packed,
               [&](int64_t first, PointBlock<T>& points, const int32_t* labels) {
                   for (int r = 0; r < points.count; r++) {
                       const int64_t i = first + r;
                       const double mass = rows.weight(i) *
                                           double(squared_distance(
                                               points.row(r), packed.row(labels[r]), packed.width));
                       if (mass <= 0) continue;
                       const double late = -std::log(where.uniform(0, i)[0]) / mass;
                       if (late < best.late) best = {late, i};
                   }
               });
        found[u] = best;
    });
    DrawnRow best;
    for (const DrawnRow& one : found)
        if (one.late < best.late) best = one;
    if (best.row < 0) best.row = 0;  // every point with weight is a center
    std::vector<T> row(rows.width);
    rows.read(best.row, row.data());
    std::copy_n(row.begin(), d, centers + int64_t(dropped) * d);
}

}  // namespace lloydformer::ISA
