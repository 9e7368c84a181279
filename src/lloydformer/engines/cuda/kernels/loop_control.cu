// What happens between iterations: their start, their end, and clusters that have lost all points.

// The start of iterations, or of one assignment: centers (k, d), and nothing has changed yet.
extern "C" __global__ void begin(Points p, Work w, const double* centers, double limit,
                                 int forget_sums) {
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (i64 i = thread; i < (i64)w.k * p.d; i += threads) {
        w.centers[i] = centers[i];
        w.seen[i] = (Real)centers[i];
        if (forget_sums) w.sums[i] = 0;
    }
    for (i64 j = thread; forget_sums && j < w.k; j += threads) w.masses[j] = 0;
    if (thread == 0) {
        *w.changed = 0;
        *(double*)w.tolerance = limit;
        w.status[0] = GOING, w.status[1] = 0, w.status[2] = NOT_LANDED;
    }
}

// If iterations have ended, by the stop rule or because this is the `last` one: the centers become
// those that a user gets, rounded in the units of the data, and the next kernels label the points
// for them. Otherwise the next kernels do nothing until the host resumes.
extern "C" __global__ void begin_final(Points p, Work w, int last) {
    const int state = *(volatile int*)w.status;
    const bool lands = state == SETTLED || (state == GOING && last);
    const i64 size = (i64)w.k * p.d, threads = gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; lands && i < size; i += threads) {
        const double origin = (double)p.origin[i % p.d];
        const double shown = (double)(Real)(w.centers[i] + origin) - origin;
        w.centers[i] = shown;
        w.seen[i] = (Real)shown;
    }
    if (!last_block(w.ticket) || threadIdx.x != 0) return;
    w.status[2] = lands ? state : NOT_LANDED;
    w.status[0] = lands ? GOING : state == GOING ? PAUSED : state;
}

// A point, and how far it is from its own center.
struct Far {
    double away;
    int row;

    __device__ void see(double other, int at) {
        if (other > away || (other == away && (u32)at < (u32)row)) away = other, row = at;
    }
};

// The farthest point with weight that has not been taken yet, the first of equals: its row goes to
// *taken, -1 if all points are centers. `partial`: (blocks,); `distances` forgets the point.
extern "C" __global__ __launch_bounds__(256) void take_farthest(Points p, Work w, Real* distances,
                                                                Far* partial, int* taken) {
    __shared__ Far found[8];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    auto block_farthest = [&](Far best) {
        for (int o = 16; o; o >>= 1)
            best.see(__shfl_xor_sync(~0u, best.away, o), __shfl_xor_sync(~0u, best.row, o));
        if (lane == 0) found[warp] = best;
        __syncthreads();
        for (int i = 0; i < 8; i++) best.see(found[i].away, found[i].row);
        __syncthreads();
        return best;
    };
    Far best = {0, -1};
    for (i64 row = (i64)blockIdx.x * 256 + threadIdx.x; row < p.n; row += (i64)gridDim.x * 256)
        if (weight(p, row) > 0) best.see((double)distances[row], (int)row);
    best = block_farthest(best);
    if (threadIdx.x == 0) partial[blockIdx.x] = best;
    if (!last_block(w.ticket)) return;
    best = {0, -1};
    for (int i = threadIdx.x; i < gridDim.x; i += 256)
        best.see(__ldcg(&partial[i].away), __ldcg(&partial[i].row));
    best = block_farthest(best);
    if (best.away <= 0) best.row = -1;
    if (threadIdx.x == 0) {
        *taken = best.row;
        if (best.row >= 0) distances[best.row] = -1;
    }
}

// Ends an iteration that was broken off because clusters are empty: cluster lost[i] gets the point
// taken[i] from its own cluster, the centers move, and the sums become those of the labels again.
// A cluster that is empty now keeps its center. One block; clusters are few, see Lost.
struct Lost {
    int clusters[16];
    int count;
};

extern "C" __global__ __launch_bounds__(1024) void fill_empty(Points p, Work w, const int* taken,
                                                              Lost lost) {
    __shared__ double scratch[32];
    const int size = w.k * p.d;
    double change = 0, shift = 0;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        const double sum = (double)w.sums[i] / p.sum_unit, seen = (double)w.seen[i];
        change += (double)w.masses[i / p.d] / p.mass_unit * seen * seen - 2 * sum * seen;
    }
    auto give = [&](int sign) {
        __syncthreads();
        for (int i = 0; i < lost.count; i++) {
            const int row = taken[i], to = lost.clusters[i];
            if (row < 0) continue;
            const int from = w.assigned[row];
            for (int f = threadIdx.x; f < p.d; f += blockDim.x) {
                const double x = (double)coordinate(p, row, f) * weight(p, row);
                const i64 value = sign * fixed(x, p.sum_unit);
                w.sums[(size_t)to * p.d + f] += value;
                w.sums[(size_t)from * p.d + f] -= value;
            }
            if (threadIdx.x == 0) {
                const i64 mass = sign * fixed(weight(p, row), p.mass_unit);
                w.masses[to] += mass, w.masses[from] -= mass;
            }
        }
        __syncthreads();
    };
    give(1);
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        const double old = w.centers[i];
        const double mass = (double)w.masses[i / p.d] / p.mass_unit;
        const double now = moved(w, (double)w.sums[i] / p.sum_unit, mass, 0, old);
        shift += (now - old) * (now - old);
        w.centers[i] = now;
        w.seen[i] = (Real)now;
    }
    give(-1);
    change = block_sum(change, scratch), shift = block_sum(shift, scratch);
    if (threadIdx.x == 0) end_iteration(w, change, shift);
}
