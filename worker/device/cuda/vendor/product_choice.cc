#include "worker/device/cuda/vendor/product_choice.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep::device::cuda {
namespace {

constexpr size_t kDigitsPerWord = 16;

bool ParseWords(absl::string_view digits, AlgorithmWords& words) {
  if (digits.size() != words.size() * kDigitsPerWord) return false;
  for (size_t i = 0; i < digits.size(); ++i) {
    const char c = digits[i];
    uint64_t value = 0;
    if (c >= '0' && c <= '9') {
      value = static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = static_cast<uint64_t>(c - 'a') + 10;
    } else {
      return false;
    }
    words[i / kDigitsPerWord] = words[i / kDigitsPerWord] << 4 | value;
  }
  return true;
}

}  // namespace

std::string PrintProductChoice(const ProductChoice& choice) {
  std::string name = absl::StrCat(kCublasLtPrefix, choice.math, ":", choice.version, ":", choice.gpu, ":",
                                  choice.workspace_bytes, ":");
  for (const uint64_t word : choice.algorithm) absl::StrAppend(&name, absl::Hex(word, absl::kZeroPad16));
  return name;
}

absl::StatusOr<ProductChoice> ParseProductChoice(absl::string_view name) {
  const std::vector<absl::string_view> fields = absl::StrSplit(name, ':');
  ProductChoice choice;
  if (fields.size() == 6 && absl::StartsWith(name, kCublasLtPrefix)) {
    choice.math = std::string(fields[1]);
    choice.gpu = std::string(fields[3]);
    // What is read must print as what was given: that refuses signs, spaces and leading zeros.
    if (absl::SimpleAtoi(fields[2], &choice.version) && absl::SimpleAtoi(fields[4], &choice.workspace_bytes) &&
        ParseWords(fields[5], choice.algorithm) && PrintProductChoice(choice) == name) {
      return choice;
    }
  }
  return absl::InvalidArgumentError(
      "the kernel plan's name is not one of cuBLASLt's, cublaslt:MATH:VERSION:GPU:WORKSPACE:BYTES. Start a new run "
      "with a "
      "new plan.");
}

absl::Status CheckOrderOfSums(SumScheme scheme, int32_t splits) {
  if (scheme == SumScheme::kComputeType || (scheme == SumScheme::kNone && splits <= 1)) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("an algorithm that adds ", splits, " parts of a sum by scheme ",
                                               static_cast<uint32_t>(scheme),
                                               ", in no fixed order or rounded between"));
}

absl::StatusOr<std::vector<size_t>> ChooseProducts(absl::Span<const ProductCandidate> candidates,
                                                   uint64_t workspace_limit, int most) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < candidates.size() && static_cast<int>(chosen.size()) < most; ++i) {
    const ProductCandidate& candidate = candidates[i];
    if (candidate.usable && candidate.workspace_bytes <= workspace_limit &&
        CheckOrderOfSums(candidate.scheme, candidate.splits).ok()) {
      chosen.push_back(i);
    }
  }
  if (!chosen.empty()) return chosen;
  return absl::UnimplementedError(absl::StrCat("cuBLASLt offers ", candidates.size(),
                                               " algorithms, none that adds up in a fixed order within ",
                                               workspace_limit, " bytes of scratch"));
}

}  // namespace lockstep::device::cuda
