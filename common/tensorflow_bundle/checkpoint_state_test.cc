#include "common/tensorflow_bundle/checkpoint_state.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("checkpoint state: what was written is read, and known as ours", "[tensorflow]") {
  for (const std::string prefix : {"ck-1", "odd \"name\"\n#x", "\xc3\xa9"}) {
    const std::string text = EncodeCheckpointState(prefix);
    CHECK(ParseCheckpointState(text).value() == prefix);
    CHECK(IsOurCheckpointState(text));
  }
}

TEST_CASE("checkpoint state: TensorFlow's own is read, and not taken for ours", "[tensorflow]") {
  const std::string text =
      "model_checkpoint_path: \"ck-2\"\nall_model_checkpoint_paths: \"ck-1\"\nall_model_checkpoint_paths: \"ck-2\"\n"
      "all_model_checkpoint_timestamps: 1795717430.9\nlast_preserved_timestamp: 1.5\n";
  CHECK(ParseCheckpointState(text).value() == "ck-2");
  CHECK_FALSE(IsOurCheckpointState(text));
}

TEST_CASE("checkpoint state: a file that names nothing is refused", "[tensorflow]") {
  for (const std::string text : {"", "# x\n", "model_checkpoint_path: \"\"", "model_checkpoint_path: ck", "\xff"}) {
    CHECK(absl::IsDataLoss(ParseCheckpointState(text).status()));
  }
}

TEST_CASE("checkpoint state: no file is nested so deep that the reader ends", "[tensorflow]") {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "a{";
  CHECK(absl::IsDataLoss(ParseCheckpointState(text).status()));
}

}  // namespace
}  // namespace lockstep
