// Lloyd's iterations with relocations between them, for one start or many, in one call. The rules
// are those of solving/relocations.py; change them together.
#pragma once

#include "relocation.hpp"

namespace lloydformer::ISA {

/// When a run relocates, and when it ends.
struct WalkRule {
    int64_t patience, rest;  // rest < 0: relocate when the centers have settled
    double tolerance;        // of the squared shift of all centers
    int64_t max_layers;
};

/// One run of solving/relocations.py. A layer is an iteration; a relocation counts as `depth_` of
/// them, the layers of its circuit (docs/relocating-circuit.md).
template <class T>
class RelocationWalk {
  public:
    RelocationWalk(Relocation<T>& relocation, double* centers, int k, int d, const Moves& moves,
                   const WalkRule& rule, double* history)
        : relocation_(relocation),
          centers_(centers),
          k_(k),
          size_(int64_t(k) * d),
          depth_(3 + std::min(moves.moved, k)),
          moves_(moves),
          rule_(rule),
          history_(history) {}

    /// Moves the centers. `history` gets the objective of the centers before each layer; the number
    /// of layers is returned.
    int64_t run(ThreadPool& pool) {
        for (;;) {
            const bool patient = fails_ < rule_.patience && k_ > 1;
            iterate(pool, patient);
            if (!patient || left() < depth_) return count_;
            relocate(pool);
        }
    }

  private:
    // RELOCATION_GAIN and SETTLED of numerics/search_constants.py.
    static constexpr double GAIN = 1e-6, SETTLED = 1e-12;

    int64_t left() const { return rule_.max_layers - count_; }

    void iterate(ThreadPool& pool, bool patient) {
        const bool brief = rule_.rest >= 0 && patient && left() >= rule_.rest + depth_;
        const int64_t most = settled_ ? 0 : brief ? rule_.rest : left();
        for (int64_t step = 0; step < most; step++) {
            const LloydStep found = relocation_.lloyd(pool, centers_, k_);
            history_[count_++] = found.objective;
            settled_ = found.shift <= rule_.tolerance || found.less <= SETTLED * found.objective;
            if (settled_) return;
        }
    }

    void relocate(ThreadPool& pool) {
        Moves moves = moves_;
        moves.layer += count_;
        std::vector<double> tried(centers_, centers_ + size_);
        const auto [before, after] = relocation_.run(pool, tried.data(), k_, moves);
        const bool kept = after < (1 - GAIN) * before;
        if (kept) std::copy(tried.begin(), tried.end(), centers_);
        fails_ = kept ? 0 : fails_ + 1;
        settled_ = settled_ && !kept;
        for (int layer = 0; layer < depth_; layer++) history_[count_++] = before;
    }

    Relocation<T>& relocation_;
    double* centers_;
    int k_;
    int64_t size_;
    int depth_;
    Moves moves_;
    WalkRule rule_;
    double* history_;
    int64_t count_ = 0, fails_ = 0;
    bool settled_ = false;
};

/// Runs from several starts (b, k, d), in place, each with its own seed. `history` (b, max_layers)
/// gets the objective before each layer, `counts` (b) the number of layers, `masses` (b, k) and
/// `objectives` (b) are those of the last centers. A single run has all threads; of several, each
/// has one thread.
template <class T>
void run_relocating_iterations(Workspace<T>& work, Call& call) {
    const int d = work.rows.d;
    const auto centers = call.out<double>("centers", "(b, k, d)", {ANY, ANY, d});
    const int64_t b = centers.shape[0], k = centers.shape[1];
    const auto seeds = call.in<int64_t>("seeds", "(b)", {b});
    const auto history = call.out<double>("history", "(b, max_layers)", {b, ANY});
    const auto counts = call.out<int64_t>("counts", "(b)", {b});
    const auto masses = call.out<double>("masses", "(b, k)", {b, k});
    const auto objectives = call.out<double>("objectives", "(b)", {b});
    const Moves moves{0, call.integer("layer"), int(call.integer("moved")),
                      int(call.integer("draws"))};
    Call::require(moves.moved > 0, "moved", "pass a number above 0");
    Call::require(moves.draws > 0, "draws", "pass a number above 0");
    const WalkRule rule{call.integer("patience"), call.integer("rest"), call.number("tolerance"),
                        history.shape[1]};
    const auto walk = [&](int64_t w, ThreadPool& pool) {
        Relocation<T> relocation(work.rows);
        Moves own = moves;
        own.seed = uint64_t(seeds[w]);
        double* at = centers + w * k * d;
        counts[w] =
            RelocationWalk<T>(relocation, at, int(k), d, own, rule, history + w * rule.max_layers)
                .run(pool);
        objectives[w] = relocation.measure(pool, at, int(k), masses + w * k);
    };
    work.copy_for_two_nearest(int(k + std::min<int64_t>(k, moves.moved)));
    if (b == 1) return walk(0, work.pool);
    work.pool.run(int(b), [&](int w, int) {
        ThreadPool alone(1);
        walk(w, alone);
    });
}

}  // namespace lloydformer::ISA
