// Counts which events the cores met in which phase: a pair that no schedule reaches is a rule that no schedule tests.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_COVERAGE_H_
#define LOCKSTEP_TESTS_SIMULATION_COVERAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "chief/core/coordinator.h"
#include "chief/core/events.h"
#include "common/protocol/messages.h"
#include "worker/session/events.h"
#include "worker/session/session_core.h"

namespace lockstep::simulation {

class Coverage {
 public:
  // A core in this phase is about to take this event. Messages and commands are counted by their own types.
  void Count(chief::Phase phase, const chief::Event& event);
  void Count(worker::SessionCore::Phase phase, const worker::Event& event);
  void Add(const Coverage& other);

  // The number of (phase, event) pairs that occurred and, in a line per phase, the events that never did.
  std::string Text() const;

 private:
  // The last phase of each core is its end, where no event arrives.
  static constexpr size_t kChiefPhases = static_cast<size_t>(chief::Phase::kEnded);
  static constexpr size_t kWorkerPhases = static_cast<size_t>(worker::SessionCore::Phase::kExited);
  static constexpr size_t kChiefEvents =
      std::variant_size_v<chief::Event::Variant> + std::variant_size_v<WorkerMessage::Variant>;
  static constexpr size_t kWorkerEvents =
      std::variant_size_v<worker::Event::Variant> + std::variant_size_v<ChiefCommand::Variant>;

  std::array<std::array<uint64_t, kChiefEvents>, kChiefPhases> chief_{};
  std::array<std::array<uint64_t, kWorkerEvents>, kWorkerPhases> worker_{};
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_COVERAGE_H_
