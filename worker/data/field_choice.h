// Chooses, in a file with several fields, which feed the model and which is the label.
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

// Indices into the file's list of names.
struct FieldChoice {
  std::vector<size_t> inputs;   // at least one
  std::optional<size_t> label;  // none: the file has no label
};

// `names`: the fields of the file, in order. `what`: the word for a field in messages ("array", "column"). The inputs
// are the job's `input_fields`, else all but the label; the label is `label_field`, else "labels", else "label". With
// `by_position` the job may also give a field by its position from 0, or -1 for the last. The label is never an input,
// even if it is not read. InvalidArgument for an unknown field or a missing required label; it lists the names.
absl::StatusOr<FieldChoice> ChooseFields(const job::DataFiles& files, absl::Span<const std::string> names,
                                         absl::string_view what, bool by_position, const ReadOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FIELD_CHOICE_H_
