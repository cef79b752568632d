#include "worker/device/cuda/vendor/engine_choice.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep::device::cuda {
namespace {

// cuDNN's words have no other characters.
bool IsWord(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '=' || c == '-';
  });
}

}  // namespace

std::string PrintEngineChoice(const EngineChoice& choice) {
  return absl::StrCat(kCudnnPrefix, choice.math, ":", choice.version, ":", choice.gpu, ":", choice.engine);
}

absl::StatusOr<EngineChoice> ParseEngineChoice(absl::string_view name) {
  const std::vector<absl::string_view> fields = absl::StrSplit(name, ':');
  EngineChoice choice;
  if (fields.size() == 5 && absl::StartsWith(name, kCudnnPrefix)) {
    choice.math = std::string(fields[1]);
    choice.gpu = std::string(fields[3]);
    choice.engine = std::string(fields[4]);
    // What is read must print as what was given: that refuses signs, spaces and leading zeros.
    if (absl::SimpleAtoi(fields[2], &choice.version) && IsWord(choice.engine) && PrintEngineChoice(choice) == name) {
      return choice;
    }
  }
  return absl::InvalidArgumentError(
      "the kernel plan's name is not one of cuDNN's, cudnn:MATH:VERSION:GPU:ENGINE. Start a new run with a new plan.");
}

absl::Status CheckEngineChoice(const EngineChoice& choice, const EngineChoice& here) {
  std::string because;
  if (choice.version != here.version) {
    because = absl::StrCat("which is for cuDNN ", choice.version, "; this is ", here.version);
  } else if (choice.gpu != here.gpu) {
    because = absl::StrCat("which is for a GPU ", choice.gpu, "; this is ", here.gpu);
  } else if (choice.math != here.math) {
    because = absl::StrCat("which is for ", choice.math, "; the node is ", here.math);
  } else {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '", PrintEngineChoice(choice),
                                                 "', ", because,
                                                 ". Use a machine like those that made the plan, or start a new run."));
}

}  // namespace lockstep::device::cuda
