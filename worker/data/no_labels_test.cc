// Data that are read without labels, to predict with.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "worker/data/test_containers.h"
#include "worker/data/test_files.h"
#include "worker/data/test_reading.h"
#include "worker/data/token_file.h"

namespace lockstep::worker {
namespace {

job::DataFiles File(const std::string& path) {
  job::DataFiles files;
  files.set_inputs(path);
  return files;
}

FeedOptions WithoutLabels() {
  FeedOptions options;
  options.label_classes = 3;
  options.labels = Labels::kNone;
  return options;
}

void CheckInputs(const job::DataFiles& files, const std::vector<float>& inputs, const Shape& sample) {
  const auto source = MustOpen(files, WithoutLabels());
  CHECK_FALSE(source->has_labels());
  CHECK(source->fields() == std::vector<TensorSpec>{{"inputs", DType::kF32, sample}});
  CHECK(AllOf<float>(*source, "inputs") == inputs);
  CHECK(FindField(*source, InputRole::kFeature, "inputs") == 0);
  CHECK(FindField(*source, InputRole::kLabel, "labels") == -1);
}

const std::string kArray = NpyBytes(NpyHeader("<f4", "(2, 3)"), Bytes<float>({1, 2, 3, 4, 5, 6}));
const std::string kLabels = NpyBytes(NpyHeader("<i4", "(2,)"), Bytes<int32_t>({9, 9}));
const std::vector<float> kInputs = {1, 2, 3, 4, 5, 6};

TEST_CASE("no labels: a file of one array is enough, and the labels beside it are not looked at", "[data]") {
  const TestFiles files;
  const std::string array = files.Write("x.npy", kArray);
  CheckInputs(File(array), kInputs, {3});
  CheckInputs(File(files.Write("x.idx", IdxBytes(8, {2, 3}, "\1\2\3\4\5\6"))), kInputs, {3});

  job::DataFiles both = File(array);
  both.set_labels(files.directory() + "/missing");
  CheckInputs(both, kInputs, {3});
}

TEST_CASE("no labels: an archive may lack them, and they are no inputs where they are there", "[data]") {
  const TestFiles files;
  CheckInputs(File(files.Write("a.npz", ZipBytes({{"x.npy", kArray, true, false}}, ""))), kInputs, {3});
  // Labels that no class fits: nobody asks.
  const std::string path =
      files.Write("b.npz", ZipBytes({{"x.npy", kArray, true, false}, {"labels.npy", kLabels, true, false}}, ""));
  CheckInputs(File(path), kInputs, {3});
  job::DataFiles named = File(files.Write("c.npz", ZipBytes({{"x.npy", kArray, true, false}}, "")));
  named.set_label_field("y");  // as the job's own files call it
  CheckInputs(named, kInputs, {3});
}

TEST_CASE("no labels: a table may lack the column", "[data]") {
  const TestFiles files;
  CheckInputs(File(files.Write("a.csv", "a,b,c\n1,2,3\n4,5,6\n")), kInputs, {3});
  CheckInputs(File(files.Write("b.csv", "a,label,b,c\n1,x,2,3\n4,,5,6\n")), kInputs, {3});
}

TEST_CASE("no labels: records may lack the feature", "[data]") {
  const TestFiles files;
  std::string bytes;
  for (const tf::Example& example : {MakeExample("abcd", {0.5f, 1}, {3}), MakeExample("efgh", {2, -1}, {0})}) {
    bytes += RecordBytes(example.SerializeAsString());
  }
  job::DataFiles records = File(files.Write("t.tfrecord", bytes));
  records.add_input_fields("x");
  CheckInputs(records, {0.5f, 1, 2, -1}, {2});
  records.set_label_field("none");
  CheckInputs(records, {0.5f, 1, 2, -1}, {2});
}

TEST_CASE("no labels: the last tokens of a file are a sample though nothing follows them", "[data]") {
  const TestFiles files;
  job::DataFiles tokens;
  tokens.set_tokens(files.Write("t.bin", TokenFileHeader(6) + BytesAsTokens("abcdef")));
  tokens.set_sequence_length(3);
  FeedOptions options = WithoutLabels();
  options.label_classes = 256;

  const auto source = MustOpen(tokens, options);

  CHECK(source->num_samples() == 2);
  CHECK(AllOf<int64_t>(*source, "inputs") == std::vector<int64_t>{97, 98, 99, 100, 101, 102});
  options.labels = Labels::kRequired;
  CHECK(MustOpen(tokens, options)->num_samples() == 1);
}

// For a loss that is an output of the model.
TEST_CASE("no labels: they are read if they are there, and what an input of the model is called is one", "[data]") {
  const TestFiles files;
  FeedOptions options = WithoutLabels();
  options.labels = Labels::kIfThere;
  options.label_classes = 0;
  const std::string both =
      files.Write("b.npz", ZipBytes({{"x.npy", kArray, true, false}, {"labels.npy", kLabels, true, false}}, ""));

  CHECK_FALSE(MustOpen(File(files.Write("x.npy", kArray)), options)->has_labels());
  const auto labelled = MustOpen(File(both), options);
  CHECK(labelled->has_labels());
  CHECK(AllOf<float>(*labelled, "labels") == std::vector<float>{9, 9});

  options.inputs = {{"x", DType::kF32, {3}}, {"labels", DType::kI64, {}}};
  const auto fed = MustOpen(File(both), options);
  CHECK_FALSE(fed->has_labels());
  CHECK(AllOf<int64_t>(*fed, "labels") == std::vector<int64_t>{9, 9});
}

}  // namespace
}  // namespace lockstep::worker
