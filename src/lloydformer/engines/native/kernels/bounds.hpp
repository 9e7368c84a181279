// Bounds on distances that show which centers cannot be the nearest: labels stay exact.
//
// Each point has an upper bound on the distance to its own center, and for every group of centers
// a lower bound on the distance to the nearest other one in it (Ding et al., Yinyang k-means,
// 2015; with one group these are Hamerly's bounds). A center that moves by m loosens them by m.
// Bounds are stored relative to the paths of the centers, so nothing is written for a skipped
// point.
//
// Invariant: for every point, upper + path of its center is at least the distance to it, and
// lower - path of the group at most that to any other center of the group. Points are those of
// the caller, not rounded: `ScoreError` covers that a score sees them rounded. Returned centers
// (centers.hpp) move to their rounded places and then by their rounding. All roundings go to the
// safe side: paths are rounded up, bounds by 4e-7 (three units of float32) outwards, and `OUTWARDS`
// covers that paths are added to bounds and subtracted again, in float32: each bound by its own
// size, so that a far row does not loosen those of the others.
#pragma once

#include <memory>

#include "center_groups.hpp"
#include "tree.hpp"

namespace lloydformer::ISA {

/// Work of a pass: points that bounds did not decide, and comparisons of a block with a group.
struct Effort {
    int64_t looked_at = 0, comparisons = 0;
};

template <class T>
class Bounds {
  public:
    Bounds(int64_t n, int d, int k) : n_(n), most_groups_(most_groups(d)), path_(k) {}

    /// Bytes for each point.
    static int bytes(int d, int k) {
        return sizeof(float) * (1 + std::min(most_groups(d), (k + GROUP - 1) / GROUP));
    }

    bool known() const { return known_; }
    void forget() { known_ = false; }

    /// Loosens the bounds by how far the centers have moved, or starts new bounds.
    void follow(const PackedCenters<T>& centers, const Rows<T>& rows) {
        const double reach =
            std::sqrt(double(rows.largest_square)) + std::sqrt(double(centers.largest));
        first_ = !known_;
        if (first_)
            begin(centers, reach);
        else
            loosen(centers);
        known_ = true;
        by_slot_ = first_ && centers.int8 != nullptr && rows.int8 != nullptr
                       ? groups_->in_int8(centers)
                       : nullptr;
        groups_->pack(centers);
        last_ = centers.rows;
    }

    /// True if the bounds are new ones: then all points are undecided.
    bool first() const { return first_; }

    /// Calls each(row number, label) for the points of a range whose label changes. `labels` are
    /// those of the last call, and `open` what `find_undecided` has found; empty if `first`.
    template <class Each>
    Effort search(const Rows<T>& rows, Range range, std::vector<int64_t> open,
                  const PackedCenters<T>& centers, const int32_t* labels, Each each) {
        if (by_slot_ != nullptr) return ScreenedBuild(*this, rows, centers)(range, labels, each);
        if (first_) open = find_undecided(range, labels);
        GroupSearch search(*this, rows, centers);
        for (size_t o = 0; o < open.size(); o += P<T>) {
            for (size_t next = o + P<T>; next < std::min(o + 2 * P<T>, open.size()); next++) {
                rows.prefetch(open[next]);  // the rows are scattered in memory
                __builtin_prefetch(lower(open[next]));
            }
            search(&open[o], int(std::min<size_t>(P<T>, open.size() - o)), labels, each);
        }
        return {int64_t(open.size()), search.comparisons};
    }

    /// The points of a range that may have to change their center, ordered by the slots of their
    /// centers: points with near centers share a block.
    std::vector<int64_t> find_undecided(Range range, const int32_t* labels) const {
        std::vector<int64_t> ends(path_.size() + 1), open, ordered;
        for (int64_t i = range.start, next; i < range.stop; i = next) {
            next = std::min(range.stop, (i / P<T> + 1) * P<T>);
            const int count = int(next - i);
            bool may[P<T>];
            if (count == P<T>)
                mark_undecided(i, std::integral_constant<int, P<T>>{}, labels + i, may);
            else
                mark_undecided(i, count, labels + i, may);
            for (int l = 0; l < count; l++)
                if (may[l]) open.push_back(i + l), ends[groups_->slot(labels[i + l]) + 1]++;
        }
        if (first_) return open;  // all of them: in row order, bounds are written block by block
        std::partial_sum(ends.begin(), ends.end(), ends.begin());
        ordered.resize(open.size());
        for (int64_t i : open) ordered[ends[groups_->slot(labels[i])]++] = i;
        return ordered;
    }

  private:
    class GroupSearch;
    class ScreenedBuild;

