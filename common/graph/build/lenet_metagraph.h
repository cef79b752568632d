// A small metagraph (LeNet) for tests of metagraphs and of the graphs derived from them.
//
// Threading: thread-compatible; for tests, on the thread of the test case.
#ifndef LOCKSTEP_COMMON_GRAPH_BUILD_LENET_METAGRAPH_H_
#define LOCKSTEP_COMMON_GRAPH_BUILD_LENET_METAGRAPH_H_

#include <catch2/catch.hpp>
#include <utility>

#include "common/graph/build/build_metagraph.h"

namespace lockstep {

inline MetaGraphRequest LenetRequest() {
  MetaGraphRequest request;
  request.model.architecture = "lenet";
  request.inputs = {{"images", "images", InputRole::kFeature, DType::kF32, {kBatchDim, 1, 28, 28}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.optimizer.momentum = 0.9;
  request.update.schedule.lr = 0.05;
  request.pass_batch = 32;
  return request;
}

inline MetaGraph Lenet() {
  absl::StatusOr<MetaGraph> metagraph = BuildMetaGraph(LenetRequest());
  INFO(metagraph.status().ToString());
  REQUIRE(metagraph.ok());
  return *std::move(metagraph);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_BUILD_LENET_METAGRAPH_H_
