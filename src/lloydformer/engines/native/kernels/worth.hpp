// When bounds pay, and when all points had better be looked at.
#pragma once

#include "bounds.hpp"

namespace lloydformer::ISA {

/// Costs are vector instructions for a point, as measured. Labels are the same either way, and the
/// choice depends on counts alone, so it is the same in every run and for any number of threads.
class Worth {
  public:
    Worth(int64_t n, int d, int k, int width)
        : n_(double(n)),
          block_(2.0 * width),
          groups_((k + GROUP - 1) / GROUP),
          all_((double(k) * d + 5.0 * k) / width + 0.5 * d + 15),
          look_(130 + 5.0 * groups_) {}

    void begin() { few_ = n_ / 8 * all_ / (all_ + look_), changed_ = n_; }

    /// Should the next pass use bounds? Those that there are, always.
    bool now(bool known) const { return known || changed_ <= few_; }

    void see(int64_t changed) { changed_ = double(changed); }

    /// Was a pass with bounds cheaper than one without? If not, they are tried again when half as
    /// many points change.
    bool keep(const Effort& effort, int64_t changed) {
        const double meeting = double(effort.met) * block_ * all_ / groups_;
        const double skipping =
            n_ * (4 + 1.5 * groups_) + meeting + double(effort.looked_at) * look_;
        const bool first = double(effort.looked_at) >= n_;
        if (first || skipping < n_ * all_) return true;
        few_ = double(changed) / 2;
        return false;
    }

  private:
    double n_, block_, groups_, all_, look_;
    double few_ = 0, changed_ = 0;
};

}  // namespace lloydformer::ISA
