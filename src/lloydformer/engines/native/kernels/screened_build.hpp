// New bounds of points, by screening: a pass with products in int8 in place of one with scores.
//
// The lower bounds of screening.hpp are about scores; with |x|^2 they are about squared distances.
// They are looser than those from scores, by the rounding to int8, and hold all the same: the
// invariant of bounds.hpp is true afterwards. The label is exact, as in assign.hpp.
#pragma once

#include "bounds.hpp"
#include "screening.hpp"

namespace lloydformer::ISA {

template <class T>
class Bounds<T>::ScreenedBuild {
  public:
    /// Precondition: bounds.by_slot_ and rows.int8 are there.
    ScreenedBuild(Bounds& bounds, const Rows<T>& rows, const PackedCenters<T>& centers)
        : bounds_(bounds),
          groups_(*bounds.groups_),
          slots_(*bounds.by_slot_),
          rows_(rows),
          centers_(centers),
          screen_(slots_),
          exact_(rows),
          row_(rows.width),
          vectors_(slots_.tiles * TILE_VECTORS),
          least_((Screen::ROWS + TILE_ROWS) * vectors_),
          lower_(groups_.count()) {}

    template <class Each>
    Effort operator()(Range range, const int32_t* labels, Each each) {
        for (int64_t i = range.start; i < range.stop; i += Screen::ROWS) {
            const int count = int(std::min<int64_t>(Screen::ROWS, range.stop - i));
            for (int r = 0; r < count; r++) rounded_[r] = rows_.int8->row(i + r, slots_.unit);
            screen_.run(rows_.int8->bytes_of(i), rows_.int8->stride, rounded_, count,
                        [&](int r, int tile, const V<float>(&low)[TILE_VECTORS]) {
                            const Quad least = least_of_each(low[0], low[1], low[2], low[3]);
                            std::memcpy(&least_[r * vectors_ + tile * TILE_VECTORS], &least,
                                        sizeof least);
                        });
            for (int r = 0; r < count; r++) {
                const int32_t label = set_bounds(i + r, r);
                if (label != labels[i + r]) each(i + r, label);
            }
        }
        return {range.stop - range.start, 0};
    }

  private:
    /// Sets the bounds of row i, the r-th of the block. Returns its label.
    int32_t set_bounds(int64_t i, int r) {
        rows_.read(i, row_.data());
        const int count = screen_.count(r);
        int32_t candidates[Screen::MOST];
        for (int c = 0; c < count; c++) candidates[c] = groups_.center(screen_.candidates(r)[c]);
        std::sort(candidates, candidates + count);  // so that the first of equals is found
        const int32_t label =
            count == 1 ? candidates[0]
                       : nearest_candidate(row_.data(), centers_, candidates, count,
                                           [&] { return exact_.read(i, centers_.centered()); });
        const T square = dot(row_.data(), row_.data(), rows_.width);
        const T away = squared_distance(row_.data(), centers_.row(label), rows_.width);
        bounds_.upper_[i] = bounds_.above(
            away, centers_.error.row(square) + centers_.error.center(centers_.squares[label]));
        lower_bounds(i, r, groups_.slot(label));
        float* to = bounds_.lower(i);
        for (int g = 0; g < groups_.count(); g++) to[g * P<T>] = lower_[g];
        return label;
    }

    /// Lower bounds of the distances to the groups, but for the center in slot `own`.
    void lower_bounds(int64_t i, int r, int own) {
        const int per_group = groups_.size() / W<float>;
        const float* least = &least_[r * vectors_];
        if (Screen::is_far(rounded_[r])) return std::fill(lower_.begin(), lower_.end(), 0.0f);
        const float square = float(rows_.int8->square(i, slots_.unit));
        const float unit = float(bounds_.per_unit_ / slots_.unit);
        const float others = least_without(i, r, own);
        for (int g = 0; g < groups_.count(); g++) {
            float low = g == own / groups_.size() ? others : Int8Centers::FILLER;
            // The last group may end behind the last tile.
            const int stop = std::min((g + 1) * per_group, vectors_);
            for (int v = g * per_group; v < stop && g != own / groups_.size(); v++)
                low = std::min(low, least[v]);
            // Twice what rounding can add to a score, for the sum and the square of the row.
            const float slack = 32 * Int8Centers::ROUNDING * (square + std::abs(low));
            const float root = std::sqrt(std::max(low + square - slack, 0.0f)) * unit;
            lower_[g] = std::min(root, 1e30f) * (1 - 4e-7f);
        }
    }

    /// The least lower bound of a score in the group of slot `own`, without that slot.
    float least_without(int64_t i, int r, int own) const {
        const int first = own / groups_.size() * groups_.size();
        float least = Int8Centers::FILLER;
        for (int s = first; s < first + groups_.size() && s < centers_.k; s += W<float>) {
            V<float> low = screen_.low(rows_.int8->bytes_of(i), rounded_[r], s);
            if (own >= s && own < s + W<float>) low[own - s] = Int8Centers::FILLER;
            least = std::min(least, ISA::least<float>(low));
        }
        return least;
    }

    Bounds& bounds_;
    const CenterGroups<T>& groups_;
    const Int8Centers& slots_;
    const Rows<T>& rows_;
    const PackedCenters<T>& centers_;
    Screen screen_;
    ExactReader<T> exact_;
    Aligned<T> row_;
    int vectors_;
    Aligned<float> least_;  // by row and vector of slots: the least lower bound of a score
    std::vector<float> lower_;
    Int8Row rounded_[Screen::ROWS];
};

}  // namespace lloydformer::ISA
