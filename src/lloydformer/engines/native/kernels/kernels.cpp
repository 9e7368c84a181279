// The register of all kernels, for one instruction set: this file is compiled once for each.
#include <unordered_map>

#include "attention.hpp"
#include "batch.hpp"
#include "column_ends.hpp"
#include "csr_iterate.hpp"
#include "csr_lloyd.hpp"
#include "csr_measure.hpp"
#include "csr_seeding.hpp"
#include "csr_soft.hpp"
#include "iterate.hpp"
#include "lloyd.hpp"
#include "measure.hpp"
#include "medoid_search.hpp"
#include "medoids.hpp"
#include "minibatch.hpp"
#include "moments.hpp"
#include "oversample.hpp"
#include "recombination.hpp"
#include "relocation_folds.hpp"
#include "relocation_walk.hpp"
#include "robust.hpp"
#include "seeding.hpp"
#include "session.hpp"
#include "soft.hpp"
#include "trimmed.hpp"
#include "two_nearest.hpp"
#include "unseen.hpp"

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
        {"changes", run_changes<T>},
        {"closer", run_closer<T>},
        {"closest", run_closest<T>},
        {"distances", run_distances<T>},
        {"draw", run_draw<T>},
        {"gains", run_gains<T>},
        {"halves", run_halves<T>},
        {"histogram", run_histogram<T>},
        {"iterate", run_iterate<T>},
        {"label_sums", run_label_sums<T>},
        {"labels", run_labels<T>},
        {"looked_at", run_looked_at<T>},
        {"measure", run_measure<T>},
        {"medoid_begin", run_medoid_begin<T>},
        {"medoid_descend", run_medoid_descend<T>},
        {"medoid_exchange", run_medoid_exchange<T>},
        {"medoid_relocate", run_medoid_relocate<T>},
        {"medoid_sweep", run_medoid_sweep<T>},
        {"merge", run_merge<T>},
        {"minibatch", run_minibatch<T>},
        {"moments", run_moments<T>},
        {"mutate", run_mutate<T>},
        {"nearest", run_nearest<T>},
        {"relocate", run_relocate<T>},
        {"seeds", run_seeds<T>},
        {"shares", run_shares<T>},
        {"two_labels", run_two_labels<T>},
        {"two_nearest", run_two_nearest<T>},
        {"walks", run_walks<T>},
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

/// The same for sparse rows.
template <class T, class Index>
const auto& csr_table() {
    static const std::unordered_map<std::string, void (*)(CsrWorkspace<T, Index>&, Call&)> kernels{
        {"closer", run_csr_closer<T, Index>},   {"gains", run_csr_gains<T, Index>},
        {"iterate", run_csr_iterate<T, Index>}, {"measure", run_csr_measure<T, Index>},
        {"moments", run_csr_moments<T, Index>}, {"nearest", run_csr_nearest<T, Index>},
        {"shares", run_csr_shares<T, Index>},
    };
    return kernels;
}

template <class T>
const auto& table_for(const Workspace<T>&) {
    return table<T>();
}

template <class T, class Index>
const auto& table_for(const CsrWorkspace<T, Index>&) {
    return csr_table<T, Index>();
}

template <class Work>
class SessionOf final : public Session {
  public:
    template <class... From>
    explicit SessionOf(int n_threads, From&&... from) : work_(n_threads, from...) {}

    void run(const std::string& kernel, Call& call) override {
        const auto& kernels = table_for(work_);
        const auto found = kernels.find(kernel);
        if (found == kernels.end())
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
    Work work_;
};

template <class T>
std::unique_ptr<Session> dense(const Points& points, int n_threads, int64_t bounds_bytes) {
    return std::make_unique<SessionOf<Workspace<T>>>(n_threads, rows_of<T>(points), bounds_bytes);
}

template <class T>
std::unique_ptr<Session> sparse(const CsrPoints& points, int n_threads) {
    if (points.wide)
        return std::make_unique<SessionOf<CsrWorkspace<T, int64_t>>>(n_threads, points);
    return std::make_unique<SessionOf<CsrWorkspace<T, int32_t>>>(n_threads, points);
}

std::unique_ptr<Session> session(const Points& points, int n_threads, int64_t bounds_bytes) {
    return (points.single ? dense<float> : dense<double>)(points, n_threads, bounds_bytes);
}

std::unique_ptr<Session> csr_session(const CsrPoints& points, int n_threads) {
    return (points.single ? sparse<float> : sparse<double>)(points, n_threads);
}

void solve(const Batch& all, int n_threads) {
    ThreadPool pool(n_threads);
    // Problems of one item of work: a single one may take microseconds, as handing it out does.
    constexpr int64_t together = 16;
    pool.run(int((all.b + together - 1) / together), [&](int group, int) {
        for (int64_t p = group * together; p < std::min(all.b, (group + 1) * together); p++)
            BatchProblem(all, p).solve(all.inertia[p], all.n_iter[p]);
    });
}

int bytes_of_bounds(bool single, int d, int k) {
    return single ? Bounds<float>::bytes(d, k) : Bounds<double>::bytes(d, k);
}

bool ends(bool single, const void* points, int64_t n, int d, void* out, int n_threads) {
    if (single)
        return column_ends(static_cast<const float*>(points), n, d, static_cast<float*>(out),
                           n_threads);
    return column_ends(static_cast<const double*>(points), n, d, static_cast<double*>(out),
                       n_threads);
}

}  // namespace

extern const Kernels kernels{session, csr_session, solve, bytes_of_bounds, ends};

}  // namespace lloydformer::ISA
