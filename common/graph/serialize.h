// A metagraph as bytes, and its fingerprint: the SHA-256 of these bytes, so `sha256sum` checks a stored file.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_SERIALIZE_H_
#define LOCKSTEP_COMMON_GRAPH_SERIALIZE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/graph/metagraph.h"

namespace lockstep {

// The canonical bytes: protos/metagraph.proto with all attributes written out. InvalidArgument when they are 2 GiB or
// more, which is protobuf's limit.
absl::StatusOr<std::string> SerializeMetaGraph(const MetaGraph& metagraph);

// The inverse. InvalidArgument when the bytes are no metagraph that this program could have written: unknown fields,
// ops, attributes, types or versions, broken references between nodes.
absl::StatusOr<MetaGraph> ParseMetaGraph(absl::string_view bytes);

// 64 lower-case hex digits. Errors as SerializeMetaGraph.
absl::StatusOr<std::string> Fingerprint(const MetaGraph& metagraph);

// The metagraph as JSON, for people.
std::string MetaGraphToJson(const MetaGraph& metagraph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_SERIALIZE_H_
