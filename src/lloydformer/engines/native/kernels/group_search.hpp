// The search for the nearest centers of points that their bounds do not decide.
//
// Before and after, the invariant of bounds.hpp holds for every point of the block: groups that
// are compared get new lower bounds, others keep theirs. The label is exact, as in assign.hpp.
#pragma once

#include "bounds.hpp"

namespace lloydformer::ISA {

/// Compares a block of points with the groups that the bounds of at least one point do not exclude.
template <class T>
class Bounds<T>::GroupSearch {
  public:
    GroupSearch(Bounds& bounds, const Rows<T>& rows, const PackedCenters<T>& centers)
        : bounds_(bounds),
          groups_(*bounds.groups_),
          rows_(rows),
          centers_(centers),
          block_(rows),
          needed_(groups_.count()),
          others_(groups_.count() * 2 * P<T>) {}

    template <class Each>
    void operator()(const int64_t* open, int count, const int32_t* labels, Each& each) {
        block_.gather(open, count);
        measure();
        for (int r = 0; r < count; r++) {
            own_[r] = labels[open[r]];
            low_[r] = bounds_.lower(open[r]);
            away_[r] = squared_distance(block_.row(r), centers_.row(own_[r]), rows_.width);
            away_error_[r] = error_[r] + margin(own_[r]);
        }
        choose(count);
        compare(count);
        for (int r = 0; r < count; r++) decide(r);
        tighten(open, count);
        for (int r = 0; r < count; r++)
            if (label_[r] != own_[r]) each(open[r], label_[r]);
    }

    int64_t comparisons = 0;  // of a block with a group

  private:
    /// |x|^2 of each point, and its share in the rounding error of its scores.
    void measure() {
        block_.squares(square_);
        for (int r = 0; r < P<T>; r++) error_[r] = centers_.error.row(square_[r]);
    }

    /// The share of a center in the rounding error of its scores.
    T margin(int center) const { return centers_.error.center(centers_.squares[center]); }

    /// The lowered score of a point and a center from their squared distance `away`, which is
    /// computed by differences: its error is below that of a score.
    T lowered_score(T away, int r, int center) const { return away - square_[r] - margin(center); }

    /// Finds the groups that at least one point must be compared with.
    void choose(int count) {
        std::fill(needed_.begin(), needed_.end(), bounds_.first_);
        float reach[P<T>];
        for (int r = 0; r < count; r++) reach[r] = bounds_.above(away_[r], away_error_[r]);
        for (int g = 0; g < groups_.count(); g++)
            for (int r = 0; r < count && !needed_[g]; r++)
                needed_[g] = bounds_.current(low_[r][g * P<T>], g) <= reach[r];
    }

    /// The best and second best center; the own one is included even if its group is skipped.
    void compare(int count) {
        for (int r = 0; r < P<T>; r++) best_[r] = second_[r] = HUGE_SCORE<T>, near_[r] = -1;
        for (int r = 0; r < count; r++)
            if (!needed_[groups_.of(own_[r])]) best_[r] = lowered_score(away_[r], r, own_[r]);
        for (int g = 0; g < groups_.count(); g++) {
            if (!needed_[g]) continue;
            comparisons++;
            const BestScores<T> found = groups_.nearest(block_.lanes(), g);
            T* others = &others_[g * 2 * P<T>];
            for (int h = 0; h < 2; h++) {
                const int at = h * W<T>;
                const V<T> best = load(best_ + at), one = found.best[h], two = found.second[h];
                store(others + at, one);
                store(others + P<T> + at, two);
                const I<T> closer = one < best;
                I<T> near;
                std::memcpy(&near, near_ + at, sizeof near);
                near = closer ? found.index[h] : near;
                std::memcpy(near_ + at, &near, sizeof near);
                store(second_ + at, min<T>(min<T>(load(second_ + at), two), max<T>(best, one)));
                store(best_ + at, min<T>(best, one));
            }
        }
    }

    void decide(int r) {
        const int32_t found = near_[r] < 0 ? own_[r] : groups_.center(int(near_[r]));
        const T own = 2 * margin(found);
        const bool sure = second_[r] - best_[r] > 2 * error_[r] + own;
        label_[r] = sure ? found : nearest_exactly(block_, r, centers_, square_[r], best_[r] + own);
        if (!sure)
            best_[r] =
                lowered_score(squared_distance(block_.row(r), centers_.row(label_[r]), rows_.width),
                              r, label_[r]);
        // In the group of the label, the second best is the nearest other center.
        group_[r] = sure ? groups_.of(label_[r]) : -1;
    }

    /// Sets new bounds.
    void tighten(const int64_t* open, int count) {
        float bound[P<T>];
        for (int g = 0; g < groups_.count(); g++) {
            if (!needed_[g]) continue;
            const T *one = &others_[g * 2 * P<T>], *two = one + P<T>;
            for (int r = 0; r < P<T>; r++)
                bound[r] =
                    bounds_.below((group_[r] == g ? two[r] : one[r]) + square_[r], error_[r]) +
                    bounds_.group_path_[g];
            for (int r = 0; r < count; r++) low_[r][g * P<T>] = bound[r];
        }
        for (int r = 0; r < count; r++)
            bound[r] = bounds_.above(best_[r] + square_[r], error_[r] + 2 * margin(label_[r]));
        for (int r = 0; r < count; r++) {
            bounds_.upper_[open[r]] = bound[r] - bounds_.path_[label_[r]];
            const int own = groups_.of(own_[r]);
            if (label_[r] == own_[r] || needed_[own]) continue;
            float& lost = low_[r][own * P<T>];  // the old center is now one of the others
            lost =
                std::min(lost, bounds_.below(away_[r], away_error_[r]) + bounds_.group_path_[own]);
        }
    }

    Bounds& bounds_;
    const CenterGroups<T>& groups_;
    const Rows<T>& rows_;
    const PackedCenters<T>& centers_;
    PointBlock<T> block_;
    std::vector<char> needed_;
    std::vector<T> others_;  // by group: best scores of all points, then second best scores
    int32_t own_[P<T>], label_[P<T>], group_[P<T>];
    float* low_[P<T>];
    T square_[P<T>], error_[P<T>];        // |x|^2
    T away_[P<T>], away_error_[P<T>];     // squared distance to the own center, by differences
    T best_[P<T>], second_[P<T>];         // lowered scores
    decltype(I<T>{}[0] + 0) near_[P<T>];  // a slot, or -1
};

}  // namespace lloydformer::ISA
