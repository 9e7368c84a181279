// Many iterations of Lloyd's algorithm over sparse rows in one call: the loop and the rules of
// iterate.hpp.
#pragma once

#include "csr_measure.hpp"
#include "iterate.hpp"

namespace lloydformer::ISA {

/// Sparse rows for `LloydLoop`: one iteration, the distance of a row, and a row in sums.
template <class T, class Index>
class CsrSteps {
  public:
    typedef T Number;

    CsrSteps(CsrWorkspace<T, Index>& work, CsrLloyd<T, Index>& lloyd)
        : rows(work.rows), k(lloyd.k()), packed_(work.centers), lloyd_(lloyd), reader_(rows) {}

    const CsrRows<T, Index>& rows;
    const int k;

    const Totals& step(ThreadPool& pool, const T* centers, int32_t* labels, int32_t* previous,
                       bool fresh, bool) {
        packed_.pack(pool, centers, k, rows.d);
        return lloyd_.step(pool, packed_, labels, previous, fresh);
    }

    /// Precondition: the last step began with these centers.
    T away(int64_t i, const T* centers, int j) {
        return squared_distance(reader_.row(i), centers + int64_t(j) * rows.d, packed_.exact[j],
                                rows.d);
    }

    void add(Totals& sums, int64_t i, int label, double weight) {
        sums.add(reader_.row(i), label, weight);
    }

  private:
    CsrCenters<T>& packed_;
    CsrLloyd<T, Index>& lloyd_;
    CsrReader<T, Index> reader_;
};

/// As `run_lloyd_iterations`.
template <class T, class Index>
void run_csr_lloyd_iterations(CsrWorkspace<T, Index>& work, Call& call) {
    IterateArguments given(call, work.rows.d);
    int32_t *labels = work.labels(call), *previous = work.previous(call);
    CsrLloyd<T, Index>& lloyd = csr_lloyd_for(work, int(given.centers.shape[0]), given.fresh);
    LloydLoop<CsrSteps<T, Index>> loop({work, lloyd}, given.centers, labels, previous);
    const Iterated found = loop.run(work.pool, given.rule, given.history, given.fresh);
    call.results = {found.count, found.settled};
}

}  // namespace lloydformer::ISA
