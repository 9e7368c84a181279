// The task PlusPlusSeeds: greedy k-means++ for several starts, which share every read of the
// points. Three launches per seed, which never wait for the host: update_distances, draw,
// choose_candidates.
//
// Before each seed, `distances` are those to the seeds found so far but the last one. Random
// numbers come from the host. Masses are added in float64 in a fixed order (rows of a thread,
// threads of a warp, warps, chunks), so that a start draws the same rows every time. All squared
// distances are in the precision of the rows; on ties the first candidate wins.
#ifndef D
#define D 32
#endif
#ifndef LANES
#define LANES 8  // threads that share a row
#endif
#ifndef STARTS
#define STARTS 1
#endif
#ifndef TRIALS
#define TRIALS 4  // candidates for each seed
#endif
#define THREADS 256
#define CHUNK 1024                                 // rows whose mass is summed by one block
#define COUNT (STARTS * TRIALS)                    // candidates of all starts
#define MINE ((STARTS + LANES - 1) / LANES)        // starts that one thread adds up
#define OWN ((COUNT + LANES - 1) / LANES)          // candidates that one thread adds up
#define EACH (D / LANES)                           // numbers of a row that one thread holds
#define ROWS (EACH <= 8 ? 4 : EACH <= 16 ? 2 : 1)  // rows that a thread reads at once

// Seeds of all starts; rows[.][0] is given, and `found` is how many there are.
struct Seeds {
    Real* distances;    // (n, starts), to the nearest seed
    i64* rows;          // (starts, k)
    int* found;         // (starts, 2); the second number is not used
    double* masses;     // (starts, chunks)
    double* fractions;  // (starts, k - 1, trials)
    i64* candidates;    // (starts, trials); -1 if every point with weight is a seed
    double* partial;    // (blocks, starts, trials)
    int* ticket;
    int k, chunks;
};

// Some rows of the points into shared memory; row(i) is the number of the i-th.
template <class Number>
__device__ void read_centers(const Points& p, Real* centers, int count, Number row) {
    for (int i = threadIdx.x; i < count * D; i += blockDim.x)
        centers[i] = i % D < p.d ? coordinate(p, row(i / D), i % D) : (Real)0;
    __syncthreads();
}

// Updates the distance of each point to the nearest seed with the last seed, and writes the sum of
// w d^2 of each chunk of rows.
extern "C" __global__ __launch_bounds__(THREADS) void update_distances(Points p, Seeds s) {
    __shared__ __align__(16) Real centers[STARTS * D];
    __shared__ double parts[THREADS / 32][STARTS];
    read_centers(p, centers, STARTS,
                 [&](int i) { return s.rows[(size_t)i * s.k + s.found[2 * i] - 1]; });
    const int l = threadIdx.x % LANES, group = threadIdx.x / LANES;
    constexpr int STEP = THREADS / LANES;
    bool later[STARTS];  // are there distances to earlier seeds?
#pragma unroll
    for (int start = 0; start < STARTS; start++) later[start] = s.found[2 * start] > 1;
    for (int chunk = blockIdx.x; chunk < s.chunks; chunk += gridDim.x) {
        double mass[MINE];
#pragma unroll
        for (int o = 0; o < MINE; o++) mass[o] = 0;
        for (int i = group; i < CHUNK; i += ROWS * STEP) {
            Row<D, LANES> x[ROWS];
            Real known[ROWS][MINE];  // of starts l, l + LANES and so on
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const i64 row = min((i64)chunk * CHUNK + i + r * STEP, (i64)p.n - 1);
                x[r].read(p, row, l);
#pragma unroll
                for (int o = 0; o < MINE; o++)
                    known[r][o] = s.distances[row * STARTS + min(o * LANES + l, STARTS - 1)];
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const i64 row = (i64)chunk * CHUNK + i + r * STEP;
                const bool in = row < p.n;
                const double heavy = in ? weight(p, row) : 0;
#pragma unroll
                for (int start = 0; start < STARTS; start++) {
                    Real away = x[r].template distance<Real>(centers + start * D, D, l);
                    if (start % LANES != l || !in) continue;
                    if (later[start]) away = min(away, known[r][start / LANES]);
                    s.distances[row * STARTS + start] = away;
                    mass[start / LANES] += heavy * (double)away;
                }
            }
        }
#pragma unroll
        for (int o = 0; o < MINE; o++) {
#pragma unroll
            for (int step = 16; step >= LANES; step >>= 1)
                mass[o] += __shfl_xor_sync(~0u, mass[o], step);
            if ((threadIdx.x & 31) < LANES && o * LANES + l < STARTS)
                parts[threadIdx.x >> 5][o * LANES + l] = mass[o];
        }
        __syncthreads();
        for (int start = threadIdx.x; start < STARTS; start += THREADS) {
            double sum = 0;
            for (int v = 0; v < THREADS / 32; v++) sum += parts[v][start];
            s.masses[(size_t)start * s.chunks + chunk] = sum;
        }
        __syncthreads();
    }
}

