// Groups of neighbouring centers, for which bounds.hpp keeps one lower bound each.
//
// Groups are cut once, when bounds begin, and stay: bounds hold for any groups, only more loosely
// the farther centers have moved. `pack` follows the centers.
#pragma once

#include <numeric>

#include "centers.hpp"

namespace lloydformer::ISA {

// Centers in a group, or a multiple of it: two times eight, which are scored together. Smaller
// groups would have tighter bounds, but more of them for each point to read.
constexpr int GROUP = 16;

/// Groups of centers that are near to each other. Centers are in slots, those of a group side by
/// side; unused slots at the end have a huge score.
template <class T>
class CenterGroups {
  public:
    /// `most`: upper limit of the number of groups.
    CenterGroups(const PackedCenters<T>& centers, int most)
        : d_(centers.d),
          size_(GROUP * ((centers.k + GROUP * most - 1) / (GROUP * most))),
          count_((centers.k + size_ - 1) / size_),
          slots_(padded_slots(), 0),
          place_(centers.k),
          numbers_(int64_t(count_) * size_ * d_),
          squares_(count_ * size_, HUGE_SCORE<T> / 4) {
        std::iota(slots_.begin(), slots_.begin() + centers.k, 0);
        split(centers, 0, centers.k);
        for (int s = 0; s < centers.k; s++) place_[slots_[s]] = s;
    }

    int count() const { return count_; }
    int size() const { return size_; }  // slots of a group
    int of(int center) const { return place_[center] / size_; }
    int slot(int center) const { return place_[center]; }
    /// The center of a slot, unused ones included: there is one for every slot that a search can
    /// return, so nothing else has to check them. Where scores are NaN or infinite, an unused slot
    /// may have the best one.
    int center(int slot) const { return slots_[slot]; }

    void pack(const PackedCenters<T>& centers) {
        for (int s = 0; s < centers.k; s++) {
            T* to = &numbers_[int64_t(s / TOGETHER * TOGETHER) * d_ + s % TOGETHER];
            for (int f = 0; f < d_; f++) to[f * TOGETHER] = -2 * centers.row(slots_[s])[f];
            squares_[s] = centers.lowered[slots_[s]];
        }
    }

    /// The centers in int8, in the order of their slots.
    std::unique_ptr<Int8Centers> in_int8(const PackedCenters<T>& centers) const {
        std::vector<T> ordered(int64_t(centers.k) * centers.width);
        for (int s = 0; s < centers.k; s++)
            std::copy_n(centers.row(slots_[s]), centers.width,
                        &ordered[int64_t(s) * centers.width]);
        return std::make_unique<Int8Centers>(ordered.data(), centers.k, centers.d, centers.width);
    }

    /// The nearest slot of group g for each point of a block, by lowered scores.
    BestScores<T> nearest(const T* lanes, int g) const {
        BestScores<T> found;
        for (int s = g * size_; s < (g + 1) * size_; s += TOGETHER) {
            V<T> scores[TOGETHER][2];
            score<T, TOGETHER>(lanes, d_, &numbers_[int64_t(s) * d_], &squares_[s], scores);
            found.update(scores, s);
        }
        return found;
    }

  private:
    /// Slots of all groups, and of whole tiles of int8.hpp.
    int padded_slots() const {
        return (count_ * size_ + TILE_CENTERS - 1) / TILE_CENTERS * TILE_CENTERS;
    }

    /// Splits slots [begin, end) along their widest feature until they fit in a group.
    void split(const PackedCenters<T>& centers, int begin, int end) {
        if (end - begin <= size_) return;
        const int axis = widest(centers, begin, end);
        const int middle = begin + ((end - begin + size_ - 1) / size_ + 1) / 2 * size_;
        std::nth_element(slots_.begin() + begin, slots_.begin() + middle, slots_.begin() + end,
                         [&](int a, int b) {
                             return std::make_pair(order_of(centers.row(a)[axis]), a) <
                                    std::make_pair(order_of(centers.row(b)[axis]), b);
                         });
        split(centers, begin, middle);
        split(centers, middle, end);
    }

    int widest(const PackedCenters<T>& centers, int begin, int end) const {
        int axis = 0;
        double most = -1;
        for (int f = 0; f < d_; f++) {
            double sum = 0, square = 0;
            for (int s = begin; s < end; s++) {
                const double x = centers.row(slots_[s])[f];
                sum += x, square += x * x;
            }
            const double spread = square - sum * sum / (end - begin);
            if (spread > most) most = spread, axis = f;
        }
        return axis;
    }

    int d_, size_, count_;
    std::vector<int> slots_, place_;    // center by slot, 0 for unused ones; slot by center
    std::vector<T> numbers_, squares_;  // packed as in PackedCenters; lowered
};

}  // namespace lloydformer::ISA
