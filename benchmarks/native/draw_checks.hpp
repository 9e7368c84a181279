// Checks of the kernels that draw rows, take them by their numbers, or sample many seeds.
#pragma once

#include "checks.hpp"

inline bool differ(double a, double b, double rounding) {
    return std::fabs(a - b) > rounding + 1e-11 * std::fabs(b);
}

/// Scores of a draw: log w - |x - c|^2 + Gumbel noise, less a penalty for other clusters' points.
template <class T>
struct DrawReference {
    const AllAway<T>& all;
    const std::vector<int32_t>& labels;
    int64_t layer;

    double score(int64_t i, int j, double penalty) const {
        const lloydformer::Noise noise{NOISE_SEED, layer, 2};
        const double u = noise.uniform(j / 2, i)[j % 2];
        return std::log(weight(i)) - std::log(-std::log(u)) - all.at(i, j) -
               (labels[i] == j ? 0 : penalty);
    }

    double weight(int64_t i) const { return all.points.given.weight(i, all.points.kind); }

    bool owns(int j) const {
        for (size_t i = 0; i < labels.size(); i++)
            if (labels[i] == j && weight(i) > 0) return true;
        return false;
    }

    /// The best score of a center. strict: points of other clusters only if it has none.
    double best(int j, double penalty, bool strict) const {
        double most = -1e300;
        const bool own = strict && owns(j);
        for (size_t i = 0; i < labels.size(); i++)
            if (weight(i) > 0 && (labels[i] == j || !own))
                most = std::max(most, score(i, j, penalty));
        return most;
    }
};

/// A row for each center, with the best score of all; labels and the objective.
template <class T>
void check_draw(const AllAway<T>& all, const std::string& where, const double* penalty) {
    const Generated<T>& given = all.points.given;
    const Kind& kind = all.points.kind;
    Run<T> run(given, kind, 3, 0);
    const Drawn drawn = draw(run, given, 5, penalty);
    const DrawReference<T> scores{all, run.labels, 5};
    const double rounding = all.rounding(), less = penalty ? *penalty : 0;
    if (all.farther(run.labels) > 0) complain("not the nearest center in a draw", where);
    int64_t changed = 0;
    double mass = 0, objective = 0;
    for (int64_t i = 0; i < given.n; i++) {
        const double weight = given.weight(i, kind);
        changed += weight > 0, mass += weight, objective += weight * all.nearest(i, given.k);
    }
    if (drawn.changed != changed || run.previous != run.labels)
        complain("not the changed labels of a draw", where);
    if (differ(drawn.objective[0], objective, mass * rounding))
        complain("not the objective of a draw", where);
    for (int j = 0; j < given.k; j++) {
        const double best = scores.best(j, less, penalty == nullptr);
        const int64_t row = drawn.rows[j];
        if (row < 0 || given.weight(row, kind) == 0 || differ(drawn.best[j], best, rounding) ||
            differ(scores.score(row, j, less), best, 2 * rounding))
            complain("not the row with the best score", where);
        if (drawn.owned[j] != (penalty == nullptr && scores.owns(j)))
            complain("not a row of the cluster's own", where);
    }
}

/// The nearest row of each center; the first of those that are equal.
template <class T>
void check_closest(const AllAway<T>& all, const std::string& where) {
    const Generated<T>& given = all.points.given;
    const Kind& kind = all.points.kind;
    Run<T> run(given, kind, 3, 0);
    const auto [rows, distances] = closest(run, given);
    const double rounding = all.rounding();
    for (int j = 0; j < given.k; j++) {
        double least = 1e300;
        for (int64_t i = 0; i < given.n; i++)
            if (!kind.weights || given.weights[i] > 0) least = std::min(least, all.at(i, j));
        if (differ(distances[j], least, rounding) ||
            differ(all.at(rows[j], j), least, 2 * rounding))
            complain("not the nearest row of a center", where);
        if (kind.duplicates && !kind.weights && rows[j] >= 5)
            complain("not the first of equal rows", where);
    }
}

