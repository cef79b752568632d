// Chooses among cuBLASLt's algorithms for a product, and defines the name that identifies one in a kernel plan. Pure:
// knows nothing of cuBLASLt but the size of its algorithm struct.
//
// A name is `cublaslt:MATH:VERSION:GPU:WORKSPACE:BYTES`: the type to which factors are rounded, the library's version
// number, the kind of GPU with its number of multiprocessors ("sm_90x132", since sums may be split over them), the
// bytes of scratch, and the algorithm struct as 128 hexadecimal digits, which only the same library version
// understands.
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
// InvalidArgument for any text that PrintProductChoice cannot return.
absl::StatusOr<ProductChoice> ParseProductChoice(absl::string_view name);

// How the parts of a split sum (split-K) are combined: the values of cublasLtReductionScheme_t.
enum class SumScheme : uint32_t { kNone = 0, kInPlace = 1, kComputeType = 2, kOutputType = 4 };

// One result of the heuristics.
struct ProductCandidate {
  bool usable = false;
  uint64_t workspace_bytes = 0;
  SumScheme scheme = SumScheme::kNone;
  int32_t splits = 1;
  AlgorithmWords algorithm = {};
};

// OK when the order of every sum is deterministic: it is not split, or a separate pass adds its parts in float32.
absl::Status CheckOrderOfSums(SumScheme scheme, int32_t splits);

// The indices of the first candidates, between one and `most`, that are usable, deterministic and within the scratch
// limit. `candidates` are in cuBLASLt's order, best first. Unimplemented, with the counts, when there is none.
absl::StatusOr<std::vector<size_t>> ChooseProducts(absl::Span<const ProductCandidate> candidates,
                                                   uint64_t workspace_limit, int most);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PRODUCT_CHOICE_H_
