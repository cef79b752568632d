#include "worker/session/inspect_data.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/job/graph_request.h"
#include "common/status/status_macros.h"
#include "worker/data/data_source.h"

namespace lockstep::worker {

absl::StatusOr<DataFacts> InspectData(const JobSpec& spec, const Graph* imported) {
  FeedOptions feed = FeedOptionsOf(spec);
  for (const GraphInput& input : KnownInputs(spec, imported)) {
    // Without the batch; an input that has no dimensions is refused with the model.
    const Shape sample(input.shape.begin() + (input.shape.empty() ? 0 : 1), input.shape.end());
    feed.inputs.push_back({input.name, input.dtype, sample, KnownRange(spec, imported, input.name)});
  }
  if (feed.inputs.size() == 1) feed.inputs[0].name = kInputsField;
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