/// The farthest rows in their order, and none of the others is farther.
template <class T>
void check_farthest(const AllAway<T>& all, const std::string& where) {
    const Generated<T>& given = all.points.given;
    const Kind& kind = all.points.kind;
    Run<T> run(given, kind, 3, 0);
    run.measure();
    const auto away = [&](int64_t i) { return all.at(i, run.labels[i]); };
    const auto [rows, distances] = farthest(run, given, 1 + given.n / 3);
    const double rounding = all.rounding();
    std::vector<char> taken(given.n);
    for (size_t l = 0; l < rows.size(); l++) {
        const bool ordered = l == 0 || distances[l - 1] > distances[l] ||
                             (distances[l - 1] == distances[l] && rows[l - 1] < rows[l]);
        if (!ordered || given.weight(rows[l], kind) == 0 || taken[rows[l]]++ ||
            differ(distances[l], away(rows[l]), rounding))
            complain("not the farthest rows", where);
    }
    int64_t others = 0;
    for (int64_t i = 0; i < given.n; i++) {
        if (taken[i] || given.weight(i, kind) == 0) continue;
        others++;
        if (away(i) > distances.back() * (1 + 1e-11) + rounding)
            complain("not the farthest rows", where);
    }
    if (others > 0 && int64_t(rows.size()) < 1 + given.n / 3)
        complain("not the farthest rows", where);
}

/// Sums, counts and the objective of rows by their numbers, whatever they weigh.
template <class T>
void check_minibatch(const AllAway<T>& all, const std::string& where) {
    const Generated<T>& given = all.points.given;
    const Kind& kind = all.points.kind;
    Run<T> run(given, kind, 3, 0);
    run.nearest(given.centers, true);
    const std::vector<int64_t> rows = some_rows(given);
    std::vector<double> sums(run.sums.size()), counts(given.k);
    double objective = 0;
    for (int64_t i : rows) {
        const int64_t j = run.labels[i];
        for (int f = 0; f < given.d; f++) sums[j * given.d + f] += all.points.rows[i * given.d + f];
        counts[j]++, objective += all.nearest(i, given.k);
    }
    const double rounding = all.rounding() * double(rows.size());
    const double off = rounding / std::sqrt(given.farthest(kind));
    if (differ(minibatch(run, given, rows), objective, rounding))
        complain("not the objective of a batch", where);
    if (run.masses != counts) complain("not the counts of a batch", where);
    for (size_t i = 0; i < sums.size(); i++)
        if (differ(run.sums[i], sums[i], off)) complain("not the sums of a batch", where);
}

/// Candidates of k-means|| in two rounds, and a third one without new candidates.
template <class T>
void check_approach(const AllAway<T>& all, const std::string& where) {
    const Generated<T>& given = all.points.given;
    const Kind& kind = all.points.kind;
    Run<T> run(given, kind, 3, 0);
    const double rounding = all.rounding();
    int64_t known = 0;
    for (int64_t stop : {given.k / 2 + 1, given.k, given.k}) {
        const Attracted found = approach(run, given, known, stop);
        known = stop;
        Attracted attracted(stop + 1);
        double mass = 0;
        for (int64_t i = 0; i < given.n; i++) {
            const double away = all.nearest(i, stop), weight = given.weight(i, kind);
            const int j = run.labels[i];
            if (differ(run.distances[i], away, rounding) ||
                differ(all.at(i, j), away, 2 * rounding))
                complain("not the nearest candidate", where);
            attracted[j] += weight, attracted[stop] += weight * away, mass += weight;
        }
        for (int64_t j = 0; j <= stop; j++)
            if (differ(found[j], attracted[j], mass * (j < stop ? 1e-12 : rounding)))
                complain("not what a candidate attracts", where);
    }
}

template <class T>
void check_draws(const AllAway<T>& all, const std::string& where) {
    for (double penalty : {0.5, 200.0}) check_draw(all, where, &penalty);
    check_draw(all, where, nullptr);
    check_closest(all, where), check_farthest(all, where), check_minibatch(all, where);
    check_approach(all, where);
}
