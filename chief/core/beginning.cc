#include "chief/core/beginning.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "chief/core/states_at_rest.h"

namespace lockstep::chief {

const Worker* SourceAmong(const std::vector<Worker*>& members, const History& history, const CheckpointTracker& saves) {
  const Worker* source = HoldsMost(history, members);
  return source != nullptr && source->held->position.step >= saves.published().step ? source : nullptr;
}

Form BeginningOf(const std::vector<Worker*>& members, const History& history, const CheckpointTracker& saves,
                 const TrainingPolicy& training) {
  Form form;
  const Worker* source = SourceAmong(members, history, saves);
  if (source == nullptr) {
    form.restore = saves.published();
    form.position = saves.published_evaluated() ? RestoredPosition(training, saves.published().step)
                                                : Position{saves.published().step, 0};
    form.ledger = saves.published_ledger();
    form.reason = "from the newest checkpoint";
    return form;
  }
  form.position = source->held->position;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const Worker& worker = *members[rank];
    if (&worker == source) {
      form.source_rank = static_cast<uint32_t>(rank);
    } else if (!HoldsCurrent(history, worker) || worker.held->position != source->held->position ||
               worker.held->digest != source->held->digest) {
      form.receivers.push_back(static_cast<uint32_t>(rank));
    }
  }
  form.reason = absl::StrCat("from the state of ", source->name());
  return form;
}

}  // namespace lockstep::chief
