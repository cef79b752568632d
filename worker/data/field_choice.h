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

namespace lockstep::worker {

// Positions among the names of the file.
struct FieldChoice {
  std::vector<size_t> inputs;   // at least one
  std::optional<size_t> label;  // none: there is none, and none has to be
};

// `names` are those of the file, in its order; `what` is how it calls them ("array", "column"). The inputs are
// `input_fields`, else all but the label; the label is `label_field`, else "labels", else "label". With `by_position` a
// field may be given by its position, from 0, or -1 for the last. Without `labels` there may be no label, and one that
// is there is no input either. InvalidArgument names what there is.
absl::StatusOr<FieldChoice> ChooseFields(const job::DataFiles& files, absl::Span<const std::string> names,
                                         absl::string_view what, bool by_position, bool labels);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_FIELD_CHOICE_H_
