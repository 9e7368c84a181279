// The kernels for one instruction set: this file is compiled once for each.
#include <unordered_map>

#include "attention.hpp"
#include "batch.hpp"
#include "iterate.hpp"
#include "lloyd.hpp"
#include "measure.hpp"
#include "medoids.hpp"
#include "minibatch.hpp"
#include "moments.hpp"
#include "oversample.hpp"
#include "relocation.hpp"
#include "robust.hpp"
#include "seeding.hpp"
#include "session.hpp"
#include "soft.hpp"
#include "trimmed.hpp"
#include "two_nearest.hpp"

namespace lloydformer::ISA {
namespace {

/// Every kernel by its name. A new one: a header with its run_ function, and a line here.
/// Built at the first call and not at load time, when the instruction set may not be there.
template <class T>
const auto& table() {
    static const std::unordered_map<std::string, void (*)(Workspace<T>&, Call&)> kernels{
        {"above", run_above<T>},
        {"approach", run_approach<T>},
        {"attention", run_attention<T>},
        {"best", run_best<T>},
        {"closer", run_closer<T>},
        {"closest", run_closest<T>},
        {"draw", run_draw<T>},
        {"gains", run_gains<T>},
        {"histogram", run_histogram<T>},
        {"iterate", run_iterate<T>},
        {"looked_at", run_looked_at<T>},
        {"measure", run_measure<T>},
        {"minibatch", run_minibatch<T>},
        {"moments", run_moments<T>},
        {"nearest", run_nearest<T>},
        {"relocate", run_relocate<T>},
        {"seeds", run_seeds<T>},
        {"shares", run_shares<T>},
        {"two_nearest", run_two_nearest<T>},
        {"weighted", run_weighted<T>},
        {"within", run_within<T>},
    };
    return kernels;
}

template <class T>
Rows<T> rows_of(const Points& p) {
    Rows<T> rows(static_cast<const T*>(p.points), p.n, p.d, p.leaf, static_cast<const T*>(p.origin),
                 static_cast<const T*>(p.shift), static_cast<const T*>(p.scale), p.weights,
                 p.directions, p.mapped);
    rows.largest_square = static_cast<T>(std::min<double>(p.largest_square, HUGE_SCORE<T>));
    return rows;
}

template <class T>
class SessionOf final : public Session {
  public:
    SessionOf(const Points& points, int n_threads, int64_t bounds_bytes)
        : work_(n_threads, rows_of<T>(points), bounds_bytes) {}

    void run(const std::string& kernel, Call& call) override {
        const auto found = table<T>().find(kernel);
        if (found == table<T>().end())
            throw std::invalid_argument("kernel: found \"" + kernel + "\", which does not exist");
        try {
            found->second(work_, call);
        } catch (...) {
            work_.reset();
            throw;
        }
        call.check_all_read(kernel);
    }

  private:
    Workspace<T> work_;
};

std::unique_ptr<Session> session(const Points& points, int n_threads, int64_t bounds_bytes) {
    if (points.single) return std::make_unique<SessionOf<float>>(points, n_threads, bounds_bytes);
    return std::make_unique<SessionOf<double>>(points, n_threads, bounds_bytes);
}

void solve(const Batch& all, int n_threads) {
    ThreadPool pool(n_threads);
    constexpr int64_t together = 16;  // problems of one item of work
    pool.run(int((all.b + together - 1) / together), [&](int group, int) {
        for (int64_t p = group * together; p < std::min(all.b, (group + 1) * together); p++)
            BatchProblem(all, p).solve(all.inertia[p], all.n_iter[p]);
    });
}

int bytes_of_bounds(bool single, int d, int k) {
    return single ? Bounds<float>::bytes(d, k) : Bounds<double>::bytes(d, k);
}

}  // namespace

extern const Kernels kernels{session, solve, bytes_of_bounds};

}  // namespace lloydformer::ISA
