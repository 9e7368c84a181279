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
#include "farthest.hpp"
#include "iterate.hpp"
#include "lloyd.hpp"
#include "masked.hpp"
#include "measure.hpp"
#include "medoid_search.hpp"
#include "medoids.hpp"
#include "minibatch.hpp"
#include "mixture.hpp"
#include "moments.hpp"
#include "nearest_costs.hpp"
#include "oversample.hpp"
#include "recombination.hpp"
#include "relocation_folds.hpp"
#include "relocation_walk.hpp"
#include "robust.hpp"
#include "seeding.hpp"
#include "session.hpp"
#include "soft.hpp"
#include "transport.hpp"
#include "trimmed.hpp"
#include "unseen.hpp"

namespace lloydformer::ISA {
namespace {

/// Every kernel by the name of the fold or task that it runs. A new one: a header with its run_
/// function, and a line here. Built at the first call and not at load time, when the instruction
/// set may not be there.
template <class T>
const auto& table() {
    static const std::unordered_map<std::string, void (*)(Workspace<T>&, Call&)> kernels{
        {"attention_sums", run_attention_sums<T>},
        {"bounded_assignment", run_bounded_assignment<T>},
        {"cluster_errors", run_two_nearest<T>},
        {"distance_histogram", run_distance_histogram<T>},
        {"distances", run_distances<T>},
        {"farthest", run_farthest<T>},
        {"halves", run_halves<T>},
        {"highest_scores", run_highest_scores<T>},
        {"label_sums", run_label_sums<T>},
        {"labels", run_labels<T>},
        {"lloyd_iterations", run_lloyd_iterations<T>},
        {"looked_at", run_looked_at<T>},
        {"masked_distances", run_masked_distances<T>},
        {"masked_sums", run_masked_sums<T>},
        {"medoid_begin", run_medoid_begin<T>},
        {"medoid_descend", run_medoid_descend<T>},
        {"medoid_draw", run_medoid_draw<T>},
        {"medoid_exchange", run_medoid_exchange<T>},
        {"medoid_relocate", run_medoid_relocate<T>},
        {"medoid_sweep", run_medoid_sweep<T>},
        {"minibatch_sums", run_minibatch_sums<T>},
        {"mixture_labels", run_mixture_labels<T>},
        {"mixture_rows", run_mixture_rows<T>},
        {"mixture_sums", run_mixture_sums<T>},
        {"moments", run_moments<T>},
        {"mutation", run_mutation<T>},
        {"nearest_costs", run_nearest_costs<T>},
        {"nearest_distances", run_nearest_distances<T>},
        {"nearest_rows", run_nearest_rows<T>},
        {"nearest_sum_changes", run_nearest_sum_changes<T>},
        {"nearest_sums", run_nearest_sums<T>},
        {"new_seed", run_new_seed<T>},
        {"oversampling", run_oversampling<T>},
        {"plus_plus_seeds", run_plus_plus_seeds<T>},
        {"potential", run_potential<T>},
        {"relocating_iterations", run_relocating_iterations<T>},
        {"relocation", run_relocation<T>},
        {"robust_sums", run_robust_sums<T>},
        {"soft_sums", run_soft_sums<T>},
        {"sums_above_threshold", run_sums_above_threshold<T>},
        {"trimmed_sums", run_trimmed_sums<T>},
        {"two_nearest", run_two_nearest<T>},
        {"ward_merging", run_ward_merging<T>},
    };
    return kernels;
}

template <class T>
Rows<T> rows_of(const Points& p) {
    Rows<T> rows(static_cast<const T*>(p.points), p.n, p.d, p.leaf, static_cast<const T*>(p.origin),
                 static_cast<const T*>(p.shift), static_cast<const T*>(p.scale), p.weights,
                 p.directions, p.mapped);
    rows.largest_square = static_cast<T>(std::min<double>(p.largest_square, HUGE_SCORE<T>));
    rows.screening = static_cast<Screening>(p.screening);
    return rows;
}

/// Kernels for sparse rows, by the same names.
template <class T, class Index>
const auto& csr_table() {
    static const std::unordered_map<std::string, void (*)(CsrWorkspace<T, Index>&, Call&)> kernels{
        {"lloyd_iterations", run_csr_lloyd_iterations<T, Index>},
        {"moments", run_csr_moments<T, Index>},
        {"nearest_distances", run_csr_nearest_distances<T, Index>},
        {"nearest_sums", run_csr_nearest_sums<T, Index>},
        {"new_seed", run_csr_new_seed<T, Index>},
        {"potential", run_csr_potential<T, Index>},
        {"soft_sums", run_csr_soft_sums<T, Index>},
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
std::unique_ptr<Session> dense(const Points& points, int n_threads, int64_t bounds_bytes,
                               int64_t int8_bytes) {
    return std::make_unique<SessionOf<Workspace<T>>>(n_threads, rows_of<T>(points), bounds_bytes,
                                                     int8_bytes);
}

template <class T>
std::unique_ptr<Session> sparse(const CsrPoints& points, int n_threads) {
    if (points.wide)
        return std::make_unique<SessionOf<CsrWorkspace<T, int64_t>>>(n_threads, points);
    return std::make_unique<SessionOf<CsrWorkspace<T, int32_t>>>(n_threads, points);
}

std::unique_ptr<Session> session(const Points& points, int n_threads, int64_t bounds_bytes,
                                 int64_t int8_bytes) {
    return (points.single ? dense<float> : dense<double>)(points, n_threads, bounds_bytes,
                                                          int8_bytes);
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

void fill(bool single, const void* points, int64_t n, int d, void* filled, uint8_t* observed,
          double* means, int64_t* counts, int64_t* missing) {
    if (single)
        return fill_missing(static_cast<const float*>(points), n, d, static_cast<float*>(filled),
                            observed, means, counts, missing);
    fill_missing(static_cast<const double*>(points), n, d, static_cast<double*>(filled), observed,
                 means, counts, missing);
}

}  // namespace

extern const Kernels kernels{session, csr_session, solve, bytes_of_bounds, ends, fill};

}  // namespace lloydformer::ISA
