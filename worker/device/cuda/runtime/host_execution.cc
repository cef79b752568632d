#include "worker/device/cuda/runtime/host_execution.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "worker/device/cuda/checker/checker.h"
#include "worker/device/cuda/checker/kernel_checks.h"

namespace lockstep::device::cuda::host_execution {

thread_local Position position;

namespace {

constexpr int kWarpSize = 32;
constexpr size_t kStackBytes = 128 << 10;

[[noreturn]] void Die(const char* what, const char* file, int line) {
  std::fprintf(stderr, "host execution: %s at %s:%d (block %u,%u,%u thread %u,%u,%u)\n", what, file, line,
               position.block.x, position.block.y, position.block.z, position.thread.x, position.thread.y,
               position.thread.z);
  std::abort();
}

enum class Stand : uint8_t { kReady, kAtBlockBarrier, kAtWarpBarrier, kDone };

struct KernelThread {
  Stand stand = Stand::kReady;
  Index3 index;
  uint64_t brought = 0;  // to a shuffle
  bool orders = false;   // memory, at the barrier where it stands
  const char* file = "";
  int line = 0;
};

// Runs the blocks of one thread of the host. A fiber runs kernel threads, one after another, until one of them waits;
// then another fiber goes on with those that have not begun. A kernel without barriers needs one fiber in all.
class Executor {
 public:
  void BeginLaunch(const checker::Now& now) { checks_.BeginLaunch(now); }

  void RunBlock(const Position& at, uint64_t block, size_t shared_bytes, absl::FunctionRef<void()> kernel) {
    const Position outer = position;
    position = at;
    kernel_ = &kernel;
    const size_t count = at.block_size.count();
    threads_.assign(count, KernelThread());
    for (size_t i = 0; i < count; ++i) {
      threads_[i].index = {static_cast<unsigned>(i % at.block_size.x),
                           static_cast<unsigned>(i / at.block_size.x % at.block_size.y),
                           static_cast<unsigned>(i / at.block_size.x / at.block_size.y)};
    }
    // Contents are undefined in CUDA: every block finds other garbage.
    shared_.assign(shared_bytes / sizeof(uint64_t) + 2, 0xfff7a5a5fff7a5a5u);
    checks_.BeginBlock(block, count, checker::Range::Of(shared(), shared_bytes));
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), size_t{0});
    begun_ = 0;
    done_ = 0;
    owner_.assign(count, nullptr);
    while (done_ < count) {
      Shuffle();
      StartThreads();
      ResumeReady();
      if (done_ < count) Release();
    }
    kernel_ = nullptr;
    position = outer;
  }

  void Wait(Stand stand, bool orders, const char* file, int line) {
    checker::KernelChecks::Leave();
    KernelThread& self = threads_[running_];
    self.stand = stand;
    self.orders = orders;
    self.file = file;
    self.line = line;
    Fiber* fiber = owner_[running_];
    const size_t own = running_;
    fiber->to_scheduler = std::move(fiber->to_scheduler).resume();
    Enter(own);
  }

