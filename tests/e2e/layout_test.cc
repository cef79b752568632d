// Images that a file holds in another layout than the model takes: refused with the setting that helps, and trained to
// the bits of a file that is stored as the model takes them.
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;

constexpr int kSamples = 768;
constexpr int kSide = 16;
constexpr int kChannels = 3;

// Which class an image is of: the colour of its brighter half.
int ClassOf(int sample) { return sample * 7 % 6; }

uint8_t Pixel(int sample, int c, int h, int w) {
  const uint32_t noise =
      (static_cast<uint32_t>(((sample * kChannels + c) * kSide + h) * kSide + w) * 2654435761u) >> 26;
  const int label = ClassOf(sample);
  const bool bright = c == label % 3 && (label < 3 ? h < kSide / 2 : w < kSide / 2);
  return static_cast<uint8_t>(noise + (bright ? 150 : 40));
}

std::string Npy(const std::vector<int>& shape, const std::string& data) {
  std::string header = absl::StrCat("{'descr': '|u1', 'fortran_order': False, 'shape': (", absl::StrJoin(shape, ", "),
                                    shape.size() == 1 ? ",), }\n" : "), }\n");
  return absl::StrCat(std::string("\x93NUMPY\1\0", 8), std::string(1, static_cast<char>(header.size())),
                      std::string(1, '\0'), header, data);
}

// Which dimension comes last.
enum class Last { kWidth, kChannels };

std::string Images(const std::string& name, Last last) {
  std::string data;
  for (int n = 0; n < kSamples; ++n) {
    for (int i = 0; i < kChannels * kSide * kSide; ++i) {
      const bool channels = last == Last::kChannels;
      const int c = channels ? i % kChannels : i / (kSide * kSide);
      const int at = channels ? i / kChannels : i % (kSide * kSide);
      data += static_cast<char>(Pixel(n, c, at / kSide, at % kSide));
    }
  }
  const std::string path = TempPath(name);
  Write(path, Npy(last == Last::kChannels ? std::vector{kSamples, kSide, kSide, kChannels}
                                          : std::vector{kSamples, kChannels, kSide, kSide},
                  data));
  return path;
}

std::string Job(const std::string& images) {
  std::string labels;
  for (int n = 0; n < kSamples; ++n) labels += static_cast<char>(ClassOf(n));
  Write(TempPath("labels.npy"), Npy({kSamples}, labels));
  const std::string files = absl::StrCat("{inputs: ", images, ", labels: ", TempPath("labels.npy"), "}");
  const std::string path = images + ".yaml";
  Write(path,
        absl::StrCat("name: layout\nmodel: {builtin: {name: lenet, classes: 6}}\ndata: {train: ", files,
                     ", eval: ", files, ", normalize: {divide_by: 255, mean: 0.4, std: 0.3}}\n",
                     "train: {seed: 1, duration: 4ep, global_batch_size: 32, logical_shards: 2, optimizer: {name: "
                     "sgd, lr: 0.02, momentum: 0.9}}\n"));
  return path;
}

// The line of the last evaluation that a run reports.
std::string LastEvaluation(const std::string& output) {
  const size_t at = output.rfind("evaluated step");
  REQUIRE(at != std::string::npos);
  return output.substr(at, output.find('\n', at) - at);
}

double AccuracyIn(const std::string& line) {
  const size_t at = line.find("accuracy ");
  REQUIRE(at != std::string::npos);
  return std::stod(line.substr(at + 9));
}

TEST_CASE("layout: channels last train to the bits of channels first", "[e2e]") {
  const std::string first = Job(Images("first.npy", Last::kWidth));
  const std::string last = Job(Images("last.npy", Last::kChannels));
  const std::string directories[] = {TempPath("first"), TempPath("last")};

  const Result refused = Run({"check", last});
  const Result unscaled = Run({"check", first}, {"data.normalize=null"});
  const Result stored = Run({"run", first, "--workers", "1", "--dir", directories[0]});
  const Result turned = Run({"run", last, "--workers", "2", "--dir", directories[1]}, {"data.transpose=[2, 0, 1]"});

  CHECK(refused.code == kExitBadJob);
  CHECK_THAT(refused.output, Contains("[16, 16, 3]") && Contains("data.transpose: [2, 0, 1]"));
  CHECK(unscaled.code == kExitDone);
  CHECK_THAT(unscaled.output, Contains("warn") && Contains("set data.normalize: {divide_by: 255}"));
  INFO(stored.output << turned.output);
  REQUIRE(stored.code == kExitDone);
  REQUIRE(turned.code == kExitDone);
  CHECK(Digest(directories[0]) == Digest(directories[1]));
  CHECK(LastEvaluation(turned.output) == LastEvaluation(stored.output));
  CHECK(AccuracyIn(LastEvaluation(turned.output)) > 0.7);
}

TEST_CASE("layout: an imported model refuses another layout, and takes it with the setting", "[e2e]") {
  const std::string model = TempPath("layout.onnx");
  REQUIRE(Run({"model", "new", "lenet", "--seed", "1", "-o", model}, {"input=[3, 16, 16]"}).code == kExitDone);
  const Words imported = {"model.builtin=null", "model.onnx=" + model};
  const std::string last = Job(Images("imported.npy", Last::kChannels));
  Words turned = imported;
  turned.push_back("data.transpose=[2, 0, 1]");

  const Result refused = Run({"check", last}, imported);
  const Result accepted = Run({"check", last}, turned);

  CHECK(refused.code == kExitBadData);
  CHECK_THAT(refused.output, Contains("imported.npy: one sample of inputs has the shape [16, 16, 3]; the model takes "
                                      "[3, 16, 16]") &&
                                 Contains("set data.transpose: [2, 0, 1]"));
  INFO(accepted.output);
  CHECK(accepted.code == kExitDone);
}

}  // namespace
}  // namespace lockstep::e2e
