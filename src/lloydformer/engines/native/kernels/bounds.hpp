// Skipping work exactly: bounds on distances that show which centers cannot be the nearest.
//
// Each point has an upper bound on the distance to its own center, and for every group of centers
// a lower bound on the distance to the nearest other one in it (Ding et al., Yinyang k-means, 2015;
// with one group these are Hamerly's bounds). A center that moves by m loosens them by m. Bounds
// are stored less the way that the centers had gone, so a point that is skipped is only read.
#pragma once

#include <memory>

#include "groups.hpp"

namespace lloydformer::ISA {

/// What a pass had to do: points that were looked at, and how often a block of them met a group.
struct Effort {
    int64_t looked_at = 0, met = 0;
};

template <class T>
class Bounds {
  public:
    Bounds(int64_t n, int d, int k) : n_(n), most_(most(d)), went_(k) {}

    /// Bytes for each point.
    static int bytes(int d, int k) {
        return sizeof(float) * (1 + std::min(most(d), (k + GROUP - 1) / GROUP));
    }

    bool known() const { return known_; }
    void forget() { known_ = false; }

    /// The centers have moved here: loosen the bounds, or begin to have some.
    void follow(const Packed<T>& centers, const Rows<T>& rows) {
        const double reach = std::sqrt(double(rows.farthest)) + std::sqrt(double(centers.largest));
        first_ = !known_;
        if (first_)
            begin(centers, reach);
        else
            loosen(centers);
        known_ = true;
        groups_->pack(centers);
        last_ = centers.rows;
        slack_ = float(16 * std::numeric_limits<float>::epsilon() * (reach * per_unit_ + way_));
    }

    /// Calls each(row number, label, row) for the points of a range whose label is another one;
    /// `start` is a multiple of P.
    template <class Each>
    Effort assign(const Rows<T>& rows, int64_t start, int64_t stop, const Packed<T>& centers,
                  const int32_t* labels, Each each) {
        const std::vector<int64_t> open = undecided(start, stop, labels);
        Meeting meeting(*this, rows, centers);
        for (size_t o = 0; o < open.size(); o += P<T>) {
            for (size_t next = o + P<T>; next < std::min(o + 2 * P<T>, open.size()); next++) {
                rows.fetch(open[next]);  // they are scattered, and memory is slow
                __builtin_prefetch(lower(open[next]));
            }
            meeting(&open[o], int(std::min<size_t>(P<T>, open.size() - o)), labels, each);
        }
        return {int64_t(open.size()), meeting.met};
    }

    int groups() const { return int(fled_.size()); }

  private:
    class Meeting;

    /// Groups, so that bounds take at most 64 bytes of a point, or twice what its features do.
    static int most(int d) { return std::max<int>(16, 2 * d * sizeof(T) / sizeof(float)); }

    void begin(const Packed<T>& centers, double reach) {
        per_unit_ = reach > 0 ? std::exp2(-std::floor(std::log2(reach))) : 1;
        groups_ = std::make_unique<Groups<T>>(centers, most_);
        const int64_t blocks = (n_ + P<T> - 1) / P<T>;
        upper_.resize(blocks * P<T>);
        lower_.resize(blocks * P<T> * groups_->count());
        went_.assign(centers.k, 0.0f);
        fled_.assign(groups_->count(), 0.0f);
        way_ = 0;
    }

    void loosen(const Packed<T>& centers) {
        std::vector<double> farthest(groups_->count());
        for (int j = 0; j < centers.k; j++) {
            const T* old = &last_[int64_t(j) * centers.width];
            const double moved =
                std::sqrt(squared_distance_exactly(centers.row(j), old, centers.d)) * per_unit_ *
                (1 + 1e-12);
            went_[j] = up(went_[j] + moved);
            farthest[groups_->of(j)] = std::max(farthest[groups_->of(j)], moved);
            way_ = std::max(way_, double(went_[j]));
        }
        for (size_t g = 0; g < fled_.size(); g++) {
            fled_[g] = up(fled_[g] + farthest[g]);
            way_ = std::max(way_, double(fled_[g]));
        }
    }

    /// A distance, and no less, whatever rounding did to its square; in the bounds' unit.
    float above(T square, T error) const {
        return float(std::sqrt(std::max<T>(square, 0) + error) * T(per_unit_)) * (1 + 4e-7f);
    }

    /// A distance, and no more.
    float below(T square, T error) const {
        const T root = std::sqrt(std::max<T>(square - error, 0)) * T(per_unit_);
        return float(std::min<T>(root, T(1e30))) * (1 - 4e-7f);
    }

    /// The next float above.
    static float up(double value) {
        return std::nextafter(float(value), std::numeric_limits<float>::max());
    }

    /// The lower bounds of point i; those of its groups are P apart.
    float* lower(int64_t i) { return &lower_[i / P<T> * P<T> * fled_.size() + i % P<T>]; }

    /// The points of a range that may have to change their center, those with near centers
    /// together.
    std::vector<int64_t> undecided(int64_t start, int64_t stop, const int32_t* labels) {
        std::vector<int64_t> ends(went_.size() + 1), open, ordered;
        for (int64_t i = start; i < stop; i += P<T>) {
            const int count = int(std::min<int64_t>(P<T>, stop - i));
            bool may[P<T>];
            doubtful(i, count, labels + i, may);
            for (int l = 0; l < count; l++)
                if (may[l]) open.push_back(i + l), ends[groups_->slot(labels[i + l]) + 1]++;
        }
        std::partial_sum(ends.begin(), ends.end(), ends.begin());
        ordered.resize(open.size());
        for (int64_t i : open) ordered[ends[groups_->slot(labels[i])]++] = i;
        return ordered;
    }

    void doubtful(int64_t i, int count, const int32_t* labels, bool (&may)[P<T>]) {
        if (first_) return void(std::fill_n(may, count, true));
        float nearest[P<T>], own[P<T>];
        std::fill_n(nearest, P<T>, std::numeric_limits<float>::max());
        const float* low = lower(i);
        for (size_t g = 0; g < fled_.size(); g++)
            for (int l = 0; l < P<T>; l++)
                nearest[l] = std::min(nearest[l], low[g * P<T> + l] - fled_[g]);
        for (int l = 0; l < count; l++) own[l] = upper_[i + l] + went_[labels[l]];
        for (int l = 0; l < count; l++) may[l] = nearest[l] <= own[l] + slack_;
    }

    int64_t n_;
    int most_;
    bool known_ = false, first_ = false;
    float slack_ = 0;
    double per_unit_ = 1;  // bounds are floats: their unit suits the data
    double way_ = 0;       // the longest that a center has gone since the bounds began
    std::unique_ptr<Groups<T>> groups_;
    std::vector<float> upper_, lower_, went_, fled_;  // fled: the way of the fastest of a group
    std::vector<T> last_;
};

}  // namespace lloydformer::ISA