  checker::KernelChecks& checks() { return checks_; }
  KernelThread& running() { return threads_[running_]; }
  size_t running_index() const { return running_; }
  KernelThread* thread(size_t index) { return index < threads_.size() ? &threads_[index] : nullptr; }
  std::byte* shared() {
    return reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(shared_.data()) + 15) & ~uintptr_t{15});
  }

 private:
  struct Fiber {
    boost::context::fiber context;
    boost::context::fiber to_scheduler;
    checker::Range stack;
  };

  // Allocates a fiber's stack and notes down where it is.
  struct FiberStack {
    boost::context::stack_context allocate() {
      const boost::context::stack_context stack = allocator.allocate();
      fiber->stack = checker::Range::Of(static_cast<std::byte*>(stack.sp) - stack.size, stack.size);
      return stack;
    }
    void deallocate(boost::context::stack_context& stack) { allocator.deallocate(stack); }
    Fiber* fiber;
    boost::context::fixedsize_stack allocator{kStackBytes};
  };

  void Enter(size_t index) {
    running_ = index;
    position.thread = threads_[index].index;
    checks_.Enter(index, owner_[index]->stack);
  }

  // Another order in each phase: forwards, backwards, even before odd.
  void Shuffle() {
    switch (phase_++ % 3) {
      case 0:
        std::sort(order_.begin() + static_cast<int64_t>(begun_), order_.end());
        break;
      case 1:
        std::sort(order_.begin() + static_cast<int64_t>(begun_), order_.end(), std::greater<>());
        break;
      default:
        std::stable_partition(order_.begin() + static_cast<int64_t>(begun_), order_.end(),
                              [](size_t i) { return i % 2 == 1; });
    }
  }

  // Runs kernel threads that have not begun until each of them is done or waits.
  void StartThreads() {
    while (begun_ < threads_.size()) {
      if (idle_.empty()) idle_.push_back(NewFiber());
      std::unique_ptr<Fiber> fiber = std::move(idle_.back());
      idle_.pop_back();
      Fiber* raw = fiber.get();
      raw->context = std::move(raw->context).resume();
      // Back here: the fiber is idle again, or one of its kernel threads waits.
      if (begun_ == threads_.size() && !Waits(raw)) {
        idle_.push_back(std::move(fiber));
      } else {
        waiting_.push_back(std::move(fiber));
      }
    }
  }

  bool Waits(const Fiber* fiber) const { return fiber == owner_[running_] && threads_[running_].stand != Stand::kDone; }

  std::unique_ptr<Fiber> NewFiber() {
    auto fiber = std::make_unique<Fiber>();
    Fiber* raw = fiber.get();
    raw->context =
        boost::context::fiber(std::allocator_arg, FiberStack{raw}, [this, raw](boost::context::fiber&& scheduler) {
          raw->to_scheduler = std::move(scheduler);
          for (;;) {
            RunUnbegun(raw);
            raw->to_scheduler = std::move(raw->to_scheduler).resume();
          }
          return std::move(raw->to_scheduler);
        });
    return fiber;
  }

  void RunUnbegun(Fiber* fiber) {
    while (begun_ < threads_.size()) {
      const size_t own = order_[begun_++];
      owner_[own] = fiber;
      Enter(own);
      (*kernel_)();
      checker::KernelChecks::Leave();
      threads_[own].stand = Stand::kDone;
      ++done_;
      // A thread that waited meanwhile ends here: others have begun since, so this fiber has no more to do.
      running_ = own;
    }
  }

  // Goes on with the threads whose barrier was released.
  void ResumeReady() {
    std::vector<size_t> ready;
    for (const size_t i : order_) {
      if (threads_[i].stand == Stand::kReady && owner_[i] != nullptr) ready.push_back(i);
    }
    if (phase_ % 2 == 0) std::reverse(ready.begin(), ready.end());
    for (const size_t i : ready) {
      Fiber* fiber = owner_[i];
      fiber->context = std::move(fiber->context).resume();
      if (threads_[i].stand != Stand::kDone) continue;
      const auto at =
          std::find_if(waiting_.begin(), waiting_.end(), [fiber](const auto& f) { return f.get() == fiber; });
      idle_.push_back(std::move(*at));
      waiting_.erase(at);
    }
  }

  void Release() {
    bool released = false;
    for (size_t first = 0; first < threads_.size(); first += kWarpSize) {
      released |= ReleaseRange(first, std::min(first + kWarpSize, threads_.size()), Stand::kAtWarpBarrier);
    }
    if (released) return;
    if (!ReleaseRange(0, threads_.size(), Stand::kAtBlockBarrier)) {
      for (const KernelThread& thread : threads_) {
        if (thread.stand == Stand::kReady || thread.stand == Stand::kDone) continue;
        position.thread = thread.index;
        Die("threads wait for others that ended or wait elsewhere", thread.file, thread.line);
      }
    }
  }

  // Lets the threads of a range go on if all of them stand at one place of this kind.
  bool ReleaseRange(size_t first, size_t last, Stand stand) {
    for (size_t i = first; i < last; ++i) {
      if (threads_[i].stand != stand) return false;
      if (threads_[i].line != threads_[first].line || threads_[i].file != threads_[first].file) return false;
    }
    for (size_t i = first; i < last; ++i) threads_[i].stand = Stand::kReady;
    if (stand == Stand::kAtBlockBarrier) {
      checks_.PassBlockBarrier();
    } else if (threads_[first].orders) {
      checks_.PassWarpBarrier(first / kWarpSize);
    }
    return true;
  }

  checker::KernelChecks checks_{checker::Range::Of(&position, sizeof position)};
  absl::FunctionRef<void()>* kernel_ = nullptr;
  std::vector<KernelThread> threads_;
  std::vector<size_t> order_;  // in which threads begin
  std::vector<Fiber*> owner_;  // of a thread that has begun
  std::vector<std::unique_ptr<Fiber>> idle_;
  std::vector<std::unique_ptr<Fiber>> waiting_;
  std::vector<uint64_t> shared_;
  size_t begun_ = 0;
  size_t done_ = 0;
  size_t running_ = 0;
  unsigned phase_ = 0;
};

