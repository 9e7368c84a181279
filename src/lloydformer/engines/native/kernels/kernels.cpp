// The kernels for one instruction set: this file is compiled once for each.
#include "attended.hpp"
#include "lloyd.hpp"
#include "problems.hpp"
#include "relocation.hpp"
#include "rounds.hpp"
#include "seeds.hpp"
#include "session.hpp"
#include "soft.hpp"

namespace lloydformer::ISA {
namespace {

template <class T>
class SessionOf final : public Session {
  public:
    SessionOf(const Points& p, int n_threads, int64_t room)
        : team_(n_threads),
          room_(room),
          rows_(static_cast<const T*>(p.points), p.n, p.d, static_cast<const T*>(p.origin),
                static_cast<const T*>(p.shift), static_cast<const T*>(p.scale), p.weights,
                p.directions, p.mapped) {
        rows_.farthest = static_cast<T>(std::min<double>(p.farthest, HUGE_SCORE<T>));
    }

    void moments(double* out) override { give(ISA::moments(team_, rows_), {{out, 3 + rows_.d}}); }

    int64_t nearest(const void* centers, int k, State state, bool fresh, double* sums,
                    double* masses) override {
        if (lloyd_ == nullptr || k != k_) begin(k, bounded(k)), fresh = true;
        const Totals& totals = lloyd_->step(team_, static_cast<const T*>(centers), state.labels,
                                            state.before, fresh, labels_written_);
        labels_written_ = false;
        std::copy(totals.sums.begin(), totals.sums.end(), sums);
        std::copy(totals.masses.begin(), totals.masses.end(), masses);
        return totals.changed;
    }

    int iterate(double* centers, int k, State state, double tolerance, int max_iter,
                double* history) override {
        begin(k, false);
        Descent<T> descent(rows_, *lloyd_, centers, k, state);
        return descent.run(team_, {tolerance, max_iter}, history);
    }

    int64_t looked_at() const override { return lloyd_ == nullptr ? 0 : lloyd_->looked_at(); }

    void measure(const void* centers, int k, State state, double* spread, double* masses) override {
        const Packed<T> packed(static_cast<const T*>(centers), k, rows_.d);
        const bool labelled = lloyd_ != nullptr && k == k_ && lloyd_->skips();
        if (labelled) lloyd_->relabel(team_, packed, state.labels, state.before);
        labels_written_ = true;
        give(ISA::measure(team_, rows_, packed, state, labelled), {{spread, k}, {masses, k}});
    }

    int64_t shares(const void* centers, int k, double gamma, State state, double* sums,
                   double* masses, double* energy) override {
        const Packed<T> packed(static_cast<const T*>(centers), k, rows_.d);
        lloyd_.reset();  // it would take `before` for its own
        double changes;
        give(Softly<T>(rows_, packed, gamma, state)(team_),
             {{sums, int64_t(k) * rows_.d}, {masses, k}, {energy, 1}, {&changes, 1}});
        return int64_t(changes);
    }

    void served(const void* centers, int k, double* sums, double* masses, double* costs) override {
        const Packed<T> packed(static_cast<const T*>(centers), k, rows_.d);
        give(ISA::served(team_, rows_, packed), {{sums, 2}, {masses, k}, {costs, k}});
    }

    void attended(const void* centers, int k, const Heads& heads, double* level, double* masses,
                  double* sums) override {
        const Packed<T> packed(static_cast<const T*>(centers), k, rows_.d);
        const Attention found = ISA::attended(team_, rows_, packed, heads);
        give(found.level, {{level, int64_t(k) * heads.count}});
        give(found.masses, {{masses, int64_t(k) * heads.count}});
        give(found.sums, {{sums, int64_t(k) * heads.count * rows_.d}});
    }

    void histogram(State state, const int64_t* prefix, int k, int shift, double* masses) override {
        give(ISA::histogram(team_, rows_, state, prefix, k, shift), {{masses, int64_t(k) << 8}});
    }

    int64_t within(State state, const void* radius, int k, double* sums, double* masses,
                   double* objective) override {
        lloyd_.reset();
        return sums_of(ISA::within(team_, rows_, state, static_cast<const T*>(radius), k), k, sums,
                       masses, objective);
    }

