// Greedy k-means++ without waiting for the host: three launches a seed.
// rows: the seeds; rows[0] is given. count: how many of them are found.
#ifndef D
#define D 32
#endif
#ifndef LANES
#define LANES 8  // threads that share a row
#endif
#define THREADS 256
#define CHUNK 1024  // rows whose mass is summed by one block
#define MOST 16     // candidates of one draw

__device__ void read_centers(const Points& p, Real* centers, const i64* rows, int count) {
    for (int i = threadIdx.x; i < count * D; i += blockDim.x)
        centers[i] = i % D < p.d ? coordinate(p, rows[i / D], i % D) : (Real)0;
    __syncthreads();
}

// The distance of each point to the nearest seed, now that the last one is there too; the sum of
// w d^2 of each chunk of rows.
extern "C" __global__ __launch_bounds__(THREADS) void approach(Points p, Real* distances,
                                                               const i64* rows, const int* count,
                                                               double* masses) {
    const int number = *count;
    __shared__ __align__(16) Real center[D];
    __shared__ double scratch[32];
    read_centers(p, center, rows + number - 1, 1);
    const int l = threadIdx.x % LANES, group = threadIdx.x / LANES;
    for (int chunk = blockIdx.x; (i64)chunk * CHUNK < p.n; chunk += gridDim.x) {
        double mass = 0;
        for (int i = group; i < CHUNK; i += THREADS / LANES) {
            const i64 at = (i64)chunk * CHUNK + i;
            const int row = (int)min(at, (i64)p.n - 1);
            Row<D, LANES> x;
            x.read(p, row, l);
            Real away = x.template distance<Real>(center, D, l);
            if (l == 0 && at < p.n) {
                if (number > 1) away = min(away, distances[row]);
                distances[row] = away;
                mass += weight(p, row) * (double)away;
            }
        }
        mass = block_sum(mass, scratch);
        if (threadIdx.x == 0) masses[chunk] = mass;
    }
}

// The place of the first of `size` masses whose running sum exceeds `rest`, which is lowered by
// those before it; the last one with a mass if rounding leaves none. One block.
template <class Mass>
__device__ int find(Mass mass, int size, double& rest, double* sums, int* found) {
    const int each = (size + THREADS - 1) / THREADS, first = threadIdx.x * each;
    const int stop = min(first + each, size);
    double own = 0;
    int last = -1;
    for (int i = first; i < stop; i++) {
        const double m = mass(i);
        own += m;
        if (m > 0) last = i;
    }
    sums[threadIdx.x] = own;
    if (threadIdx.x == 0) found[0] = size, found[1] = -1;
    __syncthreads();
    double before = 0;
    for (int i = 0; i < threadIdx.x; i++) before += sums[i];
    atomicMax(found + 1, last);
    double running = before;
    for (int i = first; i < stop; i++) {
        const double m = mass(i);
        if (m > 0 && running + m > rest) {
            atomicMin(found, i);
            break;
        }
        running += m;
    }
    __syncthreads();
    const int place = found[0] < size ? found[0] : found[1];
    __syncthreads();
    if (place >= first && place < stop) {
        double sum = before;
        for (int i = first; i < place; i++) sum += mass(i);
        sums[0] = sum;
    }
    __syncthreads();
    rest -= sums[0];
    __syncthreads();
    return place;
}

// Rows drawn in proportion to w d^2, one block each, at these positions of the running sum.
extern "C" __global__ __launch_bounds__(THREADS) void draw(Points p, const Real* distances,
                                                           const double* masses, int chunks,
                                                           const double* fractions,
                                                           const int* count, i64* candidates) {
    fractions += (size_t)(*count - 1) * gridDim.x;
    __shared__ double sums[THREADS];
    __shared__ int found[2];
    __shared__ double scratch[32];
    double total = 0;
    for (int i = threadIdx.x; i < chunks; i += THREADS) total += masses[i];
    total = block_sum(total, scratch);
    double rest = fractions[blockIdx.x] * total;
    const int chunk = find([&](int i) { return masses[i]; }, chunks, rest, sums, found);
    if (chunk < 0) {  // every point with weight is a seed
        if (threadIdx.x == 0) candidates[blockIdx.x] = -1;
        return;
    }
    const i64 start = (i64)chunk * CHUNK;
    const int size = (int)min((i64)CHUNK, p.n - start);
    const int row = find([&](int i) { return weight(p, start + i) * (double)distances[start + i]; },
                         size, rest, sums, found);
    if (threadIdx.x == 0) candidates[blockIdx.x] = start + row;
}

// What each candidate would leave of the sum of w d^2; the last block takes the best of them.
extern "C" __global__ __launch_bounds__(THREADS) void choose(Points p, const Real* distances,
                                                             const i64* candidates, int trials,
                                                             i64* rows, int* count, double* partial,
                                                             int* ticket) {
    if (candidates[0] < 0) return;
    const int number = *count;
    extern __shared__ __align__(16) unsigned char raw[];
    Real* centers = (Real*)raw;
    __shared__ double scratch[32];
    read_centers(p, centers, candidates, trials);
    const int l = threadIdx.x % LANES;
    const i64 stride = (i64)gridDim.x * (THREADS / LANES);
    double sums[MOST];
#pragma unroll
    for (int t = 0; t < MOST; t++) sums[t] = 0;
    const i64 own = (i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    const i64 together = 32 / LANES;  // rows of a warp
    for (i64 i = own; i / together * together < p.n; i += stride) {
        const int row = (int)min(i, (i64)p.n - 1);
        Row<D, LANES> x;
        x.read(p, row, l);
        const Real now = distances[row];
        const double mass = i < p.n ? weight(p, row) : 0;
#pragma unroll
        for (int t = 0; t < MOST; t++)
            if (t < trials)
                sums[t] +=
                    mass * (double)min(now, x.template distance<Real>(centers + t * D, D, l));
    }
#pragma unroll
    for (int t = 0; t < MOST; t++) {
        if (t >= trials) continue;
        const double sum = block_sum(l == 0 ? sums[t] : 0, scratch);
        if (threadIdx.x == 0) partial[(size_t)blockIdx.x * MOST + t] = sum;
    }
    if (!last_block(ticket)) return;
    double least = 1e308;
    int best = 0;
    for (int t = 0; t < trials; t++) {
        double sum = 0;
        for (int i = threadIdx.x; i < gridDim.x; i += THREADS)
            sum += __ldcg(partial + (size_t)i * MOST + t);
        sum = block_sum(sum, scratch);
        if (sum < least) least = sum, best = t;
    }
    if (threadIdx.x == 0) {
        rows[number] = candidates[best];
        *count = number + 1;
    }
}
