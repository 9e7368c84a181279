// Labels by float16 tensor cores with a bound of their error, for more than 16 centers on Hopper.
//
// The score of a center is x c - |c|^2 / 2, lifted by the bound of the center's error: see
// `ScoreError`. A row is certain if no second score is within the bound of the best one; others are
// queued for `recheck` of update.cu. It reads the copies and writes `word`, `best`, `list` and
// `queued`; labels and sums stay.
//
// Points lie in global memory in the order of wgmma's operand A, centers in that of its swizzled
// operand B, and a part of the centers stays in shared memory: nothing is staged, and warpgroups
// run on their own, 64 rows each. The columns of the scores are a grid u * 32 + q. The largest
// score of every q over u, and of every u over q, take two operations per score. Any column but the
// best differs from it in u or in q, so the second best of both kinds give the second best of all,
// and at most four candidates if no third is near.
// Bits of positive scores order as integers do, and Hopper has a maximum of three integers;
// negative ones are below all of them, in a wrong order. So a number is added to all scores, large
// enough that the best scores of nearly all rows are positive (`choose_shift` in update.cu), and
// rows whose limit is not positive are compared with all centers. The lowest five bits of a score
// hold u or q.
#ifndef D
#define D 128
#endif
#ifndef N
#define N 128  // columns of one wgmma
#endif
#ifndef GROUPS
#define GROUPS 3  // warpgroups of a block
#endif
#ifndef TILES
#define TILES 4  // of N columns each in a part of the centers
#endif
#define PART (N * TILES)  // centers of a part
#define STEPS (D / 16)
#define BLOCKS ((N + 31) / 32)  // values of u in one tile
#define LOWEST (-2147483647)

// WGMMA

__device__ __forceinline__ int with_code(int score, int code) { return (score & ~31) | code; }

__device__ __forceinline__ void load(uint4* a, const uint4* copy, int block, int warp, int lane) {
#pragma unroll
    for (int s = 0; s < STEPS; s++)
        a[s] = __ldcs(copy + ((size_t)(block * 4 + warp) * STEPS + s) * 32 + lane);
}

