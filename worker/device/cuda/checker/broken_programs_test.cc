// Programs of the host that are broken on purpose, and what is said of each: work that nothing orders, memory that is
// freed too early, and calls where CUDA forbids them.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "common/tensor/poison.h"
#include "worker/device/cuda/checker/broken_program.h"
#include "worker/device/cuda/runtime/launch.h"

namespace lockstep::device::cuda {
namespace {

using Catch::Matchers::Contains;

constexpr size_t kBytes = 64 * sizeof(float);

__global__ void CountUpKernel(float* numbers) { numbers[threadIdx.x] += 1; }

// Two streams, events, and zeroed memory that all of them may use.
struct Gpu {
  Gpu() {
    REQUIRE(SelectDevice(0).ok());
    for (StreamHandle& stream : streams) stream = *CreateStream();
    for (EventHandle& event : events) event = *CreateEvent();
    memory = *AllocateDevice(kBytes);
    pinned = *AllocatePinned(kBytes);
    std::memset(pinned, 0, kBytes);
    Fill(0);
    (void)Synchronize(streams[0]);
  }

  void Fill(int stream) { (void)Zero(streams[stream], memory, kBytes); }
  void CountUp(int stream) {
    (void)Launch(streams[stream], {.blocks = {1}, .threads = {64}}, &CountUpKernel, reinterpret_cast<float*>(memory));
  }
  void Fetch(int stream) { (void)CopyToHost(streams[stream], pinned, memory, kBytes); }
  void Bring(int stream) { (void)CopyToDevice(streams[stream], memory, pinned, kBytes); }
  // What `to` gets from here on waits for what `from` has got.
  void Order(int from, int to) {
    (void)RecordEvent(events[from], streams[from]);
    (void)StreamWaits(streams[to], events[from]);
  }
  void WaitForAll() {
    for (const StreamHandle stream : streams) (void)Synchronize(stream);
  }

