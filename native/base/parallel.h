// Tasks handed out one by one to threads that live for one call (so nothing survives a fork), while the calling
// thread watches for an interruption and reports progress.
//
// Whatever may take longer than a few hundredths of a second runs as a task of a Work, and calls check() that often:
// a signal then ends every long operation within half a second.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace longleaf {

struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

// Called now and then from the calling thread with the work done so far; false asks to stop.
using Monitor = std::function<bool(double work_done)>;

// Once stopped, by the monitor or by an exception in a task, it stays so.
class Work {
 public:
  explicit Work(Monitor monitor = {}) : monitor_(std::move(monitor)) {}
  // Work inside a task of `outer`, which stops when that does.
  static Work inside(const Work& outer) { return Work(&outer); }

  void add(double amount) {
    double before = done_.load(std::memory_order_relaxed);
    while (!done_.compare_exchange_weak(before, before + amount, std::memory_order_relaxed)) {}
  }

  bool stopped() const { return stop_.load(std::memory_order_relaxed) || (outer_ != nullptr && outer_->stopped()); }
  // Throws Interrupted once stopped: for the middle of a task.
  void check() const {
    if (stopped()) throw Interrupted();
  }

  // Calls task(index, thread) for every index below `size`, or throws: a task's exception, or Interrupted. With one
  // thread and no monitor it runs on the calling thread.
  template <class Task>
  void for_each(int64_t size, int threads, Task task) {
    threads = int(std::clamp<int64_t>(threads, 1, std::max<int64_t>(size, 1)));
    if (threads == 1 && !monitor_) {
      for (int64_t index = 0; index < size; ++index) {
        check();
        task(index, 0);
      }
      return;
    }
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::condition_variable finished;
    int running = threads;
    std::exception_ptr failure;
    auto body = [&](int thread) {
      try {
        for (int64_t index; !stopped() && (index = next.fetch_add(1)) < size;) task(index, thread);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        stop_.store(true);  // after the failure is kept: what this stops throws Interrupted itself
      }
      const std::lock_guard lock(mutex);
      --running;
      finished.notify_one();
    };
    {
      std::vector<std::jthread> pool;
      try {
        for (int thread = 0; thread < threads; ++thread) pool.emplace_back(body, thread);
      } catch (const std::system_error&) {  // the system has no more: those that there are do the work
        if (pool.empty()) throw;
        const std::lock_guard lock(mutex);
        running -= threads - int(pool.size());
      }
      std::unique_lock lock(mutex);
      bool interrupted = false;
      while (!finished.wait_for(lock, std::chrono::milliseconds(50), [&] { return running == 0; })) {
        lock.unlock();
        if (monitor_ && !interrupted && !monitor_(done_.load())) {
          interrupted = true;
          stop_.store(true);
        }
        lock.lock();
      }
    }
    if (failure) std::rethrow_exception(failure);
    check();
  }

  // One task, which the monitor watches.
  template <class Task>
  void run(Task task) {
    for_each(1, 1, [&](int64_t, int) { task(); });
  }

 private:
  explicit Work(const Work* outer) : outer_(outer) {}

  Monitor monitor_;
  const Work* outer_ = nullptr;
  std::atomic<double> done_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace longleaf
