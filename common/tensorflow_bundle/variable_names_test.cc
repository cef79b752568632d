#include "common/tensorflow_bundle/variable_names.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "common/tensorflow_bundle/object_key.h"
#include "common/tensorflow_bundle/varint.h"
#include "protos/tensorflow_bundle.pb.h"

namespace lockstep {
namespace {

using Catch::Contains;
using NameList = std::vector<std::string>;

// A graph and the index of its variables.
class Objects {
 public:
  Objects() { graph_.add_nodes(); }
  int Child(int parent, const std::string& name) {
    const int node = graph_.nodes_size();
    graph_.add_nodes();
    Edge(parent, name, node);
    return node;
  }
  void Edge(int parent, const std::string& name, int node) {
    auto* const child = graph_.mutable_nodes(parent)->add_children();
    child->set_node_id(node);
    child->set_local_name(name);
  }
  int Variable(int parent, const std::string& name, const std::string& key) {
    const int node = Child(parent, name);
    Value(node, key);
    return node;
  }
  void Value(int node, const std::string& key) {
    auto* const attribute = graph_.mutable_nodes(node)->add_attributes();
    attribute->set_name("VARIABLE_VALUE");
    attribute->set_checkpoint_key(key);
    keys_.insert(key);
  }
  void Slot(int optimizer, int of, const std::string& key) {
    const int node = graph_.nodes_size();
    graph_.add_nodes();
    Value(node, key);
    auto* const slot = graph_.mutable_nodes(optimizer)->add_slot_variables();
    slot->set_original_variable_node_id(of);
    slot->set_slot_variable_node_id(node);
  }
  BundleIndex Index() const {
    BundleIndex index;
    for (const std::string& key : keys_) index.entries.push_back({.key = key, .type = 1});
    return index;
  }
  absl::StatusOr<VariableNames> Names() const { return VariableNames::OfObjects(Index(), graph_.SerializeAsString()); }

