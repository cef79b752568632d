// The average of the weights on its way home: into checkpoints, into exported files, into evaluations.
#include <nlohmann/json.hpp>
#include <set>

#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

constexpr char kLast[] = "/checkpoints/step-000000020/";

struct Trained {
  std::string directory;
  std::string evaluation;  // what the chief said of the last step
};

Trained Train(const std::string& name, const Words& more) {
  Words sets = Settings();
  sets.insert(sets.end(), {"data.eval.inputs=/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz",
                           "data.eval.labels=/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz"});
  sets.insert(sets.end(), more.begin(), more.end());
  Trained trained{TempPath(name), ""};
  const Result result = Run({"run", kJob, "--workers", "2", "--dir", trained.directory}, sets);
  INFO(result.output);
  REQUIRE(result.code == kExitDone);
  const size_t said = result.output.find("evaluated step 20");
  REQUIRE(said != std::string::npos);
  trained.evaluation = result.output.substr(said, result.output.find('\n', said) - said);
  return trained;
}

std::set<std::string> NamesOf(const std::string& path) {
  const std::string bytes = Read(path);
  REQUIRE(bytes.size() > 8);
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  std::set<std::string> names;
  const auto header = nlohmann::json::parse(bytes.substr(8, size));
  for (const auto& [name, entry] : header.items()) names.insert(name);
  return names;
}

// The model of a checkpoint, whatever its number of shards: names and bytes of every file.
std::string Model(const std::string& directory) {
  std::string all;
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".safetensors") files.insert(entry.path().string());
  }
  for (const std::string& file : files) all += Read(file);
  return all;
}

TEST_CASE("ema: the average comes home under the model's names, and evaluations are of it", "[e2e]") {
  const Trained averaged = Train("averaged", {"train.ema.decay=0.9"});
  const Trained plain = Train("plain", {"train.ema.decay=0.9", "eval.weights=model"});

  std::set<std::string> model, ema;
  for (const auto& entry : fs::directory_iterator(averaged.directory + kLast)) {
    if (entry.path().extension() == ".safetensors") model.merge(NamesOf(entry.path().string()));
  }
  for (const auto& entry : fs::directory_iterator(averaged.directory + kLast + "ema")) {
    if (entry.path().extension() == ".safetensors") ema.merge(NamesOf(entry.path().string()));
  }
  CHECK(model.count("conv1.weight") == 1);
  CHECK(model == ema);
  CHECK(Model(averaged.directory + kLast) != Model(averaged.directory + kLast + "ema"));
  CHECK(Run({"checkpoint", "verify", averaged.directory}).code == kExitDone);
  // What is evaluated does not reach the state.
  CHECK(Digest(averaged.directory) == Digest(plain.directory));
  CHECK(averaged.evaluation != plain.evaluation);

  const std::string trained_file = TempPath("trained.onnx"), ema_file = TempPath("ema.onnx");
  CHECK(Run({"model", "export", averaged.directory, "-o", trained_file}).code == kExitDone);
  const Result exported = Run({"model", "export", averaged.directory, "-o", ema_file, "--ema"});
  INFO(exported.output);
  CHECK(exported.code == kExitDone);
  CHECK(Run({"model", "ops", ema_file}).code == kExitDone);
  CHECK(Read(trained_file) != Read(ema_file));
}

TEST_CASE("ema: a checkpoint's weights, or their average, come home in one file", "[e2e]") {
  const Trained trained = Train("one_file", {"train.ema.decay=0.9"});
  const std::string weights = TempPath("weights.safetensors"), average = TempPath("average.safetensors");

  const Result exported = Run({"checkpoint", "export", trained.directory, "-o", weights});
  INFO(exported.output);
  REQUIRE(exported.code == kExitDone);
  REQUIRE(Run({"checkpoint", "export", trained.directory, "-o", average, "--ema"}).code == kExitDone);

  std::set<std::string> shards;
  for (const auto& entry : fs::directory_iterator(trained.directory + kLast)) {
    if (entry.path().extension() == ".safetensors") shards.merge(NamesOf(entry.path().string()));
  }
  CHECK(NamesOf(weights) == shards);
  CHECK(NamesOf(average) == shards);
  CHECK(Read(weights) != Read(average));
  const Result refused = Run({"checkpoint", "export", trained.directory, "-o", "/nowhere/x.safetensors"});
  CHECK(refused.code == kExitStorage);
  CHECK_THAT(refused.output, Contains("/nowhere"));
  const Result missing = Run({"checkpoint", "export", trained.directory, "--step", "3", "-o", weights});
  CHECK(missing.code == kExitStorage);
  CHECK_THAT(missing.output, Contains("step 3"));
}

TEST_CASE("ema: an average that has not begun to lag is the model, in files and evaluations", "[e2e]") {
  const Trained late = Train("late", {"train.ema={decay: 0.9, start: 20steps}"});
  const Trained none = Train("none", {});

  CHECK(Model(late.directory + kLast) == Model(late.directory + kLast + "ema"));
  CHECK(Model(late.directory + kLast + "ema").size() == Model(none.directory + kLast).size());
  CHECK(late.evaluation == none.evaluation);
  CHECK_FALSE(fs::exists(none.directory + kLast + "ema"));
  const Result refused = Run({"model", "export", none.directory, "-o", TempPath("no.onnx"), "--ema"});
  CHECK(refused.code == kExitBadJob);
  CHECK_THAT(refused.output, Contains("train.ema") && Contains("leave out --ema"));
}

}  // namespace
}  // namespace lockstep::e2e
