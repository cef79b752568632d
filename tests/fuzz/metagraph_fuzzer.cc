// Metagraphs. Only one spelling of them is accepted, so the input is tried twice: as it is, and respelled. What is
// accepted can be written, and its state, its training and its evaluation laid out.
#include <google/protobuf/stubs/logging.h>

#include "common/graph/passes/training_graph.h"
#include "common/graph/serialize.h"
#include "common/graph/state_layout.h"
#include "protos/metagraph.pb.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/graph_words.h"
#include "tests/fuzz/message_mutator.h"

namespace {

void Try(const std::string& input) {
  const auto metagraph = lockstep::ParseMetaGraph(input);
  if (!metagraph.ok()) {
    LS_CHECK(!metagraph.status().message().empty(), "a refusal says why");
    return;
  }
  const auto bytes = lockstep::SerializeMetaGraph(*metagraph);
  LS_CHECK(bytes.ok(), "what was read can be written");
  const auto again = lockstep::ParseMetaGraph(*bytes);
  LS_CHECK(again.ok() && lockstep::SerializeMetaGraph(*again).value() == *bytes, "and is the same then");
  LS_CHECK(lockstep::MakeStateLayout(*metagraph).TotalBytes() >= 0, "the state has a size");
  static_cast<void>(lockstep::MakeTrainingGraph(*metagraph).status());
  static_cast<void>(lockstep::MakeEvaluationGraph(*metagraph, 3).status());
}

}  // namespace

const lockstep::fuzz::StructuredMutator& lockstep::fuzz::TargetMutator() {
  static const BinaryMutator<proto::MetaGraph> mutator(GraphWords());
  return mutator;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static google::protobuf::LogSilencer silence;
  const std::string input = lockstep::fuzz::Text(data, size);
  Try(input);
  lockstep::proto::MetaGraph message;
  if (message.ParseFromString(input)) Try(message.SerializeAsString());
  return 0;
}
