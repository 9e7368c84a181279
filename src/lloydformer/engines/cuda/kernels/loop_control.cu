// The start of Lloyd's iterations, their end, and clusters that have lost all of their points.
// `sums` and `masses` are those of the labels in `assigned` before and after, unless `begin` is to
// forget them.

// Starts iterations, or one assignment, from centers (k, d). With `forget_sums` sums begin at 0:
// for kernels that add up all points in every iteration.
extern "C" __global__ void begin(Points p, LloydState state, const double* centers, double limit,
                                 int forget_sums) {
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (i64 i = thread; i < (i64)state.k * p.d; i += threads) {
        state.centers[i] = centers[i];
        state.rounded[i] = (Real)centers[i];
        if (forget_sums) state.sums[i] = 0;
    }
    for (i64 j = thread; forget_sums && j < state.k; j += threads) state.masses[j] = 0;
    if (thread == 0) {
        *state.changed = 0;
        *(double*)state.tolerance = limit;
        state.status[0] = RUNNING, state.status[1] = 0, state.status[2] = NOT_FINAL;
    }
}

// If iterations have ended, by the stop rule or because this is the `last` one: the centers become
// those that a user gets, rounded in the units of the data, and the next kernels label the points
// for them. Otherwise the next kernels do nothing until the host resumes.
extern "C" __global__ void begin_final(Points p, LloydState state, int last) {
    const int status = *(volatile int*)state.status;
    const bool is_final = status == SETTLED || (status == RUNNING && last);
    const i64 size = (i64)state.k * p.d, threads = gridDim.x * blockDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; is_final && i < size; i += threads) {
        const double origin = (double)p.origin[i % p.d];
        const double given = (double)(Real)(state.centers[i] + origin) - origin;
        state.centers[i] = given;
        state.rounded[i] = (Real)given;
    }
    if (!is_last_block(state.ticket) || threadIdx.x != 0) return;
    state.status[2] = is_final ? status : NOT_FINAL;
    state.status[0] = is_final ? RUNNING : status == RUNNING ? PAUSED : status;
}

// A point, and how far it is from its own center; the lower row of equally far ones, so that the
// order of threads does not matter. Row -1 is the largest as an unsigned number.
struct Far {
    double away;
    int row;

    __device__ void keep_farther(double other, int at) {
        if (other > away || (other == away && (u32)at < (u32)row)) away = other, row = at;
    }
};

// The farthest point with weight that has not been taken yet, the first of equals: its row goes to
// *taken, -1 if all points are centers. `partial`: (blocks,); `distances` forgets the point.
extern "C" __global__ __launch_bounds__(256) void take_farthest(Points p, LloydState state,
                                                                Real* distances, Far* partial,
                                                                int* taken) {
    __shared__ Far found[8];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    auto block_farthest = [&](Far best) {
        for (int o = 16; o; o >>= 1)
            best.keep_farther(__shfl_xor_sync(~0u, best.away, o),
                              __shfl_xor_sync(~0u, best.row, o));
        if (lane == 0) found[warp] = best;
        __syncthreads();
        for (int i = 0; i < 8; i++) best.keep_farther(found[i].away, found[i].row);
        __syncthreads();
        return best;
    };
    Far best = {0, -1};
    for (i64 row = (i64)blockIdx.x * 256 + threadIdx.x; row < p.n; row += (i64)gridDim.x * 256)
        if (weight(p, row) > 0) best.keep_farther((double)distances[row], (int)row);
    best = block_farthest(best);
    if (threadIdx.x == 0) partial[blockIdx.x] = best;
    if (!is_last_block(state.ticket)) return;
    best = {0, -1};
    for (int i = threadIdx.x; i < gridDim.x; i += 256)
        best.keep_farther(__ldcg(&partial[i].away), __ldcg(&partial[i].row));
    best = block_farthest(best);
    if (best.away <= 0) best.row = -1;
    if (threadIdx.x == 0) {
        *taken = best.row;
        if (best.row >= 0) distances[best.row] = -1;
    }
}

// Ends an iteration that stopped because clusters are empty: cluster empty.clusters[i] gets point
// taken[i] from its own cluster, the centers move, and then the points go back, so that sums are
// those of the labels again. Exact both ways, because sums are integers. A cluster that is left
// without points keeps its center. One block; at most 16 clusters, which travel as an argument.
struct EmptyClusters {
    int clusters[16];
    int count;
};

extern "C" __global__ __launch_bounds__(1024) void fill_empty(Points p, LloydState state,
                                                              const int* taken,
                                                              EmptyClusters empty) {
    __shared__ double scratch[32];
    const int size = state.k * p.d;
    double change = 0, shift = 0;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        const double sum = (double)state.sums[i] / p.sum_unit, rounded = (double)state.rounded[i];
        change +=
            (double)state.masses[i / p.d] / p.mass_unit * rounded * rounded - 2 * sum * rounded;
    }
    auto exchange_points = [&](int sign) {
        __syncthreads();
        for (int i = 0; i < empty.count; i++) {
            const int row = taken[i], to = empty.clusters[i];
            if (row < 0) continue;
            const int from = state.assigned[row];
            for (int f = threadIdx.x; f < p.d; f += blockDim.x) {
                const double x = (double)coordinate(p, row, f) * weight(p, row);
                const i64 value = sign * to_fixed(x, p.sum_unit);
                state.sums[(size_t)to * p.d + f] += value;
                state.sums[(size_t)from * p.d + f] -= value;
            }
            if (threadIdx.x == 0) {
                const i64 mass = sign * to_fixed(weight(p, row), p.mass_unit);
                state.masses[to] += mass, state.masses[from] -= mass;
            }
        }
        __syncthreads();
    };
    exchange_points(1);
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        const double old = state.centers[i];
        const double mass = (double)state.masses[i / p.d] / p.mass_unit;
        const double now = move_coordinate(state, (double)state.sums[i] / p.sum_unit, mass, 0, old);
        shift += (now - old) * (now - old);
        state.centers[i] = now;
        state.rounded[i] = (Real)now;
    }
    exchange_points(-1);
    change = block_sum(change, scratch), shift = block_sum(shift, scratch);
    if (threadIdx.x == 0) end_iteration(state, change, shift);
}
