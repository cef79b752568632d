// The name that identifies a cuDNN engine in a kernel plan. Pure: does not include cuDNN.
//
// A name is `cudnn:MATH:VERSION:GPU:ENGINE`: the type to which factors are rounded ("bf16", or "bf16-nhwc" for
// channels-last layout), the library's version number, the kind of GPU with its number of multiprocessors
// ("sm_90x132"), and cuDNN's tag of an engine with its knobs ("eng38_k2=8_k13=1"). To make the same kernel again, the
// tag is searched among the engines that the heuristics offer, which depend only on the rest of the name and the node's
// shapes. (The frontend can make an engine from numbers, but not with all of its knobs.)
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
// The end of MATH for channels-last layout.
inline constexpr absl::string_view kChannelsLastSuffix = "-nhwc";

std::string PrintEngineChoice(const EngineChoice& choice);
// InvalidArgument for any text that PrintEngineChoice cannot return.
absl::StatusOr<EngineChoice> ParseEngineChoice(absl::string_view name);

// OK when `choice` has the library version, GPU and math of `here`; else InvalidArgument with the difference.
absl::Status CheckEngineChoice(const EngineChoice& choice, const EngineChoice& here);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_ENGINE_CHOICE_H_
