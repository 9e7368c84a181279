// Faults: threads that do not start, work that throws, memory that ends inside a kernel, and
// arguments that a kernel refuses.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "csr_checks.hpp"

/// Allocations by `new` before one fails; below zero, none does.
inline std::atomic<int64_t> allocations_left{-1};

inline void* allocate(size_t size, size_t alignment) {
    if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
    void* at = alignment > 16
                   ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                   : std::malloc(size);
    if (at == nullptr) throw std::bad_alloc();
    return at;
}

void* operator new(size_t size) { return allocate(size, 1); }
void* operator new(size_t size, std::align_val_t to) { return allocate(size, size_t(to)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    try {
        return allocate(size, 1);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, size_t) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, size_t, std::align_val_t) noexcept { std::free(at); }

/// Every item once, also after work has thrown: in the caller, in other threads, in several.
inline void check_pool() {
    using lloydformer::ThreadPool;
    ThreadPool pool(4);
    if (pool.size() != 4) complain("threads that have not started", "pool");
    for (int round = 0; round < 400; round++) {
        const int count = 1 + round % 40, bad = round % 7 == 0 ? -1 : round % count;
        std::vector<int> done(count);
        bool thrown = false;
        try {
            pool.run(count, [&](int item, int) {
                if (item == bad || (round % 3 == 0 && bad >= 0 && item > bad))
                    throw std::runtime_error("item");
                done[item]++;
            });
        } catch (const std::runtime_error&) {
            thrown = true;
        }
        if (thrown != (bad >= 0)) complain("an exception that is lost", "pool");
        for (int times : done)
            if (times > 1 || (!thrown && times != 1))
                complain("items that are not run once", "pool");
    }
}

/// No thread can be started: the caller does all the work, with the same bits.
template <class T>
void check_without_threads() {
#if defined(__GLIBC__)
    pthread_attr_t attributes;
    size_t before = 0;
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &before);
    const Kind kind(sizeof(T) == 4 ? 2 : 3);
    const Generated<T> given(3000, 5, 9, kind);
    const uint64_t alone = every_kernel(given, kind, 1);
    pthread_attr_setstacksize(&attributes, size_t(1) << 47);
    pthread_setattr_default_np(&attributes);
    if (lloydformer::ThreadPool(4).size() != 1) complain("a thread without a stack", "no threads");
    if (every_kernel(given, kind, 4) != alone) complain("other bits", "no threads");
    pthread_attr_setstacksize(&attributes, before);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
#endif
}

