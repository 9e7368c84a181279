// Squared distances to the own centers, and the sum of w d^2. `partial`: a number for each block.
// `distances` may be null. With `landed`, only if the last labels are there.
#ifndef ROW
#define ROW 64
#endif
#ifndef LANES
#define LANES 8  // threads that share a row
#endif
extern "C" __global__ __launch_bounds__(256) void measure(Points p, Work w, Real* distances,
                                                          double* partial, int landed) {
    if (landed && w.status[2] == NOT_LANDED) return;
    __shared__ double scratch[32];
    const int lane = threadIdx.x % LANES, each = 256 / LANES, together = 32 / LANES;
    double total = 0;
    for (i64 i = (i64)blockIdx.x * each + threadIdx.x / LANES; i / together * together < p.n;
         i += (i64)gridDim.x * each) {
        const i64 row = min(i, (i64)p.n - 1);
        Row<ROW, LANES> x;
        x.read(p, row, lane);
        const double away =
            x.template distance<double>(w.seen + (size_t)w.assigned[row] * p.d, p.d, lane);
        if (lane == 0 && i < p.n) {
            if (distances) distances[row] = (Real)away;
            total += weight(p, row) * away;
        }
    }
    total = block_sum(total, scratch);
    if (threadIdx.x == 0) partial[blockIdx.x] = total;
    if (!last_block(w.ticket)) return;
    total = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) total += __ldcg(partial + i);
    total = block_sum(total, scratch);
    if (threadIdx.x == 0) *w.total = total;
}
