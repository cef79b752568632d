// The promise for images that are changed at random: a folder of files, mirrored and moved, whoever is killed.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

std::string FolderOfImages() { return std::filesystem::absolute("tests/conformance/pytorch/images/folder").string(); }

std::vector<std::string> ImageSettings() {
  const std::string files = absl::StrCat("{inputs: ", FolderOfImages(), ", image_size: [28, 28], image_gray: true}");
  return {"data.train=null",
          absl::StrCat("data.train=", files),
          absl::StrCat("data.eval=", files),
          "data.augment={flip: true, crop_padding: 3}",
          "model.builtin.classes=4",
          "train.global_batch_size=8",
          "train.logical_shards=4",
          "train.optimizer.lr=0.01",
          "train.duration=1500steps",
          "checkpoint.every=200steps"};
}

}  // namespace

TEST_CASE("promise: images that change at random are the same for one worker and for those that are killed", "[e2e]") {
  LocalJob undisturbed("undisturbed.images", kJob, ImageSettings());
  undisturbed.RunUndisturbed(1);
  LocalJob plain("plain.images", kJob, ImageSettings());
  plain.Override("data.augment=null");
  plain.RunUndisturbed(1);
  CHECK(plain.Digest() != undisturbed.Digest());

  LocalJob job("killed.images", kJob, ImageSettings());
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStep(20);
  job.Kill("worker-1");
  job.StartWorker(1);
  job.WaitForStep(60);
  job.KillEverything();
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.WaitForEnd("worker-1") == Ended{});
  CHECK(job.Digest() == undisturbed.Digest());

  // Rows of a prediction are in the order of the files, with folders of classes or of nothing.
  const Result predicted = Run({"predict", undisturbed.directory(), "--inputs", absl::StrCat(FolderOfImages(), "/c9"),
                                "-o", TempPath("images.npy")});
  INFO(predicted.output);
  CHECK(predicted.code == kExitDone);
  const Result details = Run({"eval", undisturbed.directory(), "--details"});
  CHECK_THAT(details.output, Catch::Contains("  a_b\n") && Catch::Contains("  c9\n"));
  const Result json = Run({"eval", undisturbed.directory(), "--details", "--json"});
  CHECK_THAT(json.output, Catch::Contains("{\"name\": \"a_b\", \"labels\": 3"));
}

TEST_CASE("images: classes that are numbered otherwise in evaluations are an error, with both lists", "[e2e]") {
  const std::string one = TempPath("one_class");
  std::filesystem::create_directories(one);
  std::filesystem::copy(absl::StrCat(FolderOfImages(), "/c9"), absl::StrCat(one, "/c9"));
  std::vector<std::string> settings = ImageSettings();
  settings.push_back(absl::StrCat("data.eval.inputs=", one));

  const Result result = Run({"check", kJob}, settings);

  CHECK(result.code == kExitBadData);
  CHECK_THAT(result.output, Catch::Contains("has the classes c9, data.train has B, a_b, c10, c9"));
}

TEST_CASE("images: data that are no images are refused a change, before anything starts", "[e2e]") {
  const Result flat =
      Run({"check", kJob}, {kInputs, kLabels, "model.builtin={name: mlp, classes: 10}", "data.augment={flip: true}"});
  const Result large = Run({"check", kJob}, {kInputs, kLabels, "data.augment={crop_padding: 28}"});

  CHECK(flat.code == kExitBadJob);
  CHECK_THAT(flat.output, Catch::Contains("data.augment: changes images"));
  CHECK(large.code == kExitBadJob);
  CHECK_THAT(large.output, Catch::Contains("out of sight"));
}

}  // namespace lockstep::e2e