/// Runs a call on a session with the n-th allocation failing, for every n: std::bad_alloc, and the
/// same result as that of a new session when the call is repeated. open() gives a new session.
template <class T, class Open>
void check_memory_of(const std::string& name, Open open, const std::function<void(Run<T>&)>& call) {
    Run<T> once = open();
    call(once);
    bool failed = true;
    for (int64_t n = 0; failed; n += 1 + n / 16) {
        Run<T> run = open();
        allocations_left = n;
        failed = false;
        try {
            call(run);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        allocations_left = -1;
        run.found = Checksum(), run.restart();
        call(run);
        if (run.found.value() != once.found.value())
            complain("another result after memory has ended", name);
    }
}

template <class T>
void check_memory() {
    const Kind kind(sizeof(T) == 4 ? 2 : 3);
    const Generated<T> given(2500, 5, 40, kind);
    const auto check = [&](const char* name, const std::function<void(Run<T>&)>& call) {
        check_memory_of<T>(name, [&] { return Run<T>(given, kind, 3, Run<T>::ROOM); }, call);
    };
    const Kind plain(sizeof(T) == 8);
    const auto check_screened = [&](const char* name, const std::function<void(Run<T>&)>& call) {
        const auto open = [&] { return Run<T>(given, plain, 3, Run<T>::ROOM, Screening::always); };
        check_memory_of<T>(name, open, call);
    };
    check_screened("screened nearest", [](Run<T>& run) { run.descend(8); });
    check_screened("screened seeding", [](Run<T>& run) { run.seeding(); });
    check("nearest", [](Run<T>& run) { run.descend(8); });
    check("measure", [](Run<T>& run) { run.measure(); });
    check("unseen", [](Run<T>& run) { run.unseen(); });
    check("shares", [](Run<T>& run) { run.shares(); });
    check("symmetric", [](Run<T>& run) { run.symmetric(); });
    check("mixtures", [&](Run<T>& run) { every_mixture(run, given); });
    check("relocation folds", [](Run<T>& run) { run.relocation_folds(); });
    check("trimmed", [](Run<T>& run) { run.trim(); });
    check("robust", [](Run<T>& run) { run.robust(); });
    check("seeding", [](Run<T>& run) { run.seeding(); });
    check("seeds", [](Run<T>& run) { run.seeds(); });
    check("draws", [&](Run<T>& run) { every_draw(run, given); });
    check("moments", [](Run<T>& run) { run.moments(); });
    check("iterate", [](Run<T>& run) { run.iterate_some(5); });
    check("relocate", [](Run<T>& run) { run.relocate_some(3); });
    check("recombine", [](Run<T>& run) { run.recombine(3, 20); });
}

/// The same for sparse rows, after iterations: kernels that fail forget them.
template <class T, class Index>
void check_sparse_memory() {
    const Kind kind(sizeof(T) == 4 ? 2 : 3);
    const Thinned<T, Index> thin(Generated<T>(2500, 7, 20, kind), kind);
    const auto check = [&](const char* name, const std::function<void(Run<T>&)>& call) {
        check_memory_of<T>(name, [&] { return thin.run(kind, 3); }, call);
    };
    check("nearest of sparse rows", [](Run<T>& run) { run.descend(4); });
    check("iterate of sparse rows", [](Run<T>& run) { run.iterate_some(4); });
    check("measure of sparse rows", [](Run<T>& run) { run.descend(1), run.measure(); });
    check("shares of sparse rows", [](Run<T>& run) { run.descend(1), run.shares(); });
    check("seeding of sparse rows", [](Run<T>& run) { run.descend(1), run.seeding(); });
    check("moments of sparse rows", [](Run<T>& run) { run.descend(1), run.moments(); });
}

/// A call that must be refused, in words that name the argument.
inline void refused(const char* words, const std::function<void()>& call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        if (std::string(error.what()).find(words) != std::string::npos) return;
        complain(error.what(), words);
    }
    complain("a call that is not refused", words);
}

inline void check_refusals() {
    const Kind kind(1);
    const Generated<double> given(6, 2, 9, kind);
    Run<double> run(given, kind, 1, 0);
    std::vector<double> out(5), centers(18, 9.0), wrong(4);
    std::vector<float> single(5);
    refused("kernel: found \"none\"", [&] {
        Call call;
        run.session().run("none", call);
    });
    refused("out: found nothing", [&] {
        Call call;
        run.session().run("moments", call);
    });
    refused("out: pass (3 + d) of float64; found (4) of float64", [&] {
        Call call;
        call.set("out", wrong.data(), {4});
        run.session().run("moments", call);
    });
    refused("out: pass (3 + d) of float64; found (5) of float32", [&] {
        Call call;
        call.set("out", single.data(), {5});
        run.session().run("moments", call);
    });
    refused("out: pass (3 + d) of float64; found a number", [&] {
        Call call;
        call.set("out", 1.0);
        run.session().run("moments", call);
    });
    refused("out: pass an array that may be written", [&] {
        Call call;
        call.set("out", lloydformer::Array{out.data(), lloydformer::Type::float64, false, {5}});
        run.session().run("moments", call);
    });
    refused("more: moments does not take this argument", [&] {
        Call call;
        call.set("out", out.data(), {5});
        call.set("more", int64_t(1));
        run.session().run("moments", call);
    });
    refused("centers: found 9 for 6 points", [&] { run.iterate(centers, 3); });
    refused("moved: pass a number above 0", [&] { run.relocate(centers, 0, 0); });
    refused("first: pass True", [&] { run.add_seed(false); });
    refused("rows: pass at least one row", [&] { minibatch(run, given, {}); });
    refused("rows: pass rows from 0 to n - 1", [&] { minibatch(run, given, {6}); });
    refused("known: pass the number of candidates", [&] { approach(run, given, 0, 0); });
}
