// Shows a metagraph in TensorBoard (docs/formats/events.md): its forward graph and its loss in the graph tab, a
// description in the text tab.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_EVENTS_GRAPH_EVENT_H_
#define LOCKSTEP_CHIEF_EVENTS_GRAPH_EVENT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/graph/metagraph.h"
#include "common/graph/training_account.h"
#include "protos/tensorboard.pb.h"

namespace lockstep::chief {

// One node per input, variable, constant and node of the forward graph, and one for the loss. Names are paths of
// modules (module_paths.h), so that the graph tab folds them. Shapes are those of one pass.
tensorboard::GraphDef MakeGraphDef(const MetaGraph& metagraph);

// The records of a metagraph: one graph event, one metagraph event with the fingerprint, and a text. `account`: what
// training does to the model. All have step 0, behind which no job goes back.
std::string GraphRecords(absl::Time now, const MetaGraph& metagraph, absl::string_view fingerprint,
                         const std::vector<AccountLine>& account);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_GRAPH_EVENT_H_
