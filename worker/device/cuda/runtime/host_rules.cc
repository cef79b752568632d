#include "worker/device/cuda/runtime/host_rules.h"

#include <cstdint>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "worker/device/cuda/checker/checker.h"
#include "worker/device/cuda/checker/report.h"

namespace lockstep::device::cuda {
namespace {

thread_local bool has_device = false;
thread_local StreamHandle captured_by_thread = nullptr;

}  // namespace

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

void RequirePinned(const char* call, const std::byte* memory, size_t bytes) {
  if (bytes == 0) return;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard<std::mutex> lock(checker::Lock());
  const checker::Piece* const piece = checker::Map().Pinned(address);
  if (piece != nullptr && piece->Has(address, bytes)) return;
  checker::Report(absl::StrCat(call, ": the ", bytes, " bytes of the host are not pinned"));
}

}  // namespace lockstep::device::cuda
