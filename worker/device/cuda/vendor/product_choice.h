// Which of cuBLASLt's algorithms serves a product, and the name that freezes it in a kernel plan. Pure: nothing here
// knows cuBLASLt but the size of what it calls an algorithm.
//
// A name is `cublaslt:MATH:VERSION:GPU:WORKSPACE:BYTES`: what factors are rounded to, the library's number, the kind of
// GPU with its multiprocessors ("sm_90x132": sums may be divided among them), bytes of scratch, and the algorithm,
// which means the same to the same version of the library alone, as 128 hexadecimal digits.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PRODUCT_CHOICE_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PRODUCT_CHOICE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep::device::cuda {

using AlgorithmWords = std::array<uint64_t, 8>;

struct ProductChoice {
  std::string math;
  uint64_t version = 0;
  std::string gpu;
  uint64_t workspace_bytes = 0;
  AlgorithmWords algorithm = {};
  friend bool operator==(const ProductChoice&, const ProductChoice&) = default;
};

inline constexpr absl::string_view kCublasLtPrefix = "cublaslt:";

std::string PrintProductChoice(const ProductChoice& choice);
// InvalidArgument for everything that PrintProductChoice does not make.
absl::StatusOr<ProductChoice> ParseProductChoice(absl::string_view name);

// How the parts of a sum that run side by side are added up, in cuBLASLt's numbers.
enum class SumScheme : uint32_t { kNone = 0, kInPlace = 1, kComputeType = 2, kOutputType = 4 };

// One of the heuristics' answers, best first.
struct ProductCandidate {
  bool usable = false;
  uint64_t workspace_bytes = 0;
  SumScheme scheme = SumScheme::kNone;
  int32_t splits = 1;
  AlgorithmWords algorithm = {};
};

// OK when the order of every sum is fixed: the sum is whole, or its parts are added in float32 by a pass of its own.
absl::Status CheckOrderOfSums(SumScheme scheme, int32_t splits);

// The first ones that are usable, add up in a fixed order and are within the limit; at least one and at most `most`.
// Unimplemented with the count where there is none.
absl::StatusOr<std::vector<size_t>> ChooseProducts(absl::Span<const ProductCandidate> candidates,
                                                   uint64_t workspace_limit, int most);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PRODUCT_CHOICE_H_