// Returns the index of the first of `size` masses whose running sum exceeds `rest`, which is
// lowered by those before it; the last one with a mass if rounding leaves none. One block.
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
extern "C" __global__ __launch_bounds__(THREADS) void draw(Points p, Seeds s) {
    const int start = blockIdx.x / TRIALS, trial = blockIdx.x % TRIALS, number = s.found[2 * start];
    if (number == s.k) return;
    const double* masses = s.masses + (size_t)start * s.chunks;
    __shared__ double sums[THREADS];
    __shared__ int found[2];
    __shared__ double scratch[32];
    double total = 0;
    for (int i = threadIdx.x; i < s.chunks; i += THREADS) total += masses[i];
    total = block_sum(total, scratch);
    double rest = s.fractions[((size_t)start * (s.k - 1) + number - 1) * TRIALS + trial] * total;
    const int chunk = find([&](int i) { return masses[i]; }, s.chunks, rest, sums, found);
    if (chunk < 0) {  // every point with weight is a seed
        if (threadIdx.x == 0) s.candidates[blockIdx.x] = -1;
        return;
    }
    const i64 first = (i64)chunk * CHUNK;
    const int size = (int)min((i64)CHUNK, p.n - first);
    const int row = find(
        [&](int i) {
            return weight(p, first + i) * (double)s.distances[(first + i) * STARTS + start];
        },
        size, rest, sums, found);
    if (threadIdx.x == 0) s.candidates[blockIdx.x] = first + row;
}

// Computes the sum of w d^2 that each candidate would leave; the last block takes the best
// candidate of each start as its next seed.
extern "C" __global__ __launch_bounds__(THREADS) void choose_candidates(Points p, Seeds s) {
    extern __shared__ __align__(16) unsigned char raw[];
    Real* centers = (Real*)raw;  // (COUNT, D)
    __shared__ double parts[THREADS / 32][COUNT];
    read_centers(p, centers, COUNT, [&](int i) { return max(s.candidates[i], 0ll); });
    const int l = threadIdx.x % LANES, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    constexpr int STEP = THREADS / LANES;
    double sums[OWN];  // of candidates l, l + LANES and so on
#pragma unroll
    for (int i = 0; i < OWN; i++) sums[i] = 0;
    for (i64 first = (i64)blockIdx.x * STEP * ROWS; first < p.n;
         first += (i64)gridDim.x * STEP * ROWS) {
        Row<D, LANES> x[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            x[r].read(p, min(first + r * STEP + threadIdx.x / LANES, (i64)p.n - 1), l);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const i64 at = first + r * STEP + threadIdx.x / LANES, row = min(at, (i64)p.n - 1);
            const double mass = at < p.n ? weight(p, row) : 0;
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                const int own = min(i * LANES + l, COUNT - 1);
                const Real now = s.distances[row * STARTS + own / TRIALS];
                Real mine = now;
#pragma unroll
                for (int j = 0; j < LANES; j++) {
                    const int t = i * LANES + j;
                    if (t >= COUNT) continue;
                    const Real away = x[r].template distance<Real>(centers + t * D, D, l);
                    if (j == l) mine = min(now, away);
                }
                sums[i] += mass * (double)mine;
            }
        }
    }
#pragma unroll
    for (int i = 0; i < OWN; i++) {
#pragma unroll
        for (int o = 16; o >= LANES; o >>= 1) sums[i] += __shfl_xor_sync(~0u, sums[i], o);
        if (lane < LANES && i * LANES + l < COUNT) parts[warp][i * LANES + l] = sums[i];
    }
    __syncthreads();
    for (int t = threadIdx.x; t < COUNT; t += THREADS) {
        double sum = 0;
        for (int v = 0; v < THREADS / 32; v++) sum += parts[v][t];
        s.partial[(size_t)blockIdx.x * COUNT + t] = sum;
    }
    if (!is_last_block(s.ticket)) return;
    for (int t = warp; t < COUNT; t += THREADS / 32) {
        double sum = 0;
        for (int i = lane; i < gridDim.x; i += 32) sum += __ldcg(s.partial + (size_t)i * COUNT + t);
        sum = warp_sum(sum);
        if (lane == 0) parts[0][t] = sum;
    }
    __syncthreads();
    const int start = threadIdx.x;
    if (start >= STARTS || s.found[2 * start] == s.k || s.candidates[start * TRIALS] < 0) return;
    int best = start * TRIALS;
    for (int t = best + 1; t < (start + 1) * TRIALS; t++)
        if (parts[0][t] < parts[0][best]) best = t;
    s.rows[(size_t)start * s.k + s.found[2 * start]] = s.candidates[best];
    s.found[2 * start]++;
}
