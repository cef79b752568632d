#include "tests/simulation/coverage.h"

#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::simulation {
namespace {

constexpr const char* kChiefPhaseNames[] = {"Adopting", "Waiting",   "Forming", "Running",
                                            "Breaking", "Finishing", "Done"};
constexpr const char* kWorkerPhaseNames[] = {"Idle",    "Preparing", "Forming", "Syncing",
                                             "Running", "Holding",   "Stopping"};

template <typename Variant, size_t... I>
void AppendNames(std::vector<std::string>& names, std::index_sequence<I...>) {
  (names.push_back(std::variant_alternative_t<I, Variant>::kTypeName), ...);
}

template <typename Outer, typename Inner>
std::vector<std::string> Names() {
  std::vector<std::string> names;
  AppendNames<typename Outer::Variant>(names, std::make_index_sequence<std::variant_size_v<typename Outer::Variant>>());
  AppendNames<typename Inner::Variant>(names, std::make_index_sequence<std::variant_size_v<typename Inner::Variant>>());
  return names;
}

// `envelope`: the event that only carries messages or commands, each of which counts by itself.
template <typename Table, size_t kPhases>
std::string TextOf(const Table& table, const char* core, const std::vector<std::string>& names,
                   const char* const (&phases)[kPhases], const std::string& envelope) {
  size_t seen = 0, all = 0;
  std::string missing;
  for (size_t phase = 0; phase < kPhases; ++phase) {
    std::vector<std::string> never;
    for (size_t event = 0; event < names.size(); ++event) {
      if (names[event] == envelope) continue;
      ++all;
      if (table[phase][event] != 0) ++seen;
      if (table[phase][event] == 0) never.push_back(names[event]);
    }
    if (!never.empty()) absl::StrAppend(&missing, "  never in ", phases[phase], ": ", absl::StrJoin(never, ", "), "\n");
  }
  return absl::StrCat(core, ": ", seen, " of ", all, " pairs of phase and event\n", missing);
}

}  // namespace

void Coverage::Count(chief::Phase phase, const chief::Event& event) {
  const size_t row = static_cast<size_t>(phase);
  if (row >= kChiefPhases) return;
  const auto* const from = std::get_if<chief::FromWorker>(&event);
  const size_t column =
      from == nullptr ? event.index() : std::variant_size_v<chief::Event::Variant> + from->message.index();
  ++chief_[row][column];
}

void Coverage::Count(worker::SessionCore::Phase phase, const worker::Event& event) {
  const size_t row = static_cast<size_t>(phase);
  if (row >= kWorkerPhases) return;
  const auto* const from = std::get_if<worker::CommandReceived>(&event);
  const size_t column =
      from == nullptr ? event.index() : std::variant_size_v<worker::Event::Variant> + from->command.index();
  ++worker_[row][column];
}

void Coverage::Add(const Coverage& other) {
  for (size_t row = 0; row < chief_.size(); ++row) {
    for (size_t column = 0; column < kChiefEvents; ++column) chief_[row][column] += other.chief_[row][column];
  }
  for (size_t row = 0; row < worker_.size(); ++row) {
    for (size_t column = 0; column < kWorkerEvents; ++column) worker_[row][column] += other.worker_[row][column];
  }
}

std::string Coverage::Text() const {
  return TextOf(chief_, "chief", Names<chief::Event, WorkerMessage>(), kChiefPhaseNames, chief::FromWorker::kTypeName) +
         TextOf(worker_, "worker", Names<worker::Event, ChiefCommand>(), kWorkerPhaseNames,
                worker::CommandReceived::kTypeName);
}

}  // namespace lockstep::simulation
