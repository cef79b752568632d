// The name of a slot, for Slots that are stored by name: 10^19 - 1 less the slot's number, in 20 digits, so that a
// listing in order begins with the newest.
//
// Threading: immutable; all functions are thread-safe.
#ifndef LOCKSTEP_COMMON_COMMIT_LOG_SLOT_NAME_H_
#define LOCKSTEP_COMMON_COMMIT_LOG_SLOT_NAME_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The highest number of 19 digits.
constexpr uint64_t kLastSlot = 9'999'999'999'999'999'999u;

inline std::string SlotName(uint64_t number) { return absl::StrFormat("%020d", kLastSlot - number); }

// nullopt: the name is not a slot's.
inline std::optional<uint64_t> SlotOfName(absl::string_view name) {
  uint64_t rest = 0;
  const bool digits = name.size() == 20 && std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(name, &rest) || rest >= kLastSlot) return std::nullopt;
  return kLastSlot - rest;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COMMIT_LOG_SLOT_NAME_H_
