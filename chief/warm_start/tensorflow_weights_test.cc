#include "chief/warm_start/tensorflow_weights.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "chief/checkpoint/tensorflow_export.h"
#include "chief/checkpoint/tensorflow_test_state.h"
#include "chief/warm_start/open_weights.h"
#include "chief/warm_start/warm_start.h"
#include "common/object_store/fake_s3.h"
#include "common/object_store/test_http_server.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"
#include "common/storage/memory/memory_storage.h"
#include "common/tensorflow_bundle/bundle_writer.h"
#include "common/tensorflow_bundle/object_key.h"
#include "common/tensorflow_bundle/table.h"
#include "protos/tensorflow_bundle.pb.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

constexpr int64_t kStep = 7;

struct BundleFolder {
  explicit BundleFolder(const std::string& name)
      : path(absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name, ".", getpid())) {
    std::filesystem::remove_all(path);
    storage = LocalStorage::Create(path).value();
  }
  std::string path;
  std::unique_ptr<LocalStorage> storage;
};

// Writes the test state as TensorFlow has it.
void ExportTo(Storage& storage, const std::string& prefix) {
  MemoryStorage job;
  const MetaGraph metagraph = TensorflowTestGraph();
  const auto chief = SmallChief::Start(job).value();
  REQUIRE(chief->Save(TensorflowTestState(metagraph, kStep)).ok());
  const auto written = ExportTensorflow(OpenCheckpoint(job, std::nullopt).value(),
                                        PlanTensorflow(metagraph, kStep, {}).value(), storage, prefix);
  REQUIRE(written.status() == absl::OkStatus());
}

job::WarmStart FromBundle(const std::string& path) {
  job::WarmStart from;
  from.set_path(path);
  from.set_weights(job::WarmStart::WEIGHTS_MODEL);
  return from;
}

std::set<std::string> NamesOf(const WeightSource& source) {
  std::set<std::string> names;
  for (const TensorSpec& tensor : source.tensors()) names.insert(tensor.name);
  return names;
}

std::string RefusalOf(const job::WarmStart& from) {
  const absl::Status refused = OpenWeights(from).status();
  CHECK_FALSE(refused.ok());
  return std::string(refused.message());
}

// A job with the model of the test state begins from there; its weights are those, bit for bit.
void CheckBegins(const std::string& path) {
  const MetaGraph metagraph = TensorflowTestGraph();
  const StateLayout layout = MakeStateLayout(metagraph);
  const SmallState there = TensorflowTestState(metagraph, kStep);
  std::vector<Tensor> state;
  for (const StateTensor& tensor : layout.tensors) state.push_back(Tensor::Zeros(tensor.spec.dtype, tensor.spec.shape));

  const auto report = BeginFrom(FromBundle(path), layout, state);

  INFO(path);
  REQUIRE(report.status() == absl::OkStatus());
  CHECK(report->taken.size() == 6);  // both names of the tied weight, and no count of steps
  CHECK(report->missing.empty());
  CHECK(report->unused.empty());
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    const StateTensor& tensor = layout.tensors[i];
    if (tensor.group != StateGroup::kModel) continue;
    const std::string bytes(reinterpret_cast<const char*>(state[i].data()), static_cast<size_t>(state[i].byte_size()));
    INFO(tensor.spec.name);
    CHECK((bytes == there.bytes[i]) == (tensor.variable != kStepCounterName));
  }
}

TEST_CASE("tensorflow weights: a checkpoint by its prefix, its index or its folder", "[warm_start]") {
  BundleFolder folder("prefix");
  ExportTo(*folder.storage, "ck-7");
  CheckBegins(folder.path + "/ck-7");
  CheckBegins(folder.path + "/ck-7.index");
  CheckBegins(folder.path);
  CheckBegins(folder.path + "/");

  const auto source = OpenWeights(FromBundle(folder.path + "/ck-7"));
  REQUIRE(source.ok());
  CHECK(NamesOf(**source) == std::set<std::string>{"features.0.bias", "features.0.weight", "norm.num_batches_tracked",
                                                   "norm.running_mean", "places", "table"});
  CHECK_THAT((*source)->description(), Contains("ck-7") && Contains("7 variables of its optimizer are left out"));
}

