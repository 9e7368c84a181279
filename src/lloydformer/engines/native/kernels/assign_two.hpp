// Labels of the nearest and the second nearest center.
//
// The nearest is exact, as in assign.hpp. The second is the one with the second best lowered score:
// it only says where the points of a removed cluster go. If rounding has swapped the two, they are
// swapped back, so that they are never the same center, unless there is only one.
#pragma once

#include "assign.hpp"

namespace lloydformer::ISA {

/// The two best scores of each point, and the first centers that have them.
template <class T>
struct BestTwo : BestScores<T> {
    I<T> other[2]{};

    template <int J>
    void update(const V<T> (&s)[J][2], int first) {
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

/// The labels of a block that has been read, by scores with all centers. Prefetches `next`
/// meanwhile.
template <class T>
inline void label_two(const Rows<T>& rows, PointBlock<T>& block, const PackedCenters<T>& centers,
                      Prefetch next, int32_t (&labels)[P<T>], int32_t (&others)[P<T>]) {
    BestTwo<T> found;
    next.share_among(centers.k / TOGETHER);
    by_eights(0, centers.k, [&](int first, auto count) {
        V<T> s[count][2];
        next.advance();
        score<T, count>(block.lanes(), centers.d, centers.eight(first), &centers.lowered[first], s);
        found.update(s, first);
    });
    for (int r = 0; r < P<T>; r++) {
        labels[r] = static_cast<int32_t>(found.index[r / W<T>][r % W<T>]);
        others[r] = static_cast<int32_t>(found.other[r / W<T>][r % W<T>]);
    }
    settle_ties(block, centers, rows.largest_square, found, labels);
    for (int r = 0; r < block.count; r++) {
        if (labels[r] == others[r])
            others[r] = static_cast<int32_t>(found.index[r / W<T>][r % W<T>]);
        // Here second labels are checked, once for all kernels: where scores are NaN, comparisons
        // contradict each other (-ffinite-math-only), and both labels may be the same center. A
        // relocation that removes it would leave the row in a cluster that is gone.
        if (labels[r] == others[r] && centers.k > 1) others[r] = labels[r] == 0;
    }
}

/// `assign_two` by screening. Rows whose two best scores differ too little from the third are
/// compared with all centers.
template <class T, class Each>
void assign_two_screened(const Rows<T>& rows, Range range, const PackedCenters<T>& centers,
                         Each each) {
    constexpr int MOST = ScreenedRows<T>::MOST;
    ScreenedRows<T> screened(rows, centers, true);
    PointBlock<T> block(rows), close(rows);
    int32_t labels[MOST], others[MOST], close_labels[P<T>], close_others[P<T>];
    int64_t left[MOST];
    for (int64_t i = range.start; i < range.stop; i += MOST) {
        const int count = int(std::min<int64_t>(MOST, range.stop - i));
        screened.read(i, count);
        screened.screen();
        int n_left = 0;
        for (int r = 0; r < count; r++)
            if (!screened.label_two(r, labels[r], others[r])) left[n_left++] = i + r;
        for (int c = 0; c < n_left; c += P<T>) {
            close.gather(left + c, std::min(P<T>, n_left - c));
            label_two(rows, close, centers, {}, close_labels, close_others);
            for (int r = 0; r < close.count; r++)
                labels[left[c + r] - i] = close_labels[r],
                                     others[left[c + r] - i] = close_others[r];
        }
        for (int r = 0; r < count; r += P<T>) {
            screened.fill(block, r, std::min(P<T>, count - r));
            each(i + r, block, labels + r, others + r);
        }
    }
}

/// Calls each(first row number, block, labels, second labels) for the blocks of a range. The memory
/// of `buffer` is used.
template <class T, class Each>
inline void assign_two(const Rows<T>& rows, PointBlock<T>& buffer, Range range,
                       const PackedCenters<T>& centers, Each each) {
    if (centers.int8 != nullptr && two_are_screened(rows.screening, centers.k, rows.d))
        return assign_two_screened(rows, range, centers, each);
    PointBlock<T> block = std::move(buffer);
    int32_t labels[P<T>], others[P<T>];
    for (int64_t i = range.start; i < range.stop; i += P<T>) {
        block.read(i, range.stop);
        label_two(rows, block, centers, rows.block(i + P<T>), labels, others);
        each(i, block, labels, others);
    }
    buffer = std::move(block);
}

/// By how much farther than its nearest center the second nearest is: the difference of the squared
/// distances. By differences, as scores of a row far from the origin have lost their digits.
template <class T>
inline double second_less_first(const T* row, const PackedCenters<T>& centers, int label,
                                int other) {
    return double(squared_distance(row, centers.row(other), centers.width)) -
           double(squared_distance(row, centers.row(label), centers.width));
}

}  // namespace lloydformer::ISA
