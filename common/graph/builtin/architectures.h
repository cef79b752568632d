// The architectures behind BuildArchitecture, one function each. InvalidArgument for an input or a setting that the
// architecture cannot take.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_BUILTIN_ARCHITECTURES_H_
#define LOCKSTEP_COMMON_GRAPH_BUILTIN_ARCHITECTURES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/builtin/builtin.h"

namespace lockstep {

absl::StatusOr<Graph> BuildMlp(const ModelSpec& model, const GraphInput& input);
absl::StatusOr<Graph> BuildLenet(const ModelSpec& model, const GraphInput& input);
absl::StatusOr<Graph> BuildResnet(const ModelSpec& model, const GraphInput& input);
absl::StatusOr<Graph> BuildGpt2(const ModelSpec& model, const GraphInput& input);
absl::StatusOr<Graph> BuildBert(const ModelSpec& model, const GraphInput& input);
absl::StatusOr<Graph> BuildVit(const ModelSpec& model, const GraphInput& input);

// Checks that several architectures share. `smallest`: the least height and width of an image.
absl::Status CheckFloatInput(const ModelSpec& model, const GraphInput& input);
absl::Status CheckImages(const ModelSpec& model, const GraphInput& input, int64_t smallest);
absl::Status CheckDropout(const ModelSpec& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_BUILTIN_ARCHITECTURES_H_
