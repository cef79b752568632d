// Random cases for the kernels of NVIDIA's libraries, in BF16 too: on a GPU, and in host execution.
//
// Threading: as Catch2's tests.
#ifndef LOCKSTEP_TESTS_CONTRACTS_LIBRARY_CASES_H_
#define LOCKSTEP_TESTS_CONTRACTS_LIBRARY_CASES_H_

#include <array>
#include <cstdint>
#include <string>

#include "common/graph/ops/ir.h"
#include "tests/contracts/device_comparison.h"
#include "worker/device/kernel.h"

namespace lockstep {

// The ops whose random cases libraries serve often enough, and how many cases are looked at: most random convolutions
// have padding that cuDNN does not take.
inline constexpr std::array kLibraryOps = {OpType::kGemm,          OpType::kMatMul,        OpType::kBatchMatMul,
                                           OpType::kConv,          OpType::kConvTranspose, OpType::kConvGradInput,
                                           OpType::kConvGradWeight};
inline constexpr uint64_t kMostLibrarySeeds = 1000;

// The implementation that the device chooses for a node of a graph (without one: the last), or its reason.
std::string ChosenFor(device::Device& device, const Graph& graph, const Node& node,
                      device::Epilogue epilogue = device::Epilogue::kNone);
std::string ChosenFor(device::Device& device, const Graph& graph, device::Epilogue epilogue = device::Epilogue::kNone);

bool IsLibrarys(const std::string& implementation);

// The graph's only node between casts to and from BF16.
Graph InBf16(const Graph& graph);

// Sums are those of float32; rounding one to BF16 may go the other way. `rounded_between`: so may a rounding of the
// sums before a bias is added.
void CompareRounded(const Values& expected, const Values& got, const Values& magnitudes, bool rounded_between);

// Compares `most` cases in BF16 that a library serves with the definition, and each with itself. Returns how many there
// were.
int CompareLibrariesInBf16(device::Device& reference, device::Device& cuda, OpType op, int most);

// Attention and its gradient in BF16, causal and not, with heads of keys shared by heads of queries: what a library
// computes against the definition, and again. REQUIRES: a library serves both.
void CompareAttentionInBf16(device::Device& reference, device::Device& cuda);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONTRACTS_LIBRARY_CASES_H_
