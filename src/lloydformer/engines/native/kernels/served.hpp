// How points are served: squared distances to the nearest and second nearest center.
#pragma once

#include "centers.hpp"
#include "fold.hpp"

namespace lloydformer::ISA {

/// Squared distances of a block's points to their nearest and second nearest center.
template <class T>
struct Near {
    V<T> first[2], second[2];

    Near(const Found<T>& found, const T (&squares)[P<T>], int k) {
        for (int h = 0; h < 2; h++) {
            const V<T> square = load(squares + h * W<T>);
            first[h] = max<T>(found.best[h] + square, V<T>{});
            second[h] = k > 1 ? max<T>(found.second[h] + square, V<T>{}) : first[h];
        }
    }
};

/// Sums of w r and w s; by nearest center, of w and of w r: 2 + 2 k numbers.
template <class T>
Numbers served(Team& team, const Rows<T>& rows, const Packed<T>& centers) {
    const int k = centers.k;
    return fold(team, rows.n, 2 + 2 * k, [&](Numbers& sum, int64_t start, int64_t stop) {
        rows.reading(start, stop);
        Block<T> block(rows);
        T squares[P<T>], first[P<T>], second[P<T>];
        for (int64_t i = start; i < stop; i += P<T>) {
            block.read(i, stop);
            const Found<T> found = nearest(block.lanes(), centers);
            block.squares(squares);
            const Near<T> near(found, squares, k);
            for (int h = 0; h < 2; h++)
                store(first + h * W<T>, near.first[h]), store(second + h * W<T>, near.second[h]);
            double firsts = 0, seconds = 0;
            for (int r = 0; r < block.count; r++) {
                const double weight = rows.weight(i + r), cost = weight * first[r];
                const int label = int(found.index[r / W<T>][r % W<T>]);
                firsts += cost, seconds += weight * second[r];
                sum[2 + label] += weight, sum[2 + k + label] += cost;
            }
            sum[0] += firsts, sum[1] += seconds;
        }
    });
}

}  // namespace lloydformer::ISA
