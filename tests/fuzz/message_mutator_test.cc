#include "tests/fuzz/message_mutator.h"

#include <google/protobuf/util/message_differencer.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "protos/metagraph.pb.h"
#include "protos/onnx.pb.h"
#include "protos/session.pb.h"

namespace lockstep::fuzz {
namespace {

using google::protobuf::util::MessageDifferencer;

onnx::ModelProto Model() {
  onnx::ModelProto model;
  model.set_producer_name("J\xc3\xbcrgen");
  onnx::NodeProto* const node = model.mutable_graph()->add_node();
  node->set_op_type("Gemm");
  node->add_input("x");
  node->add_input("w");
  node->add_output("y");
  auto* const attribute = node->add_attribute();
  attribute->set_name("transB");
  attribute->set_i(1);
  onnx::TensorProto* const weights = model.mutable_graph()->add_initializer();
  weights->set_name("w");
  weights->add_dims(2);
  weights->add_dims(3);
  weights->set_raw_data(std::string(24, '\xff'));
  return model;
}

onnx::ModelProto Changed(const onnx::ModelProto& model, uint64_t seed) {
  onnx::ModelProto changed = model;
  Dice dice(seed);
  ChangeMessage(changed, {"Conv", "pads"}, dice);
  return changed;
}

TEST_CASE("fuzz: a changed message is a function of the seed, and most seeds change it in a way of their own",
          "[fuzz]") {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const std::string bytes = Changed(Model(), seed).SerializeAsString();
    CHECK(bytes == Changed(Model(), seed).SerializeAsString());
    seen.insert(bytes);
  }
  CHECK(seen.size() > 200);
}

TEST_CASE("fuzz: a message that was changed many times can be parsed again, and is the same then", "[fuzz]") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    onnx::ModelProto model = Model();
    Dice dice(seed);
    for (int i = 0; i < 30 && model.ByteSizeLong() < (1 << 16); ++i) {
      ChangeMessage(model, {"Conv", "pads"}, dice);
      onnx::ModelProto again;
      REQUIRE(again.ParseFromString(model.SerializeAsString()));
      REQUIRE(again.SerializeAsString() == model.SerializeAsString());
    }
  }
}

TEST_CASE("fuzz: changes reach nested fields, absent ones, lists, numbers and words", "[fuzz]") {
  using Wanted = std::function<bool(const onnx::GraphProto&)>;
  const auto is_made = [](const Wanted& wanted) {
    for (uint64_t seed = 0; seed < 20000; ++seed) {
      if (wanted(Changed(Model(), seed).graph())) return true;
    }
    return false;
  };
  const auto node = [](const onnx::GraphProto& graph) {
    return graph.node_size() == 1 ? graph.node(0) : onnx::NodeProto();
  };
  const auto weights = [](const onnx::GraphProto& graph) {
    return graph.initializer_size() == 1 ? graph.initializer(0) : onnx::TensorProto();
  };

  CHECK(
      is_made([&](const auto& g) { return node(g).attribute_size() == 1 && node(g).attribute(0).i() > (1ll << 60); }));
  CHECK(is_made([&](const auto& g) { return node(g).attribute_size() == 1 && node(g).attribute(0).has_t(); }));
  CHECK(is_made([&](const auto& g) { return node(g).attribute_size() == 2; }));
  CHECK(is_made([&](const auto& g) { return node(g).op_type() == "Conv"; }));
  CHECK(is_made([&](const auto& g) { return node(g).input_size() == 1 && node(g).input(0) == "w"; }));
  CHECK(is_made([&](const auto& g) { return node(g).input_size() == 2 && node(g).input(0) == "w"; }));
  CHECK(is_made([&](const auto& g) { return weights(g).dims_size() == 2 && weights(g).dims(0) < 0; }));
  CHECK(is_made([&](const auto& g) { return weights(g).dims_size() == 3; }));
  CHECK(is_made([&](const auto& g) { return weights(g).dims_size() == 2 && weights(g).raw_data().size() < 24; }));
  CHECK(is_made([](const auto& g) { return g.node_size() == 0 && g.initializer_size() == 1; }));
  CHECK(is_made([](const auto& g) { return g.node_size() == 2 && g.node(1).op_type() == "Gemm"; }));
}

TEST_CASE("fuzz: floats, enums, booleans and alternatives of a oneof change too", "[fuzz]") {
  proto::MetaGraph metagraph;
  metagraph.mutable_loss()->set_huber_delta(1);
  proto::WorkerEnvelope envelope;
  envelope.mutable_message()->mutable_left();
  std::set<int> kinds;
  std::set<bool> last;
  size_t infinite = 0;
  std::set<int> messages;

  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Dice dice(seed);
    proto::MetaGraph changed = metagraph;
    for (int i = 0; i < 4; ++i) ChangeMessage(changed, {}, dice);
    kinds.insert(changed.loss().kind());
    last.insert(changed.loss().classes_last());
    infinite += std::isinf(changed.loss().huber_delta());
    proto::WorkerEnvelope other = envelope;
    ChangeMessage(other, {}, dice);
    messages.insert(other.message().kind_case());
  }

  CHECK(kinds.size() > 7);  // those that are known, and others
  CHECK(last.size() == 2);
  CHECK(infinite > 0);
  CHECK(messages.size() > 10);
}

TEST_CASE("fuzz: a crossed message has a part of the other one", "[fuzz]") {
  onnx::ModelProto other;
  other.mutable_graph()->add_node()->set_op_type("Relu");
  bool replaced = false, added = false;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    onnx::ModelProto model = Model();
    Dice dice(seed);
    if (!CrossMessages(model, other, dice)) continue;
    CHECK_FALSE(MessageDifferencer::Equals(model, Model()));
    if (model.graph().node_size() > 0) replaced |= model.graph().node(0).op_type() == "Relu";
    added |= model.graph().node_size() == 2 && model.graph().node(1).op_type() == "Relu";
  }
  CHECK(replaced);
  CHECK(added);

  onnx::ModelProto model = Model();
  Dice dice(1);
  CHECK_FALSE(CrossMessages(model, proto::MetaGraph(), dice));
}

TEST_CASE("fuzz: an input that is no message is left to changes of bytes", "[fuzz]") {
  const BinaryMutator<onnx::ModelProto> mutator;
  const std::string model = Model().SerializeAsString();
  Dice dice(1);
  CHECK(mutator.Change(model, dice).has_value());
  CHECK_FALSE(mutator.Change("no model", dice).has_value());
  CHECK_FALSE(mutator.Cross(model, "no model", dice).has_value());
}

}  // namespace
}  // namespace lockstep::fuzz
