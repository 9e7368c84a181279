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

template <class T> class Bounds {
  public:
    Bounds(int64_t n, int d, int k) : n_(n), most_(most(d)), went_(k) {}

    /// Bytes for each point.
    static int bytes(int d, int k) { return sizeof(float) * (1 + std::min(most(d), (k + GROUP - 1) / GROUP)); }

    bool known() const { return known_; }
    void forget() { known_ = false; }

    /// The centers have moved here: loosen the bounds, or begin to have some.
    void follow(const Packed<T>& centers, const Rows<T>& rows) {
        first_ = !known_;
        if (first_)
            begin(centers);
        else
            loosen(centers);
        known_ = true;
        groups_->pack(centers);
        last_ = centers.rows;
        const double reach = std::sqrt(double(rows.farthest)) + std::sqrt(double(centers.largest));
        slack_ = float(16 * std::numeric_limits<float>::epsilon() * (reach + way_));
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

    void begin(const Packed<T>& centers) {
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
            const double moved = std::sqrt(squared_distance_exactly(centers.row(j), old, centers.d)) * (1 + 1e-12);
            went_[j] = up(went_[j] + moved);
            farthest[groups_->of(j)] = std::max(farthest[groups_->of(j)], moved);
            way_ = std::max(way_, double(went_[j]));
        }
        for (size_t g = 0; g < fled_.size(); g++) {
            fled_[g] = up(fled_[g] + farthest[g]);
            way_ = std::max(way_, double(fled_[g]));
        }
    }

    /// The next float above.
    static float up(double value) { return std::nextafter(float(value), std::numeric_limits<float>::max()); }

    /// The lower bounds of point i; those of its groups are P apart.
    float* lower(int64_t i) { return &lower_[i / P<T> * P<T> * fled_.size() + i % P<T>]; }

    /// The points of a range that may have to change their center, those with near centers together.
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
            for (int l = 0; l < P<T>; l++) nearest[l] = std::min(nearest[l], low[g * P<T> + l] - fled_[g]);
        for (int l = 0; l < count; l++) own[l] = upper_[i + l] + went_[labels[l]];
        for (int l = 0; l < count; l++) may[l] = nearest[l] <= own[l] + slack_;
    }

    int64_t n_;
    int most_;
    bool known_ = false, first_ = false;
    float slack_ = 0;
    double way_ = 0;  // the longest that a center has gone since the bounds began
    std::unique_ptr<Groups<T>> groups_;
    std::vector<float> upper_, lower_, went_, fled_;  // fled: the way of the fastest of a group
    std::vector<T> last_;
};

