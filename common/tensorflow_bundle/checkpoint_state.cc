#include "common/tensorflow_bundle/checkpoint_state.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protos/tensorflow_bundle.pb.h"

namespace lockstep {
namespace {

constexpr absl::string_view kFirstLine =
    "# Written by `lockstep checkpoint export`, which replaces it when it writes another checkpoint here.\n";

constexpr int kMaxDepth = 16;  // of messages in messages: else a nested text takes the whole stack

// Its own errors say enough.
class Silent final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

}  // namespace

std::string EncodeCheckpointState(absl::string_view prefix) {
  tf::CheckpointState state;
  state.set_model_checkpoint_path(std::string(prefix));
  state.add_all_model_checkpoint_paths(std::string(prefix));
  std::string text;
  google::protobuf::TextFormat::PrintToString(state, &text);
  return absl::StrCat(kFirstLine, text);
}

bool IsOurCheckpointState(absl::string_view text) { return absl::StartsWith(text, kFirstLine); }

absl::StatusOr<std::string> ParseCheckpointState(absl::string_view text) {
  Silent silent;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kMaxDepth);
  tf::CheckpointState state;
  if (parser.ParseFromString(std::string(text), &state) && !state.model_checkpoint_path().empty()) {
    return state.model_checkpoint_path();
  }
  return absl::DataLossError("it names no checkpoint as model_checkpoint_path");
}

}  // namespace lockstep
