// The nearest and the second nearest center of each point.
#pragma once

#include "assign.hpp"

namespace lloydformer::ISA {

/// The two best scores of each point, and the first centers that have them.
template <class T>
struct TwoFound : Found<T> {
    I<T> other[2]{};

    template <int J>
    void see(const V<T> (&s)[J][2], int first) {
        for (int j = 0; j < J; j++)
            for (int h = 0; h < 2; h++) {
                const I<T> here = (first + j) - I<T>{};
                const auto nearer = s[j][h] < this->best[h];
                other[h] = nearer ? this->index[h] : s[j][h] < this->second[h] ? here : other[h];
                this->index[h] = nearer ? here : this->index[h];
                this->second[h] = min<T>(this->second[h], max<T>(this->best[h], s[j][h]));
                this->best[h] = min<T>(this->best[h], s[j][h]);
            }
    }
};

/// Calls each(first row number, block, labels, second labels, found) for the blocks of a range.
template <class T, class Each>
inline void assign_two(const Rows<T>& rows, int64_t start, int64_t stop, const Packed<T>& centers,
                       Each each) {
    rows.reading(start, stop);
    Block<T> block(rows);
    int32_t labels[P<T>], others[P<T>];
    for (int64_t i = start; i < stop; i += P<T>) {
        block.read(i, stop);
        TwoFound<T> found;
        by_eights(0, centers.k, [&](int first, auto count) {
            V<T> s[count][2];
            score<T, count>(block.lanes(), centers.d, centers.eight(first), &centers.squares[first],
                            s);
            found.see(s, first);
        });
        for (int r = 0; r < P<T>; r++) {
            labels[r] = static_cast<int32_t>(found.index[r / W<T>][r % W<T>]);
            others[r] = static_cast<int32_t>(found.other[r / W<T>][r % W<T>]);
        }
        settle_ties(block, centers, rows.farthest, found, labels);
        for (int r = 0; r < block.count; r++)
            if (labels[r] == others[r])
                others[r] = static_cast<int32_t>(found.index[r / W<T>][r % W<T>]);
        each(i, block, labels, others, found);
    }
}

}  // namespace lloydformer::ISA
