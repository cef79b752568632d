// The control word, by which the ranks of a generation agree through the data that they reduce. Each rank contributes
// one slot to a step's (or evaluation slice's) last bucket; after the reduction every rank holds all slots and
// evaluates them in the same way, so all act on the same word at the same boundary (rules 1 to 4 of the protocol). Only
// the word of the attempt that is applied counts. This file defines what a slot means; how it travels is up to
// worker/collectives.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_CONTROL_H_
#define LOCKSTEP_COMMON_PROTOCOL_CONTROL_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/protocol/fields.h"

namespace lockstep {

// In the order in which several requests at one boundary are served (rule 2).
enum class RequestKind : uint8_t {
  kFinish = 0,  // evaluate if the job evaluates, then act as for kStop
  kSnapshot = 1,
  kSnapshotHold = 2,  // a snapshot after which the members wait at the boundary until it is published (rule 19)
  kStop = 3,          // save, hold, and be done
  kLeave = 4,         // contributed by the leaving rank in its own slot, with number 1
  kForm = 5,          // members meet at the boundary because the chief wants to form another generation
};
inline constexpr size_t kRequestKinds = 6;

// One rank's slot. A request stays in the slot until it is served; 0 means no request of that kind. The numbers of the
// chief's requests only grow, across terms too, so a rank that receives one late knows that it was served.
struct ControlContribution {
  std::array<uint64_t, kRequestKinds> requests{};
  bool free_to_save = false;  // no earlier snapshot is still being uploaded
  bool hears_chief = false;

  uint64_t& request(RequestKind kind) { return requests[static_cast<size_t>(kind)]; }
  uint64_t request(RequestKind kind) const { return requests[static_cast<size_t>(kind)]; }
  LS_FIELDS(ControlContribution, requests, free_to_save, hears_chief)
};

// The reduced word: slot[r] is what rank r contributed.
struct ControlWord {
  std::vector<ControlContribution> slots;

  // The highest number that any rank contributed; 0 when no rank has such a request.
  uint64_t Highest(RequestKind kind) const {
    uint64_t highest = 0;
    for (const auto& slot : slots) highest = std::max(highest, slot.request(kind));
    return highest;
  }
  // True when no rank holds a snapshot that is not stored yet.
  bool AllFreeToSave() const {
    return std::all_of(slots.begin(), slots.end(), [](const ControlContribution& s) { return s.free_to_save; });
  }
  // The ranks that ask to leave, in rank order.
  std::vector<uint32_t> LeavingRanks() const {
    std::vector<uint32_t> ranks;
    for (size_t r = 0; r < slots.size(); ++r) {
      if (slots[r].request(RequestKind::kLeave) != 0) ranks.push_back(static_cast<uint32_t>(r));
    }
    return ranks;
  }
  LS_FIELDS(ControlWord, slots)
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_CONTROL_H_