// word, best: (parts, padded rows). list: rows with few candidates from its front, with many from
// its back; only if there is one part.
extern "C" __global__ __launch_bounds__(128 * GROUPS, 1) void assign(Points p, LloydState state,
                                                                     Large large) {
    if (!is_running(state)) return;
    extern __shared__ unsigned char raw[];
    const u32 start = (u32)__cvta_generic_to_shared(raw), base = (start + 1023) & ~1023u;
    unsigned char* centers = raw + (base - start);
    float* shifted = (float*)(centers + (size_t)PART * D * 2);
    float* center_error = shifted + PART;
    const int thread = threadIdx.x, group = thread >> 7, lane = thread & 31,
              warp = (thread >> 5) & 3;
    const int parts = large.parts, n = p.n, padded = large.padded;
    const int g = lane >> 2, t4 = lane & 3, part = blockIdx.x % parts;
    const float added = *large.shift;
    const ScoreError error = score_error<D>(state, added);
    for (int i = thread; i < PART * D / 8; i += 128 * GROUPS)
        ((uint4*)centers)[i] = ((const uint4*)large.tiles)[(size_t)part * (PART * D / 8) + i];
    for (int i = thread; i < PART; i += 128 * GROUPS) {
        shifted[i] = added + large.lifted[part * PART + i];
        center_error[i] = large.center_sizes[part * PART + i].y;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const u64 descriptor =
        ((u64)((base & 0x3FFFF) >> 4)) | (1ull << 16) | (64ull << 32) | (1ull << 62);
    const int n_blocks = padded / 64, stride = (gridDim.x / parts) * GROUPS;
    int block = (blockIdx.x / parts) * GROUPS + group;
    uint4 a[STEPS];
    if (block < n_blocks) load(a, large.copy, block, warp, lane);
    for (; block < n_blocks; block += stride) {
        const int row = block * 64 + warp * 16 + g;
        const float2 norm[2] = {large.norms[row], large.norms[row + 8]};
        int by_q[2][8], first[2], second[2], third[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            first[h] = second[h] = third[h] = LOWEST;
#pragma unroll
            for (int s = 0; s < 8; s++) by_q[h][s] = LOWEST;
        }
#pragma unroll 1
        for (int tile = 0; tile < TILES; tile++) {
            float c[N / 2];
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int s = 0; s < STEPS; s++)
                wgmma(c, a[s],
                      descriptor +
                          (u64)(((s >> 2) * (PART * 128) + tile * N * 128 + (s & 3) * 32) >> 4),
                      s > 0);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
            for (int i = 0; i < N / 2; i++) asm volatile("" : "+f"(c[i])::"memory");
            if (tile == TILES - 1 && block + stride < n_blocks)  // the next rows, while these end
                load(a, large.copy, block + stride, warp, lane);
            const float* shift = shifted + 2 * t4 + tile * N;
#pragma unroll
            for (int pair = 0; pair < BLOCKS; pair += 2) {
                int v[2][2][8];  // block of 32 columns, row, slot
#pragma unroll
                for (int q = 0; q < 2; q++)
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const int n8 = (pair + q) * 4 + i;
                        const bool in = n8 < N / 8;
                        float2 z = make_float2(0, 0);
                        if (in) z = *(const float2*)(shift + n8 * 8);
#pragma unroll
                        for (int h = 0; h < 2; h++) {
                            v[q][h][2 * i] =
                                in ? __float_as_int(c[in ? n8 * 4 + 2 * h : 0] + z.x) : LOWEST;
                            v[q][h][2 * i + 1] =
                                in ? __float_as_int(c[in ? n8 * 4 + 2 * h + 1 : 0] + z.y) : LOWEST;
                        }
                    }
#pragma unroll
                for (int h = 0; h < 2; h++) {
#pragma unroll
                    for (int s = 0; s < 8; s++) {
                        if (pair * 4 + (s >> 1) >= N / 8) continue;
                        by_q[h][s] = (pair + 1) * 4 + (s >> 1) < N / 8
                                         ? max(max(by_q[h][s], v[0][h][s]), v[1][h][s])
                                         : max(by_q[h][s], v[0][h][s]);
                    }
#pragma unroll
                    for (int q = 0; q < 2; q++) {
                        if ((pair + q) * 32 >= N) continue;
                        int most = max(max(v[q][h][0], v[q][h][1]), v[q][h][2]);
                        most = max(most, v[q][h][3]);
                        if ((pair + q) * 32 + 16 < N) {  // else these columns do not exist
                            most = max(max(most, v[q][h][4]), v[q][h][5]);
                            most = max(max(most, v[q][h][6]), v[q][h][7]);
                        }
                        most = with_code(most, tile * BLOCKS + pair + q);
                        third[h] = max(third[h], min(second[h], most));
                        second[h] = max(second[h], min(first[h], most));
                        first[h] = max(first[h], most);
                    }
                }
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int most = LOWEST, next = LOWEST;  // over q
#pragma unroll
            for (int s = 0; s < 8; s += 2) {
                const int v = with_code(by_q[h][s], 8 * (s >> 1) + 2 * t4);
                const int u = with_code(by_q[h][s + 1], 8 * (s >> 1) + 1 + 2 * t4);
                next = max(max(next, min(most, max(u, v))), min(u, v));
                most = max(most, max(u, v));
            }
#pragma unroll
            for (int o = 1; o < 4; o <<= 1) {
                const int other = __shfl_xor_sync(~0u, most, o), x = __shfl_xor_sync(~0u, next, o);
                next = max(max(next, x), min(most, other));
                most = max(most, other);
                const int b1 = __shfl_xor_sync(~0u, first[h], o),
                          b2 = __shfl_xor_sync(~0u, second[h], o);
                const int b3 = __shfl_xor_sync(~0u, third[h], o);
                // the four lanes hold other q of the same u: the u of both firsts may be one and
                // the same
                third[h] = max(max(third[h], b3), max(min(second[h], b1), min(first[h], b2)));
                second[h] = max(max(second[h], b2), min(first[h], b1));
                first[h] = max(first[h], b1);
            }
            const int u1 = first[h] & 31, q1 = most & 31;
            u32 code = part * PART + u1 * 32 + q1;
            float own = center_error[min(u1 * 32 + q1, PART - 1)];
            // If two scores differ in no bit but those of their codes, u1 and q1 may belong to two
            // centers. The best one is then among four, unless a third is close as well.
            const bool same_u = ((first[h] ^ second[h]) & ~31) == 0,
                       same_q = ((most ^ next) & ~31) == 0;
            if (same_u || same_q) {
                const int u = same_u ? second[h] & 31 : u1, q = same_q ? next & 31 : q1;
                own = fmaxf(fmaxf(own, center_error[min(u * 32 + q, PART - 1)]),
                            fmaxf(center_error[min(u1 * 32 + q, PART - 1)],
                                  center_error[min(u * 32 + q1, PART - 1)]));
            }
            const float lowest = fmaf(-2.f, error.row(norm[h]) + own, __int_as_float(first[h]));
            const int limit = __float_as_int(fmaxf(lowest, 1e-30f));
            const bool useless = !(lowest > 1e-30f);
            const bool close = (useless || max(next, second[h]) >= limit) && row + 8 * h < n;
            if (__any_sync(~0u, close)) {
                int near = 0;
#pragma unroll
                for (int s = 0; s < 8; s++) near += by_q[h][s] >= limit;
                near += __shfl_xor_sync(~0u, near, 1);
                near += __shfl_xor_sync(~0u, near, 2);
                const int u2 = second[h] >= limit ? second[h] & 31 : u1,
                          q2 = next >= limit ? next & 31 : q1;
                const bool few = !useless && near <= 2 && third[h] < limit;
                if (close)
                    code |= ((part * PART + u2 * 32 + q2) << 15) | (few ? 1u << 30 : 2u << 30);
                if (parts == 1 && close && t4 == 0) {
                    if (few)
                        large.list[atomicAdd(large.queued, 1)] = row + 8 * h;
                    else
                        large.list[n - 1 - atomicAdd(large.queued + 1, 1)] = row + 8 * h;
                }
            }
            if (t4 == 0) {
                large.word[(size_t)part * padded + row + 8 * h] = code;
                if (parts > 1)
                    large.best[(size_t)part * padded + row + 8 * h] = __int_as_float(first[h]);
            }
        }
    }
}
