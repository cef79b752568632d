// Which fields of a file that holds several feed the model, and which is the label.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_DATA_FIELD_CHOICE_H_
#define LOCKSTEP_WORKER_DATA_FIELD_CHOICE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "protos/job.pb.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

// Positions among the names of the file.
struct FieldChoice {
  std::vector<size_t> inputs;   // at least one
  std::optional<size_t> label;  // none: the file has none
};

// `names` are those of the file, in its order; `what` is how it calls them ("array", "column"). The inputs are
// `input_fields`, else all but the label; the label is `label_field`, else "labels", else "label". With `by_position` a
// field may be given by its position, from 0, or -1 for the last. A label that is there is no input, whether it is read
// or not. InvalidArgument names what there is, also when there is no label and one is required.
absl::StatusOr<FieldChoice> ChooseFields(const job::DataFiles& files, absl::Span<const std::string> names,
                                         absl::string_view what, bool by_position, const ReadOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FIELD_CHOICE_H_
