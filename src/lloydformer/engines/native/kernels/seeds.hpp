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

/// Distances to the nearest seed, one being new; the mass of w d^2 in each leaf of so many rows.
template <class T>
void closer(Team& team, const Rows<T>& rows, const T* seed, bool first, T* distances, int64_t leaf,
            double* masses) {
    team.run(int((rows.n + leaf - 1) / leaf), [&](int number) {
        const int64_t stop = std::min(rows.n, (number + 1) * leaf);
        rows.reading(number * leaf, stop);
        Block<T> block(rows);
        double mass = 0;
        for (int64_t i = number * leaf; i < stop; i += P<T>) {
            block.read(i, stop);
            V<T> away[2];
            distances_to(block.lanes(), rows.d, seed, away);
            for (int r = 0; r < block.count; r++) {
                const T now = away[r / W<T>][r % W<T>];
                distances[i + r] = first ? now : std::min(now, distances[i + r]);
                mass += rows.weight(i + r) * distances[i + r];
            }
        }
        masses[number] = mass;
    });
}

/// The sum of w d^2 with each of m candidates as a new seed.
template <class T>
Numbers potential(Team& team, const Rows<T>& rows, const T* candidates, int m, const T* distances) {
    return fold(team, rows.n, m, [&](Numbers& sum, int64_t start, int64_t stop) {
        rows.reading(start, stop);
        Block<T> block(rows);
        for (int64_t i = start; i < stop; i += P<T>) {
            block.read(i, stop);
            for (int c = 0; c < m; c++) {
                V<T> away[2];
                distances_to(block.lanes(), rows.d, candidates + int64_t(c) * rows.d, away);
                double total = 0;
                for (int r = 0; r < block.count; r++)
                    total +=
                        rows.weight(i + r) * std::min(away[r / W<T>][r % W<T>], distances[i + r]);
                sum[c] += total;
            }
        }
    });
}

}  // namespace lloydformer::ISA
