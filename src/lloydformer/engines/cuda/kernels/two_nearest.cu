// The folds TwoNearest and NearestCosts: the two nearest centers of each point, by differences.
#ifndef ROW
#define ROW 32  // columns of a row that LANES threads share
#endif
#ifndef LANES
#define LANES 8
#endif

// Squared distances are computed in the precision of the rows. Of equal ones the lower center is
// nearer. With one center the second is the first.
extern "C" __global__ __launch_bounds__(256) void two_nearest(Points p, const Real* centers, int k,
                                                              int* labels, int* seconds, Real* near,
                                                              Real* far) {
    const int lane = threadIdx.x % LANES, each = 256 / LANES, together = 32 / LANES;
    for (i64 i = (i64)blockIdx.x * each + threadIdx.x / LANES; i / together * together < p.n;
         i += (i64)gridDim.x * each) {
        const i64 row = min(i, (i64)p.n - 1);
        Row<ROW, LANES> x;
        x.read(p, row, lane);
        Real first = x.template distance<Real>(centers, p.d, lane), second = first;
        int label = 0, other = 0;
        for (int j = 1; j < k; j++) {
            const Real away = x.template distance<Real>(centers + (size_t)j * p.d, p.d, lane);
            if (away < first) {
                second = first, other = label;
                first = away, label = j;
            } else if (j == 1 || away < second) {
                second = away, other = j;
            }
        }
        if (lane != 0 || i >= p.n) continue;
        labels[row] = label;
        if (seconds) seconds[row] = other;
        near[row] = first;
        far[row] = second;
    }
}