    /// Returns so many groups that bounds take at most 64 bytes per point, or twice the bytes of
    /// its features: more would cost as much to read as the points.
    static int most_groups(int d) { return std::max<int>(16, 2 * d * sizeof(T) / sizeof(float)); }

    void begin(const PackedCenters<T>& centers, double reach) {
        per_unit_ = reach > 0 ? std::exp2(-std::floor(std::log2(reach))) : 1;
        groups_ = std::make_unique<CenterGroups<T>>(centers, most_groups_);
        const int64_t blocks = (n_ + P<T> - 1) / P<T>;
        upper_.resize(blocks * P<T>);
        lower_.resize(blocks * P<T> * groups_->count());
        path_.assign(centers.k, 0.0f);
        group_path_.assign(groups_->count(), 0.0f);
    }

    void loosen(const PackedCenters<T>& centers) {
        // A returned center is at most 1.01 u |c| away from its row in T, u = eps / 2.
        const double rounding = centers.centered() ? 0 : std::numeric_limits<T>::epsilon();
        std::vector<double> farthest(groups_->count());
        for (int j = 0; j < centers.k; j++) {
            const T* old = &last_[int64_t(j) * centers.width];
            const double moved =
                (std::sqrt(squared_distance_exactly(centers.row(j), old, centers.d)) +
                 rounding * std::sqrt(double(centers.squares[j]))) *
                per_unit_ * (1 + 1e-12);
            path_[j] = up(path_[j] + moved);
            farthest[groups_->of(j)] = std::max(farthest[groups_->of(j)], moved);
        }
        for (size_t g = 0; g < group_path_.size(); g++)
            group_path_[g] = up(group_path_[g] + farthest[g]);
    }

    // A stored bound is rounded twice, when a path is added to it and when it is subtracted, by at
    // most one unit of its own size or of the path: eight units are more than all of that.
    static constexpr float OUTWARDS = 8 * std::numeric_limits<float>::epsilon();

    /// The lower bound of a group, from the stored one: less the path of the group.
    float current(float stored, size_t g) const {
        return stored - OUTWARDS * std::abs(stored) - group_path_[g];
    }

    /// Upper bound of a distance whose square has a rounding error; in the unit of the bounds.
    float above(T square, T error) const {
        return float(std::sqrt(std::max<T>(square, 0) + error) * T(per_unit_)) * (1 + 4e-7f);
    }

    /// Lower bound of a distance.
    float below(T square, T error) const {
        const T root = std::sqrt(std::max<T>(square - error, 0)) * T(per_unit_);
        return float(std::min<T>(root, T(1e30))) * (1 - 4e-7f);
    }

    /// The next float above.
    static float up(double value) {
        return std::nextafter(float(value), std::numeric_limits<float>::max());
    }

    /// The lower bounds of point i; those of its groups are P apart.
    float* lower(int64_t i) { return &lower_[place(i)]; }
    const float* lower(int64_t i) const { return &lower_[place(i)]; }
    int64_t place(int64_t i) const {
        return i / P<T> * P<T> * int64_t(group_path_.size()) + i % P<T>;
    }

    /// may[l]: point i + l may have to change its center. Lanes of other ranges are not read.
    template <class Count>
    void mark_undecided(int64_t i, Count count, const int32_t* labels, bool (&may)[P<T>]) const {
        if (first_) return void(std::fill_n(may, count, true));
        float nearest[P<T>], own[P<T>];
        std::fill_n(nearest, P<T>, std::numeric_limits<float>::max());
        const float* low = lower(i);
        for (size_t g = 0; g < group_path_.size(); g++)
            for (int l = 0; l < count; l++)
                nearest[l] = std::min(nearest[l], current(low[g * P<T> + l], g));
        for (int l = 0; l < count; l++) {
            const float path = path_[labels[l]];
            own[l] = upper_[i + l] + path + OUTWARDS * (std::abs(upper_[i + l]) + path);
        }
        for (int l = 0; l < count; l++) may[l] = nearest[l] <= own[l];
    }

    int64_t n_;
    int most_groups_;
    bool known_ = false, first_ = false;
    double per_unit_ = 1;  // bounds are float32: the unit fits the scale of the data
    std::unique_ptr<CenterGroups<T>> groups_;
    std::vector<float> upper_, lower_;  // by point; by point and group
    std::vector<float> path_;           // length of the path of each center
    std::vector<float> group_path_;     // of the fastest center of each group, step by step
    std::vector<T> last_;
    std::unique_ptr<Int8Centers> by_slot_;  // null: new bounds come from scores
};

}  // namespace lloydformer::ISA
