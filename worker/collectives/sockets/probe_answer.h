// A listener's answer to a probe (peer_listener.h, peer_probe.h): "LSprobe1", then the incarnation's two halves in
// big-endian order.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PROBE_ANSWER_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PROBE_ANSWER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/protocol/ids.h"

namespace lockstep::worker {

inline constexpr char kProbeMagic[] = "LSprobe1";
inline constexpr size_t kProbeAnswerBytes = 24;

inline std::string ProbeAnswer(Incarnation incarnation) {
  std::string answer(kProbeMagic);
  for (const uint64_t half : {incarnation.high, incarnation.low}) {
    for (int shift = 56; shift >= 0; shift -= 8) answer.push_back(static_cast<char>(half >> shift & 0xff));
  }
  return answer;
}

// None when `answer` is malformed.
inline std::optional<Incarnation> IncarnationIn(absl::string_view answer) {
  if (answer.size() != kProbeAnswerBytes || answer.substr(0, 8) != kProbeMagic) return std::nullopt;
  const auto half = [&](size_t at) {
    uint64_t value = 0;
    for (size_t i = 0; i < 8; ++i) value = value << 8 | static_cast<uint8_t>(answer[at + i]);
    return value;
  };
  return Incarnation{.high = half(8), .low = half(16)};
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PROBE_ANSWER_H_
