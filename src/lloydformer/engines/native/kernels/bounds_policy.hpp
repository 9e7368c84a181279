// Decides when bounds save time, and when comparing all points with all centers is cheaper.
#pragma once

#include "bounds.hpp"

namespace lloydformer::ISA {

/// Costs are vector instructions per point, as measured. Labels and sums are the same either way.
/// The choice depends on counts alone, so it is the same for any number of threads and in every
/// run.
class BoundsPolicy {
  public:
    /// screened: all centers are compared by screening, those of a group never are.
    BoundsPolicy(int64_t n, int d, int k, int width, bool screened)
        : n_(double(n)),
          block_(2.0 * width),
          groups_((k + GROUP - 1) / GROUP),
          scores_((double(k) * d + 5.0 * k) / width + 0.5 * d + 15),
          all_(screened ? (double(k) * d / QUAD + 6.0 * k) / width + 150 : scores_),
          look_(130 + 5.0 * groups_) {}

    /// Where a comparison with all centers is cheap, bounds are never used: reading them would cost
    /// as much. Otherwise they are built when at most one label in eight changes, fewer where a
    /// point that bounds do not decide costs more than a comparison.
    void begin() {
        few_ = all_ < 40 ? -1 : n_ / 8 * all_ / (all_ + look_) * all_ / scores_;
        changed_ = n_;
    }

    /// Use existing bounds; build them only if few labels changed.
    bool use_bounds(bool known) const { return known || changed_ <= few_; }

    /// False if a search for so many points would cost more than comparing all points with all
    /// centers, at its worst: where screening makes the latter cheap.
    bool is_worth_searching(int64_t undecided) const {
        return all_ == scores_ || double(undecided) * scores_ < n_ * all_;
    }

    /// Bounds are built again when half as many points change as in the last pass.
    void wait_for_fewer() { few_ = changed_ / 2; }

    void set_changed(int64_t changed) { changed_ = double(changed); }

    /// Returns true if a pass with bounds was cheaper than one without. If not, bounds are built
    /// again when half as many points change, so that a fit does not alternate between the two.
    bool keep(const Effort& effort, int64_t changed) {
        const double comparing = double(effort.comparisons) * block_ * scores_ / groups_;
        const double skipping =
            n_ * (4 + 1.5 * groups_) + comparing + double(effort.looked_at) * look_;
        const bool first = double(effort.looked_at) >= n_;
        if (first || skipping < n_ * all_) return true;
        few_ = double(changed) / 2;
        return false;
    }

  private:
    double n_, block_, groups_;
    // Cost of scores with all centers, of comparing with all centers, and of a point that bounds do
    // not decide.
    double scores_, all_, look_;
    double few_ = 0, changed_ = 0;
};

}  // namespace lloydformer::ISA
