#include "common/job/sample_form.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/job/job.h"

namespace lockstep {
namespace {

using Catch::Contains;

constexpr char kJobOfImages[] =
    "name: small\n"
    "model: {onnx: m.onnx}\n"
    "data: {train: {inputs: x, labels: y}}\n"
    "train: {duration: 10ep, global_batch_size: 8, optimizer: {lr: 0.1}}\n";

constexpr char kTokenJob[] =
    "name: small\n"
    "model: {onnx: m.onnx}\n"
    "data: {train: {tokens: t.bin, sequence_length: 64}}\n"
    "train: {duration: 10ep, global_batch_size: 8, optimizer: {lr: 0.1}}\n";

absl::StatusOr<JobSpec> JobOfImages(const std::vector<std::string>& overrides) {
  return ParseJob(kJobOfImages, "/jobs/job.yaml", overrides);
}

std::string Refusal(const Shape& stored, const Shape& wanted, const SampleForm& form = {}) {
  const auto view = ViewSampleAs(form, stored, wanted);
  REQUIRE_FALSE(view.ok());
  return std::string(view.status().message());
}

TEST_CASE("sample form: equal shapes fit, dimensions of 1 aside", "[job]") {
  for (const auto& [stored, wanted] : {std::pair<Shape, Shape>{{28, 28}, {1, 28, 28}},
                                       {{28, 28, 1}, {1, 28, 28}},
                                       {{784}, {784}},
                                       {{1}, {}},
                                       {{3, 16, 16}, {3, 16, 16}}}) {
    const auto view = ViewSampleAs({}, stored, wanted);
    REQUIRE(view.ok());
    CHECK(view->delivered == wanted);
    CHECK(view->order.empty());
  }
}

TEST_CASE("sample form: other shapes of as many elements are refused, with the setting that makes them fit", "[job]") {
  CHECK_THAT(Refusal({16, 16, 3}, {3, 16, 16}),
             Contains("[16, 16, 3]; the model takes [3, 16, 16]") && Contains("set data.transpose: [2, 0, 1]"));
  CHECK_THAT(Refusal({3, 16, 16}, {16, 16, 3}), Contains("set data.transpose: [1, 2, 0]"));
  CHECK_THAT(Refusal({24, 32, 3}, {3, 32, 24}), Contains("set data.transpose: [2, 1, 0]"));
  CHECK_THAT(Refusal({100, 12}, {12, 100}), Contains("set data.transpose: [1, 0]"));
  CHECK_THAT(Refusal({768}, {3, 16, 16}), Contains("set data.reshape: [-1]") && Contains("data.reshape: [16, 16, 3]"));
  CHECK_THAT(Refusal({48, 16}, {3, 16, 16}), Contains("set data.reshape: [-1]"));
  CHECK_THAT(Refusal({28, 28}, {784}), Contains("set data.reshape: [-1]"));
  CHECK_THAT(Refusal({28, 28}, {1, 27, 28}), Contains("numbers of elements differ"));
  CHECK_THAT(Refusal({16, 16, 3}, {3, 16, 16}, {.transpose = {1, 2, 0}}),
             Contains("here taken as [16, 3, 16]") && Contains("set data.transpose: [2, 0, 1]"));
}

TEST_CASE("sample form: a flat sample gets its dimensions, then their order", "[job]") {
  const auto images = ViewSampleAs({.reshape = {16, 16, 3}, .transpose = {2, 0, 1}}, {768}, {3, 16, 16});
  REQUIRE(images.ok());
  CHECK(images->stored == Shape{16, 16, 3});
  CHECK(images->order == std::vector<int64_t>{2, 0, 1});
  CHECK(images->delivered == Shape{3, 16, 16});

  // The shape of the model is known: so is that of the file.
  const auto found = ViewSampleAs({.transpose = {2, 0, 1}, .in_order = true}, {768}, {3, 16, 24});
  CHECK_FALSE(found.ok());
  const auto fits = ViewSampleAs({.transpose = {2, 0, 1}, .in_order = true}, {1152}, {3, 16, 24});
  REQUIRE(fits.ok());
  CHECK(fits->stored == Shape{16, 24, 3});

  // Inputs with another number of elements or dimensions stay as they are.
  CHECK(ViewSample({.reshape = {2, 2}}, {6}).delivered == Shape{6});
  CHECK(ViewSample({.transpose = {1, 0}}, {2, 3, 4}).order.empty());
}

TEST_CASE("sample form: images that look as if their channels came last are not taken for others", "[job]") {
  CHECK_THAT(std::string(CheckChannelsFirst({16, 16, 3}).message()),
             Contains("data.transpose: [2, 0, 1]") && Contains("model.builtin.input: [16, 16, 3]"));
  CHECK_FALSE(CheckChannelsFirst({28, 28, 1}).ok());
  for (const Shape& shape : {Shape{3, 16, 16}, Shape{1, 28, 28}, Shape{3, 3, 3}, Shape{16, 8, 8}, Shape{28, 28}}) {
    CHECK(CheckChannelsFirst(shape).ok());
  }
}

TEST_CASE("sample form: the settings of a job are dimensions and a permutation", "[job]") {
  const SampleForm form = MakeSampleForm(*JobOfImages({"data.reshape=[16, 16, 3]", "data.transpose=[2, 0, 1]"}));
  CHECK(form.reshape == Shape{16, 16, 3});
  CHECK(form.transpose == std::vector<int64_t>{2, 0, 1});
  CHECK_FALSE(form.in_order);
  CHECK(MakeSampleForm(*JobOfImages({"data.reshape=[-1]"})).in_order);
  CHECK(MakeSampleForm(*JobOfImages({})).reshape.empty());

  const auto refused = [](const std::vector<std::string>& overrides, const std::string& part) {
    CHECK_THAT(std::string(JobOfImages(overrides).status().message()), Contains(part));
  };
  refused({"data.transpose=[0, 2]"}, "data.transpose");
  refused({"data.transpose=[0, 0, 1]"}, "expected each of 0 to 2 once");
  refused({"data.reshape=[-1, 3]"}, "expected dimensions of 1 and more, or [-1]");
  refused({"data.reshape=[0]"}, "data.reshape");
  refused({"data.reshape=[4, 4]", "data.transpose=[2, 0, 1]"}, "orders 3 dimensions, and data.reshape has 2");
}

TEST_CASE("sample form: the order of elements decides bits, names of dimensions alone do not", "[job]") {
  const JobSpec plain = *JobOfImages({});
  const JobSpec flat = *JobOfImages({"data.reshape=[-1]"});
  const JobSpec last = *JobOfImages({"data.transpose=[2, 0, 1]"});
  const JobSpec both = *JobOfImages({"data.transpose=[2, 0, 1]", "data.reshape=[16, 16, 3]"});

  CHECK(CompareJobs(plain, flat).refused.empty());
  CHECK(CompareJobs(plain, last).refused.size() == 1);
  CHECK(CompareJobs(last, both).refused.size() == 1);
}

TEST_CASE("sample form: tokens take neither another shape nor another order", "[job]") {
  const auto message = [](const std::string& setting) {
    return std::string(ParseJob(kTokenJob, "/jobs/job.yaml", {setting}).status().message());
  };

  CHECK(ParseJob(kTokenJob, "/jobs/job.yaml", {}).ok());
  for (const std::string key : {"data.reshape", "data.transpose"}) {
    CHECK_THAT(message(key + "=[0]"), Contains(key + ": ") && Contains("tokens are one run; remove the key"));
  }
  CHECK_THAT(message("data.reshape=[-1]"), Contains("tokens are one run"));
}

}  // namespace
}  // namespace lockstep
