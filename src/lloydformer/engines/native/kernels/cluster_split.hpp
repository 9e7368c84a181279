// Splits of a cluster in two, at points that are drawn in proportion to w d^2.
//
// Draws are those of numerics/noise.py, a function of seed, layer and row, so every engine splits
// at the same points. The members of a cluster are added in row order, by one thread.
#pragma once

#include "partition.hpp"
#include "philox.hpp"

namespace lloydformer::ISA {

constexpr double TIE =
    1e-9;  // gains and costs that differ by less are equal: numerics/search_constants.py
constexpr int GROW = 5, DRAWN = 6;  // places in noise.HEADS

/// The numbers of a relocation.
struct Moves {
    uint64_t seed;
    int64_t layer;
    int moved, draws;  // centers that move; splits that are tried for each
};

/// A split: one half holds the points that are nearer to the drawn point than to the center.
struct Split {
    double gain = 0, mass = 0, count = 0;
    std::vector<double> sums;
    std::vector<char> near;  // for each member: true if it is in this half
};

/// Finds splits of the clusters of a partition; `away`: squared distances to its centers.
template <class T>
struct BestSplit {
    const Rows<T>& points;
    const Partition<T>& kept;
    const std::vector<T>& away;
    const Moves& moves;

    /// The best of several splits. The drawn point has the smallest -log u / (w d^2).
    Split operator()(int b, const std::vector<int64_t>& rows) const {
        const std::vector<int64_t> drawn = drawn_points(rows);
        std::vector<T> at(moves.draws * points.width), row(points.width);
        std::vector<Split> splits(moves.draws);
        for (int h = 0; h < moves.draws && drawn[h] >= 0; h++) {
            points.read(drawn[h], &at[h * points.width]);
            splits[h].sums.resize(points.d), splits[h].near.resize(rows.size());
        }
        for (size_t m = 0; m < rows.size(); m++) {
            points.read(rows[m], row.data());
            for (int h = 0; h < moves.draws && drawn[h] >= 0; h++)
                if (squared_distance(row.data(), &at[h * points.width], points.width) <
                    away[rows[m]])
                    add_member(splits[h], m, row.data(), points.weight(rows[m]));
        }
        for (Split& split : splits) split.gain = gain(split, b);
        return *std::max_element(splits.begin(), splits.end(), [](const Split& x, const Split& y) {
            return (1 + TIE) * x.gain < y.gain;  // either half gives this gain, but for rounding
        });
    }

  private:
    std::vector<int64_t> drawn_points(const std::vector<int64_t>& rows) const {
        const Noise noise{moves.seed, moves.layer, DRAWN};
        std::vector<int64_t> drawn(moves.draws, -1);
        std::vector<double> least(moves.draws, HUGE_SCORE<double>);
        for (int64_t i : rows) {
            const double mass = points.weight(i) * double(away[i]);
            if (mass <= 0) continue;
            std::array<double, 2> u{};
            for (int h = 0; h < moves.draws; h++) {
                if (h % 2 == 0) u = noise.uniform(h / 2, i);
                const double late = -std::log(u[h % 2]) / mass;
                // A member of the cluster, or -1 as at the beginning, also with NaN.
                if (late < least[h]) least[h] = late, drawn[h] = i;
            }
        }
        return drawn;
    }

    static void add_member(Split& split, size_t member, const T* row, double weight) {
        for (size_t f = 0; f < split.sums.size(); f++) split.sums[f] += weight * row[f];
        split.mass += weight, split.count += weight > 0, split.near[member] = true;
    }

    /// n1 n2 / (n1 + n2) |m1 - m2|^2.
    double gain(const Split& split, int b) const {
        const double rest = kept.masses[b] - split.mass;
        if (split.count == 0 || split.count == kept.counts[b]) return 0;
        if (split.mass <= 0 || rest <= 0) return 0;  // weights that rounding has lost
        double apart = 0;
        for (int f = 0; f < points.d; f++) {
            const double other = (kept.sums[int64_t(b) * points.d + f] - split.sums[f]) / rest;
            apart += (split.sums[f] / split.mass - other) * (split.sums[f] / split.mass - other);
        }
        return split.mass * rest / kept.masses[b] * apart;
    }
};

}  // namespace lloydformer::ISA