  StreamHandle streams[3];
  EventHandle events[3];
  std::byte* memory;
  std::byte* pinned;
};

std::string SaidOfProgram(const std::function<void(Gpu&)>& act) {
  return SaidBy([&] {
    Gpu gpu;
    act(gpu);
    gpu.WaitForAll();
  });
}

TEST_CASE("checker: an event orders what two streams do with the same memory", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK(SaidOfProgram([](Gpu& gpu) {
          gpu.CountUp(0);
          gpu.Order(0, 1);
          gpu.CountUp(1);
          gpu.Order(1, 2);
          gpu.Fetch(2);
        }).empty());
  CHECK_THAT(SaidOfProgram([](Gpu& gpu) {
               gpu.CountUp(0);
               gpu.CountUp(1);
             }),
             Contains("a race: ") && Contains("no event orders it after an operation of another stream") &&
                 Contains("CountUpKernel"));
  CHECK_THAT(SaidOfProgram([](Gpu& gpu) {
               gpu.CountUp(0);
               gpu.Fetch(1);
             }),
             Contains("nothing orders it after an operation of another stream") || Contains("no event orders"));
}

TEST_CASE("checker: two streams may read at a time, and who writes comes behind both", "[cuda]") {
  if (!CheckerIsOn()) return;
  const auto readers = [](bool both) {
    return SaidOfProgram([both](Gpu& gpu) {
      std::byte* const other = *AllocatePinned(kBytes);
      gpu.Fetch(0);
      (void)CopyToHost(gpu.streams[1], other, gpu.memory, kBytes);
      if (both) gpu.Order(0, 2);
      gpu.Order(1, 2);
      gpu.Fill(2);
    });
  };
  CHECK(readers(true).empty());
  CHECK_THAT(readers(false),
             Contains("device memory") && Contains("nothing orders it after an operation of another stream"));
}

TEST_CASE("checker: an event stands for what came before it alone, and its newest mark counts", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK_THAT(SaidOfProgram([](Gpu& gpu) {
               (void)RecordEvent(gpu.events[0], gpu.streams[0]);
               gpu.CountUp(0);
               (void)StreamWaits(gpu.streams[1], gpu.events[0]);
               gpu.CountUp(1);
             }),
             Contains("no event orders"));
  CHECK_THAT(SaidOfProgram([](Gpu& gpu) {
               (void)StreamWaits(gpu.streams[1], gpu.events[0]);
               gpu.CountUp(0);
               (void)RecordEvent(gpu.events[0], gpu.streams[0]);
               gpu.CountUp(1);
             }),
             Contains("no event orders"));
}

TEST_CASE("checker: what the host has waited for comes before what it queues then", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK(SaidOfProgram([](Gpu& gpu) {
          gpu.CountUp(0);
          (void)Synchronize(gpu.streams[0]);
          gpu.CountUp(1);
          (void)RecordEvent(gpu.events[1], gpu.streams[1]);
          (void)WaitForEvent(gpu.events[1]);
          gpu.CountUp(0);
          (void)RecordEvent(gpu.events[0], gpu.streams[0]);
          while (!EventDone(gpu.events[0])) std::this_thread::yield();
          gpu.CountUp(2);
        }).empty());
}

TEST_CASE("checker: pinned memory that a copy fills is left alone by other copies until then", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK(SaidOfProgram([](Gpu& gpu) {
          gpu.Fetch(0);
          gpu.Order(0, 1);
          gpu.Bring(1);
        }).empty());
  CHECK_THAT(SaidOfProgram([](Gpu& gpu) {
               std::byte* const other = *AllocateDevice(kBytes);
               gpu.Fetch(0);
               (void)CopyToDevice(gpu.streams[1], other, gpu.pinned, kBytes);
             }),
             Contains("pinned memory"));
}

TEST_CASE("checker: memory is freed when somebody has waited for all that uses it", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK(SaidOfProgram([](Gpu& gpu) {
          gpu.CountUp(0);
          (void)Synchronize(gpu.streams[0]);
          FreeDevice(gpu.memory);
        }).empty());
  const std::string early = SaidOfProgram([](Gpu& gpu) {
    gpu.CountUp(0);
    (void)Synchronize(gpu.streams[1]);
    while (!EventDone(gpu.events[1])) std::this_thread::yield();
    FreeDevice(gpu.memory);
  });
  CHECK_THAT(early, Contains("are freed, and nobody has waited") || Contains("which is not device memory"));
  CHECK_THAT(SaidOfProgram([](Gpu& gpu) {
               (void)BeginCapture(gpu.streams[0]);
               gpu.CountUp(0);
               const GraphHandle graph = *EndCapture(gpu.streams[0]);
               FreeDevice(gpu.memory);
               (void)Replay(graph, gpu.streams[0]);
             }),
             Contains("which is not device memory, or not any more"));
}

TEST_CASE("checker: an operation stays within one allocation, and reads what was written", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK_THAT(SaidOfProgram([](Gpu& gpu) { (void)Zero(gpu.streams[0], gpu.memory, kBytes + 1); }),
             Contains("filling with zeros writes 257 bytes from byte 0 of an allocation of 256"));
  CHECK_THAT(SaidOfProgram([](Gpu& gpu) {
               std::byte* const empty = *AllocateDevice(kBytes);
               (void)CopyToHost(gpu.streams[0], gpu.pinned, empty, kBytes);
             }),
             Contains("a copy reads device memory, byte 0 of 256, which nothing has written"));
}

TEST_CASE("checker: memory that poison is copied to holds nothing", "[cuda]") {
  if (!CheckerIsOn()) return;
  const auto unwritten = [](size_t bytes) {
    return SaidOfProgram([bytes](Gpu& gpu) {
      Poison(absl::MakeSpan(gpu.pinned, bytes));
      gpu.Bring(0);
      gpu.CountUp(0);
    });
  };
  CHECK(unwritten(kBytes - 1).empty());
  CHECK_THAT(unwritten(kBytes), Contains("reads 4 bytes") && Contains("of device memory, which nothing has written"));
}

TEST_CASE("checker: who captures a stream does not allocate, free, wait, ask or copy to the host", "[cuda]") {
  if (!CheckerIsOn()) return;
  const auto captured = [](const std::function<void(Gpu&)>& act) {
    return SaidOfProgram([&](Gpu& gpu) {
      (void)BeginCapture(gpu.streams[0]);
      act(gpu);
      (void)EndCapture(gpu.streams[0]);
    });
  };
  CHECK(captured([](Gpu& gpu) { gpu.CountUp(0); }).empty());
  const std::string end = ": the calling thread captures a stream";
  CHECK_THAT(captured([](Gpu&) { (void)AllocateDevice(1); }), Contains("allocating device memory" + end));
  CHECK_THAT(captured([](Gpu&) { (void)AllocatePinned(1); }), Contains("allocating pinned memory" + end));
  CHECK_THAT(captured([](Gpu& gpu) { FreeDevice(gpu.memory); }), Contains("freeing device memory" + end));
  CHECK_THAT(captured([](Gpu& gpu) { FreePinned(gpu.pinned); }), Contains("freeing pinned memory" + end));
  CHECK_THAT(captured([](Gpu& gpu) { (void)Synchronize(gpu.streams[1]); }), Contains("waiting for a stream" + end));
  CHECK_THAT(captured([](Gpu& gpu) { (void)EventDone(gpu.events[0]); }), Contains("asking for an event" + end));
  CHECK_THAT(captured([](Gpu& gpu) { (void)WaitForEvent(gpu.events[0]); }), Contains("waiting for an event" + end));
  CHECK_THAT(captured([](Gpu& gpu) { gpu.Fetch(0); }), Contains("copying to the host" + end));
  CHECK_THAT(captured([](Gpu& gpu) { (void)BeginCapture(gpu.streams[1]); }), Contains("beginning another capture"));
  CHECK_THAT(SaidOfProgram([](Gpu& gpu) {
               (void)BeginCapture(gpu.streams[0]);
               std::thread([&] { (void)EndCapture(gpu.streams[0]); }).join();
             }),
             Contains("a capture is ended by another thread than began it"));
}

TEST_CASE("checker: each thread selects a GPU before it allocates or launches", "[cuda]") {
  if (!CheckerIsOn()) return;
  const auto elsewhere = [](const std::function<void(Gpu&)>& act) {
    return SaidOfProgram([&](Gpu& gpu) { std::thread([&] { act(gpu); }).join(); });
  };
  CHECK(elsewhere([](Gpu& gpu) {
          (void)SelectDevice(0);
          gpu.CountUp(0);
        }).empty());
  const std::string end = ": the calling thread has not selected a GPU";
  CHECK_THAT(elsewhere([](Gpu& gpu) { gpu.CountUp(0); }), Contains("a launch" + end));
  CHECK_THAT(elsewhere([](Gpu&) { (void)AllocateDevice(1); }), Contains("allocating device memory" + end));
  CHECK_THAT(elsewhere([](Gpu&) { (void)CreateStream(); }), Contains("making a stream" + end));
}

}  // namespace
}  // namespace lockstep::device::cuda
