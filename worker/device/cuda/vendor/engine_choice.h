// Which of cuDNN's engines serves a graph, and the name that freezes it in a kernel plan. Pure: nothing here knows
// cuDNN.
//
// A name is `cudnn:MATH:VERSION:GPU:ENGINE`: what factors are rounded to ("bf16", or "bf16-nhwc" where channels lie
// last), the library's number, the kind of GPU with its multiprocessors ("sm_90x132"), and cuDNN's own word for an
// engine with its knobs ("eng38_k2=8_k13=1"). To make the same kernel again the word is looked for among those that the
// heuristics offer, which depend on the rest of the name and the node's shapes alone. (The frontend could make an
// engine from numbers, but not from all of its knobs.)
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_ENGINE_CHOICE_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_ENGINE_CHOICE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::device::cuda {

struct EngineChoice {
  std::string math;
  uint64_t version = 0;
  std::string gpu;
  std::string engine;
  friend bool operator==(const EngineChoice&, const EngineChoice&) = default;
};

inline constexpr absl::string_view kCudnnPrefix = "cudnn:";
// At the end of MATH.
inline constexpr absl::string_view kChannelsLastSuffix = "-nhwc";

std::string PrintEngineChoice(const EngineChoice& choice);
// InvalidArgument for everything that PrintEngineChoice does not make.
absl::StatusOr<EngineChoice> ParseEngineChoice(absl::string_view name);

// OK when a name is for this library, this GPU and these factors; else InvalidArgument with what differs.
absl::Status CheckEngineChoice(const EngineChoice& choice, const EngineChoice& here);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_ENGINE_CHOICE_H_