    void best(State state, double gamma, int k, double* best, double* masses) override {
        give(ISA::best(team_, rows_, state, gamma, k), {{best, k}, {masses, k}});
    }

    void above(State state, double gamma, const double* threshold, int k, double* masses,
               double* scores) override {
        give(ISA::above(team_, rows_, state, gamma, threshold, k), {{masses, k}, {scores, k}});
    }

    int64_t weighted(State state, double gamma, const double* level, const double* radius, int k,
                     double* sums, double* masses, double* objective) override {
        lloyd_.reset();
        if (radius == nullptr) {
            const auto sparse = [=](double d, int j) {
                return std::max(-gamma * d - level[j], 0.0);
            };
            return sums_of(ISA::weighted(team_, rows_, state, k, sparse), k, sums, masses,
                           objective);
        }
        const auto soft = [=](double d, int j) {
            return d <= radius[j] ? std::exp(-gamma * d - level[j]) : 0.0;
        };
        return sums_of(ISA::weighted(team_, rows_, state, k, soft), k, sums, masses, objective);
    }

    void closer(const void* seed, bool first, State state, int64_t leaf, double* masses) override {
        labels_written_ = true;
        seeds_.closer(team_, static_cast<const T*>(seed), first, static_cast<T*>(state.distances),
                      state.labels, leaf, masses);
    }

    void gains(const void* candidates, int m, State state, double* gains) override {
        give(seeds_.gains(team_, static_cast<const T*>(candidates), m,
                          static_cast<const T*>(state.distances), state.labels),
             {{gains, m}});
    }

    int choose(int64_t* rows, int k, const double* draws, int trials, State state) override {
        labels_written_ = true;
        return seeds_.choose(team_, rows, k, draws, trials, static_cast<T*>(state.distances),
                             state.labels);
    }

    void relocate(double* centers, int k, uint64_t seed, int64_t layer, int moved, int draws,
                  double* objectives) override {
        if (relocation_ == nullptr) relocation_ = std::make_unique<Relocation<T>>(rows_);
        std::tie(objectives[0], objectives[1]) =
            relocation_->run(team_, centers, k, {seed, layer, moved, draws});
    }

  private:
    void begin(int k, bool bounded) {
        lloyd_ = std::make_unique<Lloyd<T>>(rows_, k, bounded);
        k_ = k;
    }

    bool bounded(int k) const { return room_ / Bounds<T>::bytes(rows_.d, k) >= rows_.n; }

    struct Piece {
        double* to;
        int64_t size;
    };

    static void give(const Numbers& numbers, std::initializer_list<Piece> pieces) {
        const double* from = numbers.data();
        for (const Piece& piece : pieces)
            std::copy_n(from, piece.size, piece.to), from += piece.size;
    }

    int64_t sums_of(const Numbers& numbers, int k, double* sums, double* masses,
                    double* objective) const {
        double changes;
        give(numbers, {{sums, int64_t(k) * rows_.d}, {masses, k}, {objective, 1}, {&changes, 1}});
        return int64_t(changes);
    }

    Team team_;
    int64_t room_;  // bytes for bounds
    bool labels_written_ = false;
    Rows<T> rows_;
    std::unique_ptr<Lloyd<T>> lloyd_;
    std::unique_ptr<Relocation<T>> relocation_;
    Seeds<T> seeds_{rows_};
    int k_ = 0;
};

std::unique_ptr<Session> session(const Points& points, int n_threads, int64_t room) {
    if (points.single) return std::make_unique<SessionOf<float>>(points, n_threads, room);
    return std::make_unique<SessionOf<double>>(points, n_threads, room);
}

void solve(const Problems& all, int n_threads) {
    Team team(n_threads);
    constexpr int64_t together = 16;
    team.run(int((all.b + together - 1) / together), [&](int group) {
        for (int64_t p = group * together; p < std::min(all.b, (group + 1) * together); p++)
            Problem(all, p).solve(all.inertia[p], all.n_iter[p]);
    });
}

int bytes_of_bounds(bool single, int d, int k) {
    return single ? Bounds<float>::bytes(d, k) : Bounds<double>::bytes(d, k);
}

}  // namespace

extern const Kernels kernels{session, solve, bytes_of_bounds};

}  // namespace lloydformer::ISA
