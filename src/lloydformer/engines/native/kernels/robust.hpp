// The folds of robust k-means, HighestScores, SumsAboveThreshold and RobustSums: best scores,
// thresholds and weighted sums. Scores are z = -gamma d^2.
//
// Points have labels and distances already. Sums are float64, in row order within a leaf. Only
// RobustSums writes a column, `previous`.
#pragma once

#include "workspace.hpp"

namespace lloydformer::ISA {

/// -gamma d^2 - level. Scores are not below -1e300 (LOWEST of numerics/clusters.py), as infinity
/// less infinity is NaN. They are rounded before the difference, as levels are: in one fused
/// operation that of the best point would not be 0.
struct RobustScore {
    double gamma, farthest;

    explicit RobustScore(double gamma) : gamma(gamma), farthest(1e300 / gamma) {}

    double operator()(double distance, double level = 0) const {
        volatile double score = distance < farthest ? -gamma * distance : -1e300;
        return score - level;
    }
};

/// The smallest distance of each cluster.
template <class T>
struct Minima {
    std::vector<T> values;

    void merge(Minima& right) {
        for (size_t j = 0; j < values.size(); j++)
            values[j] = std::min(values[j], right.values[j]), right.values[j] = HUGE_SCORE<T>;
    }
};

/// The smallest distance of the points with weight, by cluster.
template <class T>
std::vector<T> smallest(ThreadPool& pool, const Rows<T>& rows, const int32_t* labels,
                        const T* distances, int k) {
    Tree<Minima<T>> tree(Units(rows.n, rows.leaf, k), pool.size(),
                         Minima<T>{std::vector<T>(k, HUGE_SCORE<T>)});
    return tree
        .run(pool,
             [&](Range) {
                 return [&](Minima<T>& least, Range leaf) {
                     for (int64_t i = leaf.start; i < leaf.stop; i++)
                         if (rows.weight(i) > 0)
                             least.values[labels[i]] =
                                 std::min(least.values[labels[i]], distances[i]);
                 };
             })
        .values;
}

/// The best score of each cluster (k), and the mass that attains it (k). If asked for, `least`: the
/// smallest distances (k), by which the results for parts of the data can be merged.
template <class T>
void run_highest_scores(Workspace<T>& work, Call& call) {
    const Rows<T>& rows = work.rows;
    const int32_t* labels = work.labels(call);
    const T* distances = work.distances(call);
    const RobustScore score(call.number("inverse_temperature"));
    const auto best = call.out<double>("best", "(k)", {ANY});
    const int k = int(best.shape[0]);
    double* masses = call.out<double>("masses", "(k)", {k});
    T* smallest_out = call.has("least") ? call.out<T>("least", "(k)", {k}).data : nullptr;
    const std::vector<T> least = smallest(work.pool, rows, labels, distances, k);
    const Numbers found = fold(work.pool, rows, k, [&](Range) {
        return [&](Numbers& sum, Range leaf) {
            for (int64_t i = leaf.start; i < leaf.stop; i++)
                if (distances[i] == least[labels[i]]) sum[labels[i]] += rows.weight(i);
        };
    });
    if (smallest_out != nullptr) std::copy(least.begin(), least.end(), smallest_out);
    for (int j = 0; j < k; j++) {
        masses[j] = found[j];
        best[j] = found[j] > 0 ? score(double(least[j])) : -HUGE_SCORE<double>;
    }
}

/// Mass and weighted score of the points above the threshold of their cluster, (k) each.
template <class T>
void run_sums_above_threshold(Workspace<T>& work, Call& call) {
    const Rows<T>& rows = work.rows;
    const int32_t* labels = work.labels(call);
    const T* distances = work.distances(call);
    const RobustScore score(call.number("inverse_temperature"));
    const auto threshold = call.in<double>("threshold", "(k)", {ANY});
    const int64_t k = threshold.shape[0];
    double* masses = call.out<double>("masses", "(k)", {k});
    double* scores = call.out<double>("scores", "(k)", {k});
    const Numbers found = fold(work.pool, rows, 2 * k, [&](Range) {
        return [&](Numbers& sum, Range leaf) {
            for (int64_t i = leaf.start; i < leaf.stop; i++) {
                const double z = score(double(distances[i])), weight = rows.weight(i);
                if (z <= threshold[labels[i]]) continue;
                sum[labels[i]] += weight;
                sum[k + labels[i]] += weight * z;
            }
        };
    });
    std::copy_n(found.begin(), k, masses);
    std::copy_n(found.begin() + k, k, scores);
}

/// Sums (k, d), masses (k), objective and changes; points count by their weight times
/// weigh(distance, label).
template <class T, class Weigh>
Numbers weighted_sums(ThreadPool& pool, const Rows<T>& rows, const int32_t* labels,
                      int32_t* previous, const T* distances, int k, Weigh weigh) {
    const int64_t objective = int64_t(k) * (rows.d + 1);
    return fold(pool, rows, objective + 2, [&](Range unit) {
        rows.prefetch_after(unit.start, unit.stop);
        return [&, row = std::vector<T>(rows.width)](Numbers& sum, Range leaf) mutable {
            for (int64_t i = leaf.start; i < leaf.stop; i++) {
                const int label = labels[i];
                const double weight = rows.weight(i), factor = weigh(double(distances[i]), label);
                if (factor > 0 && weight > 0) {
                    rows.read(i, row.data());
                    add(sum, k, row.data(), rows.d, label, weight * factor);
                }
                sum[objective] += weight * distances[i];
                sum[objective + 1] += weight > 0 && label != previous[i];
                previous[i] = label;
            }
        };
    });
}

/// Weights are max(z - level, 0); or exp(z - level) within a radius, if one is given.
template <class T>
void run_robust_sums(Workspace<T>& work, Call& call) {
    const int32_t* labels = work.labels(call);
    int32_t* previous = work.previous(call);
    const T* distances = work.distances(call);
    const RobustScore score(call.number("inverse_temperature"));
    const auto given = call.in<double>("level", "(k)", {ANY});
    const double* level = given.data;
    const int k = int(given.shape[0]);
    const StepArrays out(call, k, work.rows.d, "objective");
    const double* radius =
        call.has("radius") ? call.in<double>("radius", "(k)", {k}).data : nullptr;
    work.lloyd.reset();
    const auto sums = [&](auto weigh) {
        return weighted_sums(work.pool, work.rows, labels, previous, distances, k, weigh);
    };
    if (radius == nullptr)
        out.fill(sums([=](double d, int j) { return std::max(score(d, level[j]), 0.0); }), call);
    else
        out.fill(sums([=](double d, int j) {
                     return d <= radius[j] ? std::exp(score(d, level[j])) : 0.0;
                 }),
                 call);
}

}  // namespace lloydformer::ISA
