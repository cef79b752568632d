// Random cases for kernels of NVIDIA's libraries, in BF16 too, on a GPU or in host execution.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_TESTS_CONTRACTS_LIBRARY_CASES_H_
#define LOCKSTEP_TESTS_CONTRACTS_LIBRARY_CASES_H_

#include <array>
#include <cstdint>
#include <string>

#include "common/graph/ops/ir.h"
#include "tests/contracts/device_comparison.h"
#include "worker/device/kernel.h"

namespace lockstep {

// The ops whose random cases are often served by libraries, and the number of seeds to try: most random convolutions
// have padding that cuDNN does not support.
inline constexpr std::array kLibraryOps = {OpType::kGemm,          OpType::kMatMul,        OpType::kBatchMatMul,
                                           OpType::kConv,          OpType::kConvTranspose, OpType::kConvGradInput,
                                           OpType::kConvGradWeight};
inline constexpr uint64_t kMostLibrarySeeds = 1000;

// The implementation that the device chooses for a node of the graph (by default the last), or its reason to refuse.
std::string ChosenFor(device::Device& device, const Graph& graph, const Node& node,
                      device::Epilogue epilogue = device::Epilogue::kNone);
std::string ChosenFor(device::Device& device, const Graph& graph, device::Epilogue epilogue = device::Epilogue::kNone);

bool IsLibrarys(const std::string& implementation);

// The graph with casts to and from BF16 around its only node.
Graph InBf16(const Graph& graph);

// Compares results of float32 sums that were rounded to BF16, where the last rounding may differ. `rounded_between`:
// sums may also have been rounded before a bias was added.
void CompareRounded(const Values& expected, const Values& got, const Values& magnitudes, bool rounded_between);

// Compares up to `most` BF16 cases that a library serves with the definition, and each with a repetition of itself.
// Returns their number.
int CompareLibrariesInBf16(device::Device& reference, device::Device& cuda, OpType op, int most);

// Compares a library's attention and its gradient in BF16 with the definition and with a repetition: causal and not,
// with heads of keys shared by heads of queries. REQUIRES: a library serves both.
void CompareAttentionInBf16(device::Device& reference, device::Device& cuda);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONTRACTS_LIBRARY_CASES_H_