TEST_CASE("tensorflow weights: a checkpoint in a bucket", "[warm_start]") {
  FakeS3 fake;
  TestHttpServer http([&fake](const TestHttpServer::Request& request) {
    HttpClientRequest sent;
    sent.method = request.method;
    sent.url = absl::StrCat("http://", request.headers.at("host"), request.target);
    sent.headers = request.headers;
    sent.body = request.body;
    return fake.Send(sent).value_or(HttpAnswer());
  });
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"AWS_ENDPOINT_URL", http.url()},
                                                        {"AWS_ACCESS_KEY_ID", fake.keys.access_key},
                                                        {"AWS_SECRET_ACCESS_KEY", fake.keys.secret_key},
                                                        {"AWS_REGION", fake.region},
                                                        {"AWS_EC2_METADATA_DISABLED", "true"},
                                                        {"AWS_CONFIG_FILE", "/dev/null"},
                                                        {"AWS_SHARED_CREDENTIALS_FILE", "/dev/null"}}) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  MemoryStorage files;
  ExportTo(files, "ck-7");
  for (const std::string name : {"ck-7.index", "ck-7.data-00000-of-00001", "checkpoint"}) {
    const std::string bytes = *ReadWholeFile(files, name, 1 << 20);
    REQUIRE(fake.objects().Put("trained/" + name, bytes, PutCondition::kNone).ok());
  }
  CheckBegins("s3://models/trained/ck-7");
  CheckBegins("s3://models/trained/ck-7.index");
  CheckBegins("s3://models/trained");
  CHECK_THAT(RefusalOf(FromBundle("s3://models/trained/ck-8")), Contains("holds no trained weights"));
}

TEST_CASE("tensorflow weights: a damaged tensor is refused when it is read", "[warm_start]") {
  BundleFolder folder("damaged");
  ExportTo(*folder.storage, "ck");
  const std::string name = "ck.data-00000-of-00001";
  std::string bytes = *ReadWholeFile(*folder.storage, name, 1 << 20);
  bytes[3] ^= 1;  // of the first tensor, a weight
  REQUIRE(ReplaceFile(*folder.storage, "scratch", name, bytes, Access::kShared).ok());
  const MetaGraph metagraph = TensorflowTestGraph();
  std::vector<Tensor> state;
  const StateLayout layout = MakeStateLayout(metagraph);
  for (const StateTensor& tensor : layout.tensors) state.push_back(Tensor::Zeros(tensor.spec.dtype, tensor.spec.shape));
  const absl::Status damaged = BeginFrom(FromBundle(folder.path + "/ck"), layout, state).status();
  CHECK(absl::IsDataLoss(damaged));
  CHECK_THAT(std::string(damaged.message()), Contains("features/0/weight") && Contains("checksum"));
  CHECK(WarmStartExitCode(damaged) == kExitBadData);
}

// A checkpoint that goes by names, with a type that no job has.
TEST_CASE("tensorflow weights: what a job cannot take is refused by name, unless it is not needed", "[warm_start]") {
  BundleFolder folder("types");
  const auto writer = BundleWriter::Begin(*folder.storage, "ck");
  const std::string four(4, '\1');
  const auto give = [&](const BundleWriter::TakeBytes& take) { return take(four); };
  REQUIRE((*writer)->Add({"dense/bias", DType::kF32, {1}}, give).ok());
  REQUIRE((*writer)->Add({"global_step", DType::kI32, {}}, give).ok());
  REQUIRE((*writer)->AddString("words", "a b c").ok());
  REQUIRE((*writer)->Finish().ok());

  job::WarmStart from = FromBundle(folder.path + "/ck");
  CHECK_THAT(RefusalOf(from), Contains("variable words") && Contains("type string") && Contains("allow_unused"));
  from.add_allow_unused("wor*");
  const auto source = OpenWeights(from);
  REQUIRE(source.status() == absl::OkStatus());
  CHECK(NamesOf(**source) == std::set<std::string>{"dense.bias"});
  std::string bytes(4, '\0');
  REQUIRE((*source)->Read(0, absl::MakeSpan(bytes)).ok());
  CHECK(bytes == four);
}

TEST_CASE("tensorflow weights: a partitioned variable is refused by name, unless it is not needed", "[warm_start]") {
  BundleFolder folder("partitioned");
  tf::BundleHeader header;
  header.set_num_shards(1);
  tf::BundleEntry entry;
  entry.set_dtype(ToTensorflowType(DType::kF32));
  entry.mutable_shape()->add_dim()->set_size(4);
  entry.add_slices();
  const std::string index =
      EncodeTable({{"", header.SerializeAsString()}, {"dense/kernel", entry.SerializeAsString()}});
  REQUIRE(WriteNewFile(*folder.storage, "ck.index", index, Access::kShared).ok());

  job::WarmStart from = FromBundle(folder.path + "/ck");
  CHECK_THAT(RefusalOf(from),
             Contains("variable dense.kernel") && Contains("partitioned") && Contains("save it whole"));
  from.add_allow_unused("dense.*");
  CHECK(OpenWeights(from).value()->tensors().empty());
}

