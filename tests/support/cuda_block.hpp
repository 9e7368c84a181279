// Runs a block of CUDA threads on the CPU: the words that kernels/batch.cu needs of CUDA.
// Each thread is a fiber. It runs until it waits for its warp or its block; when all of them wait,
// they go on. Threads that wait for different things are a mistake of the kernel and end the run.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

using std::max;
using std::min;

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct Index {
    int x;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

template <class To, class From>
To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof(to));
    return to;
}
inline float __uint_as_float(unsigned x) { return same_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
inline int __ffs(unsigned x) { return __builtin_ffs(int(x)); }

template <class T>
T __ldg(const T* from) {
    return *from;
}
template <class T>
T __ldcg(const T* from) {
    return *from;
}
template <class T>
void atomicAdd(T* to, T value) {
    *to += value;
}
template <class T>
void atomicSub(T* to, T value) {
    *to -= value;
}
inline int atomicAdd(int* to, int value) { return (*to += value) - value; }
inline void __threadfence() {}

/// Byte i of the result is the byte of (a, b) that digit i of `selector` names.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= unsigned(both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return result;
}

constexpr int BLOCK = 256, WARP = 32;
enum State { RUNS, AT_BLOCK, AT_WARP, ENDED };

// A fiber starts by setcontext and goes on by _longjmp: setcontext and swapcontext set the mask of
// signals, a call of the kernel for each turn of each thread.
struct Fibers {
    ucontext_t contexts[BLOCK];
    jmp_buf places[BLOCK], main;
    bool started[BLOCK];
    State states[BLOCK];
    std::vector<char> stacks[BLOCK];
    unsigned long long exchanged[BLOCK];
    int current;
    std::function<void()> body;
};
static Fibers fibers;

inline void wait_at(State state) {
    fibers.states[fibers.current] = state;
    if (!_setjmp(fibers.places[fibers.current])) _longjmp(fibers.main, 1);
}

inline void run_current() {
    fibers.body();
    wait_at(ENDED);
}

inline void resume(int thread) {
    fibers.current = threadIdx.x = thread;
    if (_setjmp(fibers.main)) return;
    if (fibers.started[thread]) _longjmp(fibers.places[thread], 1);
    fibers.started[thread] = true;
    setcontext(&fibers.contexts[thread]);
}

/// Lets threads first to last go on if all of them wait for the same thing.
inline bool release(int first, int last, State state) {
    for (int i = first; i < last; i++)
        if (fibers.states[i] != state) return false;
    std::fill(fibers.states + first, fibers.states + last, RUNS);
    return true;
}

/// Runs a block. backwards: threads take their turns from the last to the first.
inline void run_block(int block, bool backwards, std::function<void()> body) {
    blockIdx.x = block, blockDim.x = BLOCK, fibers.body = std::move(body);
    for (int i = 0; i < BLOCK; i++) {
        fibers.stacks[i].resize(1 << 16);
        getcontext(&fibers.contexts[i]);
        fibers.contexts[i].uc_stack.ss_sp = fibers.stacks[i].data();
        fibers.contexts[i].uc_stack.ss_size = fibers.stacks[i].size();
        fibers.contexts[i].uc_link = nullptr;
        makecontext(&fibers.contexts[i], run_current, 0);
        fibers.states[i] = RUNS;
        fibers.started[i] = false;
    }
    for (bool going = true; going;) {
        going = false;
        for (int i = 0; i < BLOCK; i++) {
            const int thread = backwards ? BLOCK - 1 - i : i;
            if (fibers.states[thread] == RUNS) resume(thread), going = true;
        }
        for (int warp = 0; warp < BLOCK; warp += WARP) going |= release(warp, warp + WARP, AT_WARP);
        going |= release(0, BLOCK, AT_BLOCK);
    }
    for (State state : fibers.states)
        if (state != ENDED) std::fputs("threads wait for different things\n", stderr), std::abort();
}

inline void __syncwarp() { wait_at(AT_WARP); }
inline void __syncthreads() { wait_at(AT_BLOCK); }

/// What a function makes of the numbers of all threads from `first` on.
template <class Result>
auto together(State state, int first, unsigned long long number, Result result) {
    fibers.exchanged[fibers.current] = number;
    wait_at(state);
    const auto found = result(fibers.exchanged + first);
    wait_at(state);
    return found;
}

template <class Result>
auto in_warp(unsigned long long number, Result result) {
    return together(AT_WARP, fibers.current / WARP * WARP, number, result);
}

template <class T>
T __shfl_sync(unsigned, T value, int source) {
    unsigned long long bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    bits = in_warp(bits, [&](const unsigned long long* all) { return all[source]; });
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int offset) {
    return __shfl_sync(mask, value, fibers.current % WARP ^ offset);
}
inline unsigned __ballot_sync(unsigned, bool vote) {
    return in_warp(vote, [](const unsigned long long* all) {
        unsigned votes = 0;
        for (int i = 0; i < WARP; i++) votes |= unsigned(all[i]) << i;
        return votes;
    });
}
inline int __reduce_add_sync(unsigned, int value) {
    return in_warp((unsigned long long)value, [](const unsigned long long* all) {
        int sum = 0;
        for (int i = 0; i < WARP; i++) sum += int(all[i]);
        return sum;
    });
}
inline int votes_of_block(bool vote) {
    return together(AT_BLOCK, 0, vote, [](const unsigned long long* all) {
        int sum = 0;
        for (int i = 0; i < BLOCK; i++) sum += int(all[i]);
        return sum;
    });
}
inline bool __syncthreads_or(bool vote) { return votes_of_block(vote) > 0; }
inline bool __syncthreads_and(bool vote) { return votes_of_block(vote) == BLOCK; }

/// mma.m16n8k32 of bytes: c += a b. Signed: those of b.
template <class Byte>
void multiply_bytes(int* c, const unsigned* a, unsigned b0, unsigned b1) {
    static unsigned left[BLOCK][4], right[BLOCK][2];
    std::copy(a, a + 4, left[fibers.current]);
    right[fibers.current][0] = b0, right[fibers.current][1] = b1;
    __syncwarp();
    const int first = fibers.current / WARP * WARP, group = fibers.current % WARP / 4;
    for (int i = 0; i < 4; i++) {
        const int row = group + (i & 2 ? 8 : 0), column = 2 * (fibers.current % 4) + (i & 1);
        for (int k = 0; k < 32; k++) {
            const int lane = k % 16 / 4, half = k / 16, shift = 8 * (k % 4);
            const unsigned x = left[first + row % 8 * 4 + lane][2 * half + row / 8];
            const unsigned y = right[first + column * 4 + lane][half];
            c[i] += int(x >> shift & 255) * Byte(y >> shift & 255);
        }
    }
    __syncwarp();
}
