#include "worker/session/inspect_data.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/data_source.h"

namespace lockstep::worker {

absl::StatusOr<DataFacts> InspectData(const JobSpec& spec, absl::Span<const GraphInput> model_inputs) {
  FeedOptions feed = FeedOptionsOf(spec);
  feed.inputs = FieldsOf(model_inputs);
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<DataSource> train, OpenDataSource(spec.data().train(), feed));
  DataFacts facts;
  facts.train_samples = train->num_samples();
  facts.inputs.assign(train->fields().begin(), train->fields().end() - 1);
  facts.labels = train->fields().back();
  facts.train_sha256 = train->content_hash();
  if (!spec.data().has_eval()) return facts;
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<DataSource> eval, OpenDataSource(spec.data().eval(), feed));
  facts.eval_samples = eval->num_samples();
  facts.eval_sha256 = eval->content_hash();
  if (eval->fields() != train->fields()) {
    return absl::InvalidArgumentError(absl::StrCat("data.eval has samples of ", ShapeString(eval->fields()[0].shape),
                                                   ", data.train of ", ShapeString(facts.inputs[0].shape),
                                                   "; both must have the same form"));
  }
  return facts;
}

}  // namespace lockstep::worker
