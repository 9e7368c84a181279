// New centers from sums that all blocks have added up, and the stop rule.

// What iterations change; record: (RECORDS, 2), the objective before each one, and the shift.
struct Moving {
    double* centers;
    Real* seen;
    double* record;
    int* status;         // what goes on, and the number of iterations
    const int* certain;  // null, or a number: 0 if thresholds are not found, and sums are not final
    double tolerance;
    double faint;  // a cluster with less mass is empty
    int k, d;
};

// numbers: the objective, changed labels, then of each center its sums and its mass. One block. If
// the sums are not certain (PAUSED), or a cluster is empty, nothing changes but the status.
extern "C" __global__ void move_centers(Moving m, const double* numbers) {
    __shared__ double scratch[32];
    if (*(volatile int*)m.status != GOING) return;
    const double* sums = numbers + 2;
    const int d = m.d;
    if (m.certain && !*m.certain) {
        if (threadIdx.x == 0) m.status[0] = PAUSED;
        return;
    }
    int lost = 0;
    for (int j = threadIdx.x; j < m.k; j += blockDim.x) lost |= !(sums[j * (d + 1) + d] >= m.faint);
    if (__syncthreads_or(lost)) {
        if (threadIdx.x == 0) m.status[0] = EMPTY;
        return;
    }
    double shift = 0;
    for (int i = threadIdx.x; i < m.k * d; i += blockDim.x) {
        const double* own = sums + i / d * (d + 1);
        const double now = own[i % d] / own[d], old = m.centers[i];
        shift += (now - old) * (now - old);
        m.centers[i] = now;
        m.seen[i] = (Real)now;
    }
    shift = block_sum(shift, scratch);
    if (threadIdx.x != 0) return;
    double* row = m.record + 2 * (m.status[1] % RECORDS);
    row[0] = numbers[0];
    row[1] = shift;
    m.status[1]++;
    if (shift <= m.tolerance) m.status[0] = SETTLED;
}
