// Folds of the trimmed and the robust plan, and what every plan begins with.
#pragma once

#include "assign.hpp"
#include "fold.hpp"
#include "session.hpp"

namespace lloydformer::ISA {

/// w |x|^2; of points with weight, their number, |x|^2 and sums: 3 + d numbers.
template <class T>
Numbers moments(Team& team, const Rows<T>& rows) {
    return fold(team, rows.n, 3 + rows.d, [&](Numbers& sum, int64_t start, int64_t stop) {
        rows.reading(start, stop);
        std::vector<T> row(rows.width);
        for (int64_t i = start; i < stop; i++) {
            rows.see(i, row.data());
            const double square = dot(row.data(), row.data(), rows.width), weight = rows.weight(i);
            sum[0] += weight * square;
            if (weight <= 0) continue;
            sum[1] += 1;
            sum[2] += square;
            for (int f = 0; f < rows.d; f++) sum[3 + f] += row[f];
        }
    });
}

/// Labels, where they are not known, and distances by nearest center; of each
/// cluster the sum of w d^2, then the mass.
template <class T>
Numbers measure(Team& team, const Rows<T>& rows, const Packed<T>& centers, const State& state,
                bool labelled) {
    T* distances = static_cast<T*>(state.distances);
    return fold(team, rows.n, 2 * centers.k, [&](Numbers& sum, int64_t start, int64_t stop) {
        const auto note = [&](int64_t i, int32_t label, const T* row) {
            distances[i] = squared_distance(row, centers.row(label), centers.width);
            sum[label] += rows.weight(i) * distances[i];
            sum[centers.k + label] += rows.weight(i);
        };
        std::vector<T> row(rows.width);
        for (int64_t i = start; i < stop && labelled; i++)
            rows.see(i, row.data()), note(i, state.labels[i], row.data());
        if (labelled) return;
        assign(rows, start, stop, centers, [&](int64_t i, Block<T>& block, const int32_t* labels) {
            std::copy_n(labels, block.count, state.labels + i);
            for (int r = 0; r < block.count; r++) note(i + r, labels[r], block.row(r));
        });
    });
}

/// Masses (k, 256) by the next eight bits of a distance, of points that agree with the prefix.
template <class T>
Numbers histogram(Team& team, const Rows<T>& rows, const State& state, const int64_t* prefix, int k,
                  int shift) {
    typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Bits;
    const Bits* patterns = static_cast<const Bits*>(state.distances);
    return fold(team, rows.n, int64_t(k) << 8, [&](Numbers& sum, int64_t start, int64_t stop) {
        for (int64_t i = start; i < stop; i++) {
            const int64_t bits = int64_t(patterns[i]) >> shift, label = state.labels[i];
            if (bits >> 8 == prefix[label]) sum[(label << 8) + (bits & 255)] += rows.weight(i);
        }
    });
}

/// Adds w x to the sums (k, d), w to the masses (k) that follow them.
template <class T>
inline void add(Numbers& sum, int k, const T* row, int d, int label, double weight) {
    double* own = &sum[int64_t(label) * d];
    for (int f = 0; f < d; f++) own[f] += weight * row[f];
    sum[int64_t(k) * d + label] += weight;
}

/// Counts a point whose label is another one, and remembers the label.
inline double changed(const State& state, int64_t i, double weight) {
    const bool differs = state.labels[i] != state.before[i] && weight > 0;
    state.before[i] = state.labels[i];
    return differs;
}

/// Sums (k, d), masses (k), objective and changes of the points within their cluster's radius.
template <class T>
Numbers within(Team& team, const Rows<T>& rows, const State& state, const T* radius, int k) {
    const T* distances = static_cast<const T*>(state.distances);
    const int64_t objective = int64_t(k) * (rows.d + 1);
    return fold(team, rows.n, objective + 2, [&](Numbers& sum, int64_t start, int64_t stop) {
        rows.reading(start, stop);
        std::vector<T> row(rows.width);
        for (int64_t i = start; i < stop; i++) {
            const int label = state.labels[i];
            const double weight = rows.weight(i);
            if (distances[i] <= radius[label]) {
                rows.see(i, row.data());
                add(sum, k, row.data(), rows.d, label, weight);
                sum[objective] += weight * distances[i];
            } else {
                state.labels[i] = -1 - label;
            }
            sum[objective + 1] += changed(state, i, weight);
        }
    });
}

/// The best score -gamma d^2 of each cluster, then the mass that attains it; the order of the
/// segments is no matter to a maximum, and is kept for the masses.
template <class T>
Numbers best(Team& team, const Rows<T>& rows, const State& state, double gamma, int k) {
    const T* distances = static_cast<const T*>(state.distances);
    const Segments segments(rows.n, k);
    std::vector<std::vector<T>> near(segments.count, std::vector<T>(k, HUGE_SCORE<T>));
    team.run(segments.count, [&](int s) {
        for (int64_t i = segments.start(s); i < segments.start(s + 1); i++)
            if (rows.weight(i) > 0)
                near[s][state.labels[i]] = std::min(near[s][state.labels[i]], distances[i]);
    });
    for (const std::vector<T>& part : near)
        for (int j = 0; j < k; j++) near[0][j] = std::min(near[0][j], part[j]);
    Numbers found = fold(team, rows.n, 2 * k, [&](Numbers& sum, int64_t start, int64_t stop) {
        for (int64_t i = start; i < stop; i++)
            if (distances[i] == near[0][state.labels[i]])
                sum[k + state.labels[i]] += rows.weight(i);
    });
    for (int j = 0; j < k; j++)
        found[j] = found[k + j] > 0 ? -gamma * double(near[0][j]) : -HUGE_SCORE<double>;
    return found;
}

/// Mass, then weighted score, of points above their cluster's threshold.
template <class T>
Numbers above(Team& team, const Rows<T>& rows, const State& state, double gamma,
              const double* threshold, int k) {
    const T* distances = static_cast<const T*>(state.distances);
    return fold(team, rows.n, 2 * k, [&](Numbers& sum, int64_t start, int64_t stop) {
        for (int64_t i = start; i < stop; i++) {
            const double z = -gamma * double(distances[i]), weight = rows.weight(i);
            const int label = state.labels[i];
            if (z <= threshold[label]) continue;
            sum[label] += weight;
            sum[k + label] += weight * z;
        }
    });
}

/// Sums (k, d), masses (k), objective and changes, with the weights of an activation.
template <class T, class Weigh>
Numbers weighted(Team& team, const Rows<T>& rows, const State& state, int k, Weigh weigh) {
    const T* distances = static_cast<const T*>(state.distances);
    const int64_t objective = int64_t(k) * (rows.d + 1);
    return fold(team, rows.n, objective + 2, [&](Numbers& sum, int64_t start, int64_t stop) {
        rows.reading(start, stop);
        std::vector<T> row(rows.width);
        for (int64_t i = start; i < stop; i++) {
            const int label = state.labels[i];
            const double weight = rows.weight(i), factor = weigh(double(distances[i]), label);
            if (factor > 0 && weight > 0) {
                rows.see(i, row.data());
                add(sum, k, row.data(), rows.d, label, weight * factor);
            }
            sum[objective] += weight * distances[i];
            sum[objective + 1] += changed(state, i, weight);
        }
    });
}

}  // namespace lloydformer::ISA
