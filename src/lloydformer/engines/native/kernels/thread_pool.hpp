// A pool of threads that share the items of a loop. Results must not depend on which thread takes
// which item.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace lloydformer {

/// Threads that wait for work. The caller works as thread 0, so a pool of size 1 starts no thread.
class ThreadPool {
  public:
    typedef std::function<void(int item, int thread)> Work;

    /// Fewer threads than `size` if the system does not start more of them (RLIMIT_NPROC, no memory
    /// for a stack): the number of threads changes no bit of a result.
    explicit ThreadPool(int size) {
        try {
            for (int t = 1; t < size; t++) threads_.emplace_back([this, t] { serve(t); });
        } catch (const std::exception&) {  // std::system_error, std::bad_alloc
        }
    }

    ~ThreadPool() {
        {
            std::lock_guard<std::mutex> hold(lock_);
            ended_ = true;
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    /// Number of threads, the caller included.
    int size() const { return int(threads_.size()) + 1; }

    /// Calls work(item, thread) once for each item from 0 to count - 1, in any order. Returns when
    /// all are done. If work throws, items that have not begun are left out, and the exception is
    /// thrown again here, when all threads are waiting for work again.
    void run(int count, const Work& work) {
        if (threads_.empty() || count == 1) {
            for (int i = 0; i < count; i++) work(i, 0);
            return;
        }
        {
            std::lock_guard<std::mutex> hold(lock_);
            work_ = &work;
            count_ = count;
            next_ = 0;
            busy_ = static_cast<int>(threads_.size());
            round_++;
        }
        wake_.notify_all();
        run_items(work, count, 0);
        std::unique_lock<std::mutex> hold(lock_);
        done_.wait(hold, [this] { return busy_ == 0; });
        if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
    }

  private:
    void run_items(const Work& work, int count, int thread) {
        try {
            for (int i = next_++; i < count; i = next_++) work(i, thread);
        } catch (...) {
            next_ = count;
            std::lock_guard<std::mutex> hold(lock_);
            if (error_ == nullptr) error_ = std::current_exception();
        }
    }

    void serve(int thread) {
        std::uncaught_exceptions();  // allocates what a thread needs in order to throw
        uint64_t seen = 0;
        std::unique_lock<std::mutex> hold(lock_);
        while (true) {
            wake_.wait(hold, [&] { return ended_ || round_ != seen; });
            if (ended_) return;
            seen = round_;
            const Work& work = *work_;
            const int count = count_;
            hold.unlock();
            run_items(work, count, thread);
            hold.lock();
            if (--busy_ == 0) done_.notify_one();
        }
    }

    std::vector<std::thread> threads_;
    std::mutex lock_;
    std::condition_variable wake_, done_;
    const Work* work_ = nullptr;
    std::atomic<int> next_{0};
    int count_ = 0, busy_ = 0;
    uint64_t round_ = 0;
    bool ended_ = false;
    std::exception_ptr error_;  // the first one of a run
};

}  // namespace lloydformer