Executor& Own() {
  thread_local Executor executor;
  return executor;
}

}  // namespace

void Run(Extent3 grid, Extent3 block, size_t shared_bytes, absl::FunctionRef<void()> kernel) {
  Executor& executor = Own();
  const uint64_t blocks = grid.count();
  constexpr unsigned kMostRows = 65535;
  constexpr uint64_t kMostThreads = 1024;
  if (blocks == 0 || block.count() == 0 || block.count() > kMostThreads || grid.y > kMostRows || grid.z > kMostRows) {
    Die("a launch that CUDA refuses", __FILE__, __LINE__);
  }
  const checker::Operation operation("a kernel");
  executor.BeginLaunch(operation.now());
  Position at;
  at.block_size = block;
  at.grid_size = grid;
  for (uint64_t i = 0; i < blocks; ++i) {
    at.block = {static_cast<unsigned>(i % grid.x), static_cast<unsigned>(i / grid.x % grid.y),
                static_cast<unsigned>(i / grid.x / grid.y)};
    executor.RunBlock(at, i, shared_bytes, kernel);
  }
}

void BlockBarrier(const char* file, int line) { Own().Wait(Stand::kAtBlockBarrier, true, file, line); }

void WarpBarrier(const char* file, int line) { Own().Wait(Stand::kAtWarpBarrier, true, file, line); }

uint64_t Shuffle(unsigned mask, uint64_t bits, int lane, const char* file, int line) {
  Executor& executor = Own();
  if (mask != ~0u) Die("a shuffle whose mask is not full", file, line);
  executor.running().brought = bits;
  executor.Wait(Stand::kAtWarpBarrier, false, file, line);
  const size_t first = executor.running_index() / kWarpSize * kWarpSize;
  const bool in_warp = lane >= 0 && lane < kWarpSize;
  const KernelThread* from = in_warp ? executor.thread(first + static_cast<size_t>(lane)) : nullptr;
  if (in_warp && from == nullptr) Die("a shuffle from a lane that the block does not have", file, line);
  const uint64_t result = from == nullptr ? bits : from->brought;
  // Nobody brings the next value before everybody has read this one.
  executor.Wait(Stand::kAtWarpBarrier, false, file, line);
  return result;
}

void StoreSameBytes(void* to, const void* from, size_t bytes) {
  Own().checks().StoreSame(to, bytes, __builtin_return_address(0));
  std::memcpy(to, from, bytes);
}

int LaneOfThread() { return static_cast<int>(Own().running_index() % kWarpSize); }

std::byte* DynamicSharedBytes() { return Own().shared(); }

}  // namespace lockstep::device::cuda::host_execution
