// New centers of soft and robust k-means from sums that have been added up, and the stop rule.

// What iterations change; record: (RECORD_LENGTH, 2), objective before each one, and its shift.
struct Move {
    double* centers;
    Real* rounded;
    double* record;
    int* status;         // RUNNING or why not, and the number of iterations
    const int* certain;  // null, or a number: 0 if thresholds are not found, and sums are not final
    double tolerance;
    double faint;  // a cluster with less mass is empty
    int k, d;
};

// numbers: the objective, changed labels, then of each center its sums and its mass. One block. If
// the sums are not certain (PAUSED), or a cluster is empty, nothing changes but the status: then
// the host repeats the iteration from the same centers. The comparison with `faint` also finds NaN.
extern "C" __global__ void move_centers(Move m, const double* numbers) {
    __shared__ double scratch[32];
    if (*(volatile int*)m.status != RUNNING) return;
    const double* sums = numbers + 2;
    const int d = m.d;
    if (m.certain && !*m.certain) {
        if (threadIdx.x == 0) m.status[0] = PAUSED;
        return;
    }
    int empty = 0;
    for (int j = threadIdx.x; j < m.k; j += blockDim.x)
        empty |= !(sums[j * (d + 1) + d] >= m.faint);
    if (__syncthreads_or(empty)) {
        if (threadIdx.x == 0) m.status[0] = EMPTY;
        return;
    }
    double shift = 0;
    for (int i = threadIdx.x; i < m.k * d; i += blockDim.x) {
        const double* own = sums + i / d * (d + 1);
        const double now = own[i % d] / own[d], old = m.centers[i];
        shift += (now - old) * (now - old);
        m.centers[i] = now;
        m.rounded[i] = (Real)now;
    }
    shift = block_sum(shift, scratch);
    if (threadIdx.x != 0) return;
    double* row = m.record + 2 * (m.status[1] % RECORD_LENGTH);
    row[0] = numbers[0];
    row[1] = shift;
    m.status[1]++;
    if (shift <= m.tolerance) m.status[0] = SETTLED;
}
