// The promise for images that are changed at random: a folder of files, mirrored and moved, whoever is killed.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

std::string FolderOfImages() { return std::filesystem::absolute("tests/conformance/pytorch/images/folder").string(); }

std::vector<std::string> ImageSettings(const std::string& folder = FolderOfImages()) {
  const std::string files = absl::StrCat("{inputs: ", folder, ", image_size: [28, 28], image_gray: true}");
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

std::vector<std::string> ShortSettings(const std::string& folder = FolderOfImages()) {
  std::vector<std::string> settings = ImageSettings(folder);
  settings.push_back("train.duration=600steps");
  return settings;
}

std::vector<std::string> MixedSettings(const std::string& rule) {
  std::vector<std::string> settings = ShortSettings();
  settings.push_back(absl::StrCat("data.augment={flip: true, crop_padding: 3, ", rule, "}"));
  return settings;
}

// One worker is killed on the way, then all processes.
void RunWithKills(LocalJob& job, int killed) {
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStep(20);
  job.Kill(absl::StrCat("worker-", killed));
  job.StartWorker(killed);
  job.WaitForStep(60);
  job.KillEverything();
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  for (const char* const process : {"chief", "worker-0", "worker-1"}) CHECK(job.WaitForEnd(process) == Ended{});
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
  RunWithKills(job, 1);
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

TEST_CASE("promise: images that stay in their files give the same weights, cut at random or not", "[e2e]") {
  LocalJob held("held.images", kJob, ShortSettings());
  held.RunUndisturbed(1);
  LocalJob left("left.images", kJob, ShortSettings());
  left.Override("data.train.image_decode=step");
  left.Override("data.eval.image_decode=step");
  left.RunUndisturbed(2);
  CHECK(left.Digest() == held.Digest());

  const std::vector<std::string> crops = {"data.train.image_decode=step", "data.augment.resized_crop=[0.3, 1]"};
  LocalJob undisturbed("undisturbed.crops", kJob, ShortSettings());
  for (const std::string& setting : crops) undisturbed.Override(setting);
  undisturbed.RunUndisturbed(1);
  CHECK(undisturbed.Digest() != held.Digest());
  LocalJob job("killed.crops", kJob, ShortSettings());
  for (const std::string& setting : crops) job.Override(setting);
  RunWithKills(job, 0);
  CHECK(job.Digest() == undisturbed.Digest());
}

TEST_CASE("promise: images that are mixed are the same for any number of workers, and whoever is killed", "[e2e]") {
  const std::string rule = "mixup: 0.4, cutmix: 1";
  LocalJob plain("plain.mixing", kJob, ShortSettings());
  LocalJob mixup("mixup", kJob, MixedSettings("mixup: 0.4")), both("both", kJob, MixedSettings(rule));
  for (LocalJob* const job : {&plain, &mixup, &both}) job->RunUndisturbed(1);
  CHECK(mixup.Digest() != plain.Digest());
  CHECK(both.Digest() != mixup.Digest());

  LocalJob two("two.mixing", kJob, MixedSettings(rule)), three("three.mixing", kJob, MixedSettings(rule));
  two.Override("data.train.image_decode=step");
  two.RunUndisturbed(2);
  three.RunUndisturbed(3);
  LocalJob killed("killed.mixing", kJob, MixedSettings(rule));
  RunWithKills(killed, 1);
  for (LocalJob* const job : {&two, &three, &killed}) CHECK(job->Digest() == both.Digest());

  // What comes of it is a model as any other.
  const std::string onnx = TempPath("mixed.onnx");
  for (const Words& words : {Words{"eval", both.directory()}, Words{"model", "export", both.directory(), "-o", onnx},
                             Words{"metagraph", "show", both.directory()}}) {
    const Result result = Run(words);
    INFO(result.output);
    CHECK(result.code == kExitDone);
    CHECK(absl::StrContains(result.output, "mixes_labels") == (words[0] == "metagraph"));
  }
}

TEST_CASE("images: a job that mixes can be looked at beforehand", "[e2e]") {
  const Words settings = MixedSettings("mixup: 0.4");
  const std::string trace = TempPath("mixing.trace.json");
  for (const Words& words : {Words{"check", kJob}, Words{"profile", kJob, "--steps", "2", "-o", trace},
                             Words{"profile", kJob, "--model-of", "h100"}}) {
    const Result result = Run(words, settings);
    INFO(result.output);
    CHECK(result.code == kExitDone);
  }
  CHECK_THAT(Read(trace), Catch::Contains("lockstep.loss.partner.each"));
}

TEST_CASE("images: a file that changes ends the worker that reads it, and costs no step once it is back", "[e2e]") {
  const std::string folder = TempPath("changing_images");
  std::filesystem::copy(FolderOfImages(), folder, std::filesystem::copy_options::recursive);
  const std::string file = absl::StrCat(folder, "/a_b/small.png");
  LocalJob undisturbed("undisturbed.files", kJob, ShortSettings(folder));
  undisturbed.Override("data.train.image_decode=step");
  undisturbed.RunUndisturbed(1);

  LocalJob job("changed.files", kJob, ShortSettings(folder));
  job.Override("data.train.image_decode=step");
  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStep(100);
  std::ofstream(file, std::ios::binary | std::ios::app) << "more";
  CHECK(job.WaitForEnd("worker-0") == Ended{.code = kExitBadData});
  CHECK_THAT(job.LogOf("worker-0"),
             Catch::Contains(absl::StrCat(file, ": is not the file that it was when the data were opened")));
  job.StartWorker(0);
  CHECK(job.WaitForEnd("worker-0") == Ended{.code = kExitBadData});
  CHECK_THAT(job.LogOf("worker-0"), Catch::Contains("are not the data of this job"));

  std::filesystem::copy(absl::StrCat(FolderOfImages(), "/a_b/small.png"), file,
                        std::filesystem::copy_options::overwrite_existing);
  job.StartWorker(0);
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.Digest() == undisturbed.Digest());
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

TEST_CASE("images: classes are written down, and a model is evaluated on no others", "[e2e]") {
  const std::string folder = TempPath("moved_images");
  std::filesystem::copy(FolderOfImages(), folder, std::filesystem::copy_options::recursive);
  LocalJob job("classes.images", kJob, ImageSettings(folder));
  job.Override("train.duration=20steps");
  job.RunUndisturbed(1);
  const std::string other = TempPath("other_images");
  std::filesystem::rename(folder, other);  // the folders of the training set are gone
  const Result same = Run({"eval", job.directory(), "--inputs", other});
  INFO(same.output);
  CHECK(same.code == kExitDone);
  CHECK_THAT(same.output, !Catch::Contains("assumed"));
  std::filesystem::rename(absl::StrCat(other, "/c9"), absl::StrCat(other, "/c8"));

  const Result differs = Run({"eval", job.directory(), "--inputs", other});

  CHECK(differs.code == kExitBadData);
  CHECK_THAT(differs.output,
             Catch::Contains("has the classes B, a_b, c10, c8, the model was trained on B, a_b, c10, c9"));
}

TEST_CASE("images: settings that need each other are asked for together", "[e2e]") {
  const std::vector<std::string> settings = ImageSettings();
  const auto refused = [&](const std::vector<std::string>& more, const std::string& part) {
    std::vector<std::string> all = settings;
    all.insert(all.end(), more.begin(), more.end());
    const Result result = Run({"check", kJob}, all);
    CHECK(result.code == kExitBadJob);
    CHECK_THAT(result.output, Catch::Contains(part));
  };
  refused({"data.augment.resized_crop=[0.08, 1]"}, "data.train.image_decode has to be `step`");
  refused({"data.train.image_decode=step", "data.augment.resized_crop=[0.5]"}, "the least and the largest share");
  refused({"data.train.image_decode=step", "data.augment.resized_crop=[1, 0.5]"}, "the least and the largest share");
  refused({"data.train.image_decode=step", "data.augment.resized_crop=[0, 0.5]"}, "data.augment.resized_crop");
  refused({"data.train.image_decode=step", "data.train.image_size=null"}, "`step` needs image_size");
  refused({"data.augment={mixup: 0.4}", "train.logical_shards=8"}, "mixes the samples of a pass");
  refused({"data.augment={cutmix: 1}", "model.loss=mse", "eval.metric=loss"}, "mixes labels of classes");
}

}  // namespace lockstep::e2e
