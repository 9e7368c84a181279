// Squared distances of points to the centers of their labels, by differences in float64, and the
// sum of w d^2. It reads `assigned` and `rounded`, and writes `distances` (n,), if not null, and
// `total`. Each block adds its rows in a fixed order and writes one number of `partial`; the last
// block adds these likewise, so the bits are the same every time. With `only_final` nothing is
// done unless the labels are the final ones.
#ifndef ROW
#define ROW 64  // columns of a row, padded: choose_row_tile of launch.py
#endif
#ifndef LANES
#define LANES 8  // threads that share a row
#endif
extern "C" __global__ __launch_bounds__(256) void measure(Points p, LloydState state,
                                                          Real* distances, double* partial,
                                                          int only_final) {
    if (only_final && state.status[2] == NOT_FINAL) return;
    __shared__ double scratch[32];
    const int lane = threadIdx.x % LANES, each = 256 / LANES, together = 32 / LANES;
    double total = 0;
    for (i64 i = (i64)blockIdx.x * each + threadIdx.x / LANES; i / together * together < p.n;
         i += (i64)gridDim.x * each) {
        const i64 row = min(i, (i64)p.n - 1);
        Row<ROW, LANES> x;
        x.read(p, row, lane);
        const double away = x.template distance<double>(
            state.rounded + (size_t)state.assigned[row] * p.d, p.d, lane);
        if (lane == 0 && i < p.n) {
            if (distances) distances[row] = (Real)away;
            total += weight(p, row) * away;
        }
    }
    total = block_sum(total, scratch);
    if (threadIdx.x == 0) partial[blockIdx.x] = total;
    if (!is_last_block(state.ticket)) return;
    total = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) total += __ldcg(partial + i);
    total = block_sum(total, scratch);
    if (threadIdx.x == 0) *state.total = total;
}