TEST_CASE("tensorflow weights: a variable of use to no job does not shift those behind it", "[warm_start]") {
  BundleFolder folder("shift");
  const auto writer = BundleWriter::Begin(*folder.storage, "ck");
  tf::TrackableObjectGraph graph;
  graph.add_nodes();
  const auto variable = [&](const std::string& name) {
    auto* const child = graph.mutable_nodes(0)->add_children();
    child->set_node_id(graph.nodes_size());
    child->set_local_name(name);
    auto* const again = graph.mutable_nodes(0)->add_children();
    again->set_node_id(graph.nodes_size());
    again->set_local_name("second_" + name);
    auto* const attribute = graph.add_nodes()->add_attributes();
    attribute->set_name("VARIABLE_VALUE");
    attribute->set_checkpoint_key(VariableKey({name}));
  };
  for (const char* name : {"a", "b", "c"}) variable(name);
  const std::string of_a(4, 'a'), of_c(4, 'c');
  REQUIRE((*writer)->Add({VariableKey({"a"}), DType::kF32, {1}}, [&](const auto& take) { return take(of_a); }).ok());
  REQUIRE((*writer)->AddString(VariableKey({"b"}), "text").ok());
  REQUIRE((*writer)->Add({VariableKey({"c"}), DType::kF32, {1}}, [&](const auto& take) { return take(of_c); }).ok());
  REQUIRE((*writer)->AddString(kObjectGraphKey, graph.SerializeAsString()).ok());
  REQUIRE((*writer)->Finish().ok());

  job::WarmStart from = FromBundle(folder.path + "/ck");
  from.add_allow_unused("b");
  const auto source = OpenWeights(from).value();
  CHECK_FALSE(source->FindSecondName("second_b").has_value());
  std::string bytes(4, '\0');
  REQUIRE(source->Read(source->FindSecondName("second_c").value(), absl::MakeSpan(bytes)).ok());
  CHECK(bytes == of_c);
}

TEST_CASE("tensorflow weights: the file of a folder's newest checkpoint", "[warm_start]") {
  BundleFolder folder("newest");
  ExportTo(*folder.storage, "ck-1");
  const auto set = [&](const std::string& text) {
    REQUIRE(ReplaceFile(*folder.storage, "scratch", "checkpoint", text, Access::kShared).ok());
  };
  set("model_checkpoint_path: \"ck-1\"\nall_model_checkpoint_paths: \"ck-1\"\nlast_preserved_timestamp: 3.5\n");
  CheckBegins(folder.path);
  set("model_checkpoint_path: \"/somewhere/else/ck-1\"\n");  // a folder that moved
  CheckBegins(folder.path);
  set("model_checkpoint_path: \"ck-2\"\n");
  CHECK_THAT(RefusalOf(FromBundle(folder.path)), Contains("names the checkpoint ck-2") && Contains("is not there"));
  set("model_checkpoint_path: \"../ck-1\"\n");
  CHECK_THAT(RefusalOf(FromBundle(folder.path)), Contains(".."));
  set("nothing of the kind");
  CHECK_THAT(RefusalOf(FromBundle(folder.path)), Contains("names no checkpoint"));
}

TEST_CASE("tensorflow weights: an export into a job's directory does not hide the job's checkpoints", "[warm_start]") {
  BundleFolder folder("job");
  const auto chief = SmallChief::Start(*folder.storage).value();
  REQUIRE(chief->Save(TensorflowTestState(TensorflowTestGraph(), kStep)).ok());
  ExportTo(*folder.storage, "ck-7");
  REQUIRE(folder.storage->Exists("checkpoint").value());

  const auto source = OpenWeights(FromBundle(folder.path));

  REQUIRE(source.status() == absl::OkStatus());
  CHECK_THAT((*source)->description(), Contains(", state ") && !Contains("TensorFlow"));
  CheckBegins(folder.path + "/ck-7");
}

TEST_CASE("tensorflow weights: keys that go with a job's checkpoints are refused", "[warm_start]") {
  BundleFolder folder("keys");
  ExportTo(*folder.storage, "ck");
  job::WarmStart from = FromBundle(folder.path + "/ck");
  from.set_step(3);
  CHECK_THAT(RefusalOf(from), Contains("model.from.step"));
  from.clear_step();
  from.set_weights(job::WarmStart::WEIGHTS_EMA);
  CHECK_THAT(RefusalOf(from), Contains("model.from.weights"));
  CHECK_THAT(RefusalOf(FromBundle(folder.path + "/ck.data-00000-of-00001")),
             Contains("prefix of a TensorFlow checkpoint"));
  CHECK_THAT(RefusalOf(FromBundle(folder.path + "/no.index")), Contains("no.index"));
}

}  // namespace
}  // namespace lockstep::chief