/// A block of points meets the groups that the bounds of one of them do not rule out.
template <class T> class Bounds<T>::Meeting {
  public:
    Meeting(Bounds& bounds, const Rows<T>& rows, const Packed<T>& centers)
        : bounds_(bounds), groups_(*bounds.groups_), rows_(rows), centers_(centers), block_(rows),
          met_(groups_.count()), others_(groups_.count() * 2 * P<T>) {}

    template <class Each> void operator()(const int64_t* open, int count, const int32_t* labels, Each& each) {
        block_.gather(open, count);
        measure();
        for (int r = 0; r < count; r++) {
            own_[r] = labels[open[r]];
            low_[r] = bounds_.lower(open[r]);
            away_[r] = squared_distance(block_.row(r), centers_.row(own_[r]), rows_.width);
        }
        choose(count);
        meet(count);
        for (int r = 0; r < count; r++) decide(r);
        tighten(open, count);
        for (int r = 0; r < count; r++)
            if (label_[r] != own_[r]) each(open[r], label_[r], block_.row(r));
    }

    int64_t met = 0;

  private:
    /// |x|^2 of each point, and how far rounding may move its scores.
    void measure() {
        V<T> square[2]{};
        for (int f = 0; f < rows_.d; f++)
            for (int h = 0; h < 2; h++) {
                const V<T> x = load(block_.lanes() + f * P<T> + h * W<T>);
                square[h] += x * x;
            }
        for (int h = 0; h < 2; h++) store(square_ + h * W<T>, square[h]);
        for (int r = 0; r < P<T>; r++) error_[r] = rounding(centers_, square_[r]);
    }

    /// Which groups does one of the points have to meet?
    void choose(int count) {
        std::fill(met_.begin(), met_.end(), bounds_.first_);
        float reach[P<T>];
        for (int r = 0; r < count; r++) reach[r] = above(away_[r], error_[r]) + bounds_.slack_;
        for (int g = 0; g < groups_.count(); g++)
            for (int r = 0; r < count && !met_[g]; r++) met_[g] = low_[r][g * P<T>] - bounds_.fled_[g] <= reach[r];
    }

    /// The best and the second best center; the own one is among them, met or not.
    void meet(int count) {
        for (int r = 0; r < P<T>; r++) best_[r] = second_[r] = HUGE_SCORE<T>, near_[r] = -1;
        for (int r = 0; r < count; r++)
            if (!met_[groups_.of(own_[r])]) best_[r] = away_[r] - square_[r];
        for (int g = 0; g < groups_.count(); g++) {
            if (!met_[g]) continue;
            met++;
            const Found<T> found = groups_.nearest(block_.lanes(), g);
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
        const bool sure = second_[r] - best_[r] > 2 * error_[r];
        const int32_t found = near_[r] < 0 ? own_[r] : groups_.center(int(near_[r]));
        label_[r] = sure ? found : nearest_exactly(block_.row(r), centers_);
        if (!sure) best_[r] = squared_distance(block_.row(r), centers_.row(label_[r]), rows_.width) - square_[r];
        // In the group of the label, the second best is the nearest other center.
        group_[r] = sure ? groups_.of(label_[r]) : -1;
    }

    /// New bounds.
    void tighten(const int64_t* open, int count) {
        float bound[P<T>];
        for (int g = 0; g < groups_.count(); g++) {
            if (!met_[g]) continue;
            const T *one = &others_[g * 2 * P<T>], *two = one + P<T>;
            for (int r = 0; r < P<T>; r++)
                bound[r] = below((group_[r] == g ? two[r] : one[r]) + square_[r], error_[r]) + bounds_.fled_[g];
            for (int r = 0; r < count; r++) low_[r][g * P<T>] = bound[r];
        }
        for (int r = 0; r < P<T>; r++) bound[r] = above(best_[r] + square_[r], error_[r]);
        for (int r = 0; r < count; r++) {
            bounds_.upper_[open[r]] = bound[r] - bounds_.went_[label_[r]];
            const int own = groups_.of(own_[r]);
            if (label_[r] == own_[r] || met_[own]) continue;
            float& lost = low_[r][own * P<T>];  // the group of the old center has one more to mind
            lost = std::min(lost, below(away_[r], error_[r]) + bounds_.fled_[own]);
        }
    }

    static float above(T square, T error) { return std::sqrt(float(std::max<T>(square, 0) + error)) * (1 + 4e-7f); }
    static float below(T square, T error) { return std::sqrt(float(std::max<T>(square - error, 0))) * (1 - 4e-7f); }

    Bounds& bounds_;
    const Groups<T>& groups_;
    const Rows<T>& rows_;
    const Packed<T>& centers_;
    Block<T> block_;
    std::vector<char> met_;
    std::vector<T> others_;  // by group: the best scores of all points, then the second best
    int32_t own_[P<T>], label_[P<T>], group_[P<T>];
    float* low_[P<T>];
    T square_[P<T>], away_[P<T>], error_[P<T>], best_[P<T>], second_[P<T>];
    decltype(I<T>{}[0] + 0) near_[P<T>];  // a slot, or -1
};

}  // namespace lloydformer::ISA
