// Loss and update rules to and from their protos.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_SERIALIZE_UPDATE_H_
#define LOCKSTEP_COMMON_GRAPH_SERIALIZE_UPDATE_H_

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"
#include "protos/metagraph.pb.h"

namespace lockstep {

void WriteLoss(const LossRule& loss, proto::Loss* message);
void WriteUpdate(const UpdateRule& update, proto::Update* message);

// InvalidArgument for kinds that this program does not know.
absl::StatusOr<LossRule> ReadLoss(const proto::Loss& message);
absl::StatusOr<UpdateRule> ReadUpdate(const proto::Update& message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_SERIALIZE_UPDATE_H_