 private:
  tf::TrackableObjectGraph graph_;
  std::set<std::string> keys_;
};

NameList NamesOf(const VariableNames& names) {
  NameList all;
  for (const VariableNames::Variable& variable : names.variables()) all.push_back(variable.name);
  std::sort(all.begin(), all.end());
  return all;
}

std::string Key(const ObjectPath& path) { return VariableKey(path); }

TEST_CASE("object key: names with dots and slashes come back", "[tensorflow]") {
  CHECK(VariableKey({"model", "a/b.c", "0"}) == "model/a.Sb..c/0/.ATTRIBUTES/VARIABLE_VALUE");
  for (const ObjectPath& path : std::vector<ObjectPath>{{"a"}, {"", "b"}, {"..S", "/.", "S"}, {"a.", ".b"}, {""}}) {
    CHECK(PathOfKey(VariableKey(path)) == path);
  }
  CHECK(SlotKey({"model", "w"}, {"optimizer"}, "m") ==
        "model/w/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE");
  CHECK_FALSE(PathOfKey(SlotKey({"w"}, {"o"}, "m")).has_value());
  CHECK_FALSE(PathOfKey("w/.ATTRIBUTES/OBJECT_CONFIG_JSON").has_value());
  CHECK_FALSE(PathOfKey("w").has_value());
}

TEST_CASE("variable names: objects by their way from the model, without what is no weight", "[tensorflow]") {
  Objects objects;
  const int model = objects.Child(0, "model"), features = objects.Child(model, "features");
  const int optimizer = objects.Child(0, "optimizer");
  const int weight =
      objects.Variable(objects.Child(features, "0"), "weight", Key({"model", "features", "0", "weight"}));
  objects.Variable(model, "odd/name", Key({"model", "odd/name"}));
  objects.Variable(optimizer, "iter", Key({"optimizer", "iter"}));
  objects.Variable(0, "save_counter", Key({"save_counter"}));
  objects.Slot(optimizer, weight, "some slot");

  const auto names = objects.Names();

  REQUIRE(names.status() == absl::OkStatus());
  CHECK(NamesOf(*names) == NameList{"features.0.weight", "odd/name"});
  CHECK(names->of_optimizers() == 2);
  const BundleIndex index = objects.Index();
  for (const auto& variable : names->variables()) CHECK_THAT(index.entries[variable.entry].key, Contains("model/"));
}

TEST_CASE("variable names: an optimizer within the model, and one under any name that has slots", "[tensorflow]") {
  Objects objects;
  const int model = objects.Child(0, "model");
  const int weight = objects.Variable(model, "w", Key({"model", "w"}));
  objects.Variable(objects.Child(model, "optimizer"), "rate", Key({"model", "optimizer", "rate"}));
  const int other = objects.Child(model, "adam");
  objects.Variable(other, "power", Key({"model", "adam", "power"}));
  objects.Slot(other, weight, "slot");
  CHECK(NamesOf(*objects.Names()) == NameList{"w"});

  Objects of_model;  // a part of a model may be called so
  const int part = of_model.Child(of_model.Child(of_model.Child(0, "model"), "block"), "optimizer");
  of_model.Variable(part, "w", Key({"model", "block", "optimizer", "w"}));
  CHECK(NamesOf(*of_model.Names()) == NameList{"block.optimizer.w"});
}

TEST_CASE("variable names: a weight whose key leads through an optimizer has its name in the model", "[tensorflow]") {
  Objects objects;
  const int weight = objects.Variable(objects.Child(0, "optimizer"), "0", Key({"optimizer", "0"}));
  objects.Edge(objects.Child(objects.Child(0, "model"), "dense"), "kernel", weight);
  CHECK(NamesOf(*objects.Names()) == NameList{"dense.kernel"});
}

TEST_CASE("variable names: several ways to a variable, and circles", "[tensorflow]") {
  Objects objects;
  const int model = objects.Child(0, "model"), part = objects.Child(model, "part");
  const int weight = objects.Variable(part, "weight", Key({"model", "part", "weight"}));
  objects.Edge(model, "tied", weight);
  objects.Edge(part, "parent", model);
  objects.Edge(model, "a.b", part);

  const auto names = objects.Names();

  REQUIRE(names.status() == absl::OkStatus());
  CHECK(NamesOf(*names) == NameList{"part.weight"});  // as its key says
  for (const char* name : {"part.weight", "tied", "a.b.weight", "part.parent.tied", "model.tied"}) {
    CHECK(names->FindSecondName(name) == size_t{0});
  }
  for (const char* name : {"part", "weight", "a.weight", "", "tied.", "part.parent"}) {
    CHECK_FALSE(names->FindSecondName(name).has_value());
  }
}

TEST_CASE("variable names: \"model\" stays where names would be equal without it", "[tensorflow]") {
  Objects objects;
  objects.Variable(objects.Child(0, "model"), "w", Key({"model", "w"}));
  objects.Variable(0, "v", Key({"v"}));
  CHECK(NamesOf(*objects.Names()) == NameList{"v", "w"});
  objects.Variable(0, "w", Key({"w"}));
  CHECK(NamesOf(*objects.Names()) == NameList{"model.w", "v", "w"});

  Objects equal;
  const int part = equal.Child(0, "a");
  equal.Variable(part, "b", Key({"a", "b"}));
  equal.Variable(0, "a.b", Key({"a.b"}));
  CHECK_THAT(std::string(equal.Names().status().message()), Contains("both come to the name a.b"));
}

TEST_CASE("variable names: a graph that does not fit is damage", "[tensorflow]") {
  Objects objects;
  objects.Edge(0, "x", 7);
  CHECK(absl::IsDataLoss(objects.Names().status()));
  Objects other;
  other.Variable(0, "w", Key({"w"}));
  CHECK(absl::IsDataLoss(VariableNames::OfObjects({}, tf::TrackableObjectGraph().SerializeAsString()).status()));
  CHECK(absl::IsDataLoss(VariableNames::OfObjects({}, "\x0f").status()));
  tf::TrackableObjectGraph graph;
  auto* const attribute = graph.add_nodes()->add_attributes();
  attribute->set_name("VARIABLE_VALUE");
  attribute->set_checkpoint_key("gone");
  const absl::Status lacks = VariableNames::OfObjects({}, graph.SerializeAsString()).status();
  CHECK(absl::IsDataLoss(lacks));
  CHECK_THAT(std::string(lacks.message()), Contains("gone"));
}

TEST_CASE("variable names: long ways are refused before they fill the memory", "[tensorflow]") {
  Objects objects;
  int node = 0;
  for (int i = 0; i < 50; ++i) node = objects.Child(node, std::string(100, 'n'));
  objects.Variable(node, "w", "key");
  CHECK(absl::IsInvalidArgument(objects.Names().status()));
}

TEST_CASE("variable names: a checkpoint that goes by names", "[tensorflow]") {
  BundleIndex index;
  const auto add = [&](const std::string& key, Shape shape) {
    index.entries.push_back({.key = key, .type = 1, .shape = std::move(shape)});
  };
  add(std::string("\0slice", 6), {1});
  add("Adam", {2});
  add("beta1_power", {});
  add("dense/kernel", {2, 3});
  add("dense/kernel/Adam", {2, 3});
  add("dense/kernel/Adam_1", {2, 3});
  add("dense/kernel/Momentum", {3});  // of another shape: no slot
  add("global_step", {});
  add("lone/Adam", {2});
  add("model/bias", {2});

  const auto names = VariableNames::OfNames(index);

  REQUIRE(names.status() == absl::OkStatus());
  CHECK(NamesOf(*names) == NameList{"Adam", "bias", "dense.kernel", "dense.kernel.Momentum", "lone.Adam"});
  CHECK(names->of_optimizers() == 4);
  CHECK_FALSE(names->FindSecondName("dense.kernel").has_value());
}

std::string Repeated(absl::string_view piece, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) absl::StrAppend(&all, piece);
  return all;
}

// A field of `protos/tensorflow_bundle.proto` with number 1 and these bytes.
std::string Field1(const std::string& bytes) {
  std::string field = "\n";
  AppendVarint(bytes.size(), field);
  return field + bytes;
}

TEST_CASE("variable names: a graph of too many nodes or edges is refused", "[tensorflow]") {
  const absl::string_view empty("\n\0", 2);
  const auto refusal = [](const std::string& graph) {
    const absl::Status status = VariableNames::OfObjects({}, graph).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  CHECK(VariableNames::OfObjects({}, Repeated(empty, 1000)).ok());
  CHECK_THAT(refusal(Repeated(empty, 1'000'001)), Contains("more than 1000000 objects"));
  CHECK_THAT(refusal(Field1(Repeated(empty, 1'000'001))), Contains("more than 1000000 edges"));
  CHECK_THAT(refusal(Field1(Repeated(empty, 600'000)) + Field1(Repeated(empty, 600'000))), Contains("edges"));
}

TEST_CASE("variable names: paths that keys and names give are as short as those of objects", "[tensorflow]") {
  const ObjectPath path(5000, "");
  Objects objects;
  objects.Edge(0, "", 0);
  objects.Variable(0, "w", Key(path));
  CHECK(absl::IsInvalidArgument(objects.Names().status()));

  BundleIndex index;
  index.entries.push_back({.key = std::string(5000, '/'), .type = 1});
  CHECK(absl::IsInvalidArgument(VariableNames::OfNames(index).status()));
  index.entries.clear();
  for (int i = 0; i < 5000; ++i) {
    index.entries.push_back({.key = absl::StrCat(std::string(4000, 'k'), 10000 + i), .type = 1});
  }
  CHECK_THAT(std::string(VariableNames::OfNames(index).status().message()), Contains("too long"));
}

}  // namespace
}  // namespace lockstep
