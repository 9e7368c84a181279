// What the kernels of a session over sparse rows share: threads, rows, packed centers, running
// sums.
#pragma once

#include <atomic>
#include <memory>

#include "csr_centers.hpp"
#include "fold.hpp"

namespace lloydformer::ISA {

template <class T, class Index>
class CsrLloyd;

/// The rows, the threads, and what kernels keep from one call to the next.
template <class T, class Index>
struct CsrWorkspace {
    ThreadPool pool;
    CsrRows<T, Index> rows;
    CsrCenters<T> centers;                      // of the last call
    std::unique_ptr<CsrLloyd<T, Index>> lloyd;  // null: `previous` was written by another kernel

    CsrWorkspace(int n_threads, const CsrPoints& points) : pool(n_threads), rows(points) {}

    /// Forgets what an interrupted kernel may have left half done.
    void reset() { lloyd.reset(); }

    const CsrCenters<T>& packed(Call& call, const char* name = "centers") {
        const auto given = call.in<T>(name, "(k, d)", {ANY, rows.d});
        Call::require(given.shape[0] > 0, name, "pass at least one");
        centers.pack(pool, given, int(given.shape[0]), rows.d);
        return centers;
    }

    int32_t* labels(Call& call) const { return call.out<int32_t>("labels", "(n)", {rows.n}); }
    int32_t* previous(Call& call) const { return call.out<int32_t>("previous", "(n)", {rows.n}); }
    T* distances(Call& call) const { return call.out<T>("distances", "(n)", {rows.n}); }
};

}  // namespace lloydformer::ISA
