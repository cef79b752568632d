#include "worker/device/cuda/runtime/host_rules.h"

#include <cstdint>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "worker/device/cuda/checker/checker.h"
#include "worker/device/cuda/checker/report.h"
#include "worker/device/cuda/runtime/host_gpu.h"

namespace lockstep::device::cuda {
namespace {

thread_local bool has_device = false;
thread_local StreamHandle captured_by_thread = nullptr;

// The error that the GPU was lost with.
struct Loss {
  std::mutex mutex;
  absl::Status status;
};
Loss& OfProcess() {
  static auto* loss = new Loss;
  return *loss;
}

}  // namespace

void LoseDevice(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(OfProcess().mutex);
  OfProcess().status.Update(status);
}

absl::Status LostDevice() {
  const std::lock_guard<std::mutex> lock(OfProcess().mutex);
  return OfProcess().status;
}

void ForgetLostHostGpu() {
  const std::lock_guard<std::mutex> lock(OfProcess().mutex);
  OfProcess().status = absl::OkStatus();
}

void NoteDevice() { has_device = true; }

void NoteCapture(StreamHandle stream) {
  RequireDevice("beginning a capture");
  RequireNoCapture("beginning another capture");
  captured_by_thread = stream;
}

void NoteEndOfCapture(StreamHandle stream) {
  if (captured_by_thread != stream) checker::Report("a capture is ended by another thread than began it");
  captured_by_thread = nullptr;
}

void RequireDevice(const char* call) {
  if (!has_device) checker::Report(absl::StrCat(call, ": the calling thread has not selected a GPU"));
}

void RequireNoCapture(const char* call) {
  if (captured_by_thread != nullptr) checker::Report(absl::StrCat(call, ": the calling thread captures a stream"));
}

bool IsPinned(const std::byte* memory, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard<std::mutex> lock(checker::Lock());
  const checker::Piece* const piece = checker::Map().Pinned(address);
  return bytes == 0 || (piece != nullptr && piece->Has(address, bytes));
}

}  // namespace lockstep::device::cuda
