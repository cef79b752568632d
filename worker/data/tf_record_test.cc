#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "worker/data/test_containers.h"
#include "worker/data/test_files.h"
#include "worker/data/test_reading.h"

namespace lockstep::worker {
namespace {

using absl::StatusCode;

job::DataFiles Records(const std::string& path, const std::vector<std::string>& inputs = {"image"}) {
  job::DataFiles files;
  files.set_inputs(path);
  for (const std::string& name : inputs) files.add_input_fields(name);
  return files;
}

std::string File(const std::vector<tf::Example>& examples) {
  std::string bytes;
  for (const tf::Example& example : examples) bytes += RecordBytes(example.SerializeAsString());
  return bytes;
}

const std::vector<tf::Example> kExamples = {MakeExample("abcd", {0.5f, 1}, {3}), MakeExample("efgh", {2, -1}, {0})};

FeedOptions Classes(int64_t classes) {
  FeedOptions options;
  options.label_classes = classes;
  return options;
}

TEST_CASE("tfrecord: bytes, floats and integers of every record, plain or gzipped", "[data]") {
  const TestFiles files;
  for (const std::string& bytes : {File(kExamples), Gzip(File(kExamples))}) {
    const std::string path = files.Write("t.tfrecord", bytes);
    const auto images = MustOpen(Records(path), Classes(4));
    CHECK(images->fields() == std::vector<TensorSpec>{{"inputs", DType::kF32, {4}}, {"labels", DType::kI64, {}}});
    CHECK(AllOf<float>(*images, "inputs") == std::vector<float>{97, 98, 99, 100, 101, 102, 103, 104});
    CHECK(AllOf<int64_t>(*images, "labels") == std::vector<int64_t>{3, 0});
    CHECK(AllOf<float>(*MustOpen(Records(path, {"x"}), Classes(4)), "inputs") == std::vector<float>{0.5f, 1, 2, -1});
  }
}

TEST_CASE("tfrecord: all features but the label feed the inputs of the model by name", "[data]") {
  const TestFiles files;
  FeedOptions options = Classes(4);
  options.inputs = {{"x", DType::kF32, {2}}, {"image", DType::kI64, {2, 2}}};
  CheckRefused(
      Records(files.Write("t", File(kExamples)), {}), options, StatusCode::kInvalidArgument,
      "one sample of image has the shape [4]; the model takes [2, 2]. If the elements come in the order of the "
      "model's shape, set data.reshape: [-1]");
  options.form.in_order = true;
  const auto source = MustOpen(Records(files.Write("t", File(kExamples)), {}), options);
  CHECK(AllOf<int64_t>(*source, "image") == std::vector<int64_t>{97, 98, 99, 100, 101, 102, 103, 104});
  CHECK(AllOf<float>(*source, "x") == std::vector<float>{0.5f, 1, 2, -1});
}

TEST_CASE("tfrecord: samples that differ, or have nothing, are refused with their record", "[data]") {
  const TestFiles files;
  const auto refused = [&](const tf::Example& second, const std::string& part) {
    const auto first_bytes = RecordBytes(kExamples[0].SerializeAsString()).size();
    CheckRefused(Records(files.Write("t", File({kExamples[0], second}))), Classes(4), StatusCode::kInvalidArgument,
                 "t: byte " + std::to_string(first_bytes) + ": record 1" + part);
  };
  refused(MakeExample("abc", {}, {0}), " has 3 values of U8 in feature 'image', the first record 4 values of U8");
  refused(MakeExample("abcd", {}, {0, 1}), " has 2 values of I64 in feature 'label'");
  refused(MakeExample("abcd", {}, {4}), ": label 1 is 4, the model has the classes 0 to 3");
  refused(tf::Example(), " has no feature 'image'");
  tf::Example two_strings = kExamples[1];
  (*two_strings.mutable_features()->mutable_feature())["image"].mutable_bytes_list()->add_value("x");
  refused(two_strings, " has 0 values");
  CheckRefused(Records(files.Write("t", File({MakeExample("", {}, {0})}))), Classes(4), StatusCode::kInvalidArgument,
               "record 0 has nothing in feature 'image'");
  CheckRefused(Records(files.Write("t", File(kExamples)), {"picture"}), Classes(4), StatusCode::kInvalidArgument,
               "there is no feature 'picture': the file has the features 'image', 'label', 'x'");
  CheckRefused(Records(files.Write("t", RecordBytes("\xff\xff\xff"))), Classes(4), StatusCode::kInvalidArgument,
               "byte 0: record 0 is no tf.Example");
}

TEST_CASE("tfrecord: a length that lies allocates nothing", "[data]") {
  const TestFiles files;
  const std::string length = LittleEndian(uint64_t{1} << 29, 8);
  const std::string lying = length + LittleEndian(MaskCrc32c(Crc32c(length)), 4) + "xyz";
  CheckRefused(Records(files.Write("t", lying)), {}, StatusCode::kDataLoss, "byte 0: a record of 536870912 bytes");
  const std::string packed = Gzip(lying + std::string(2 << 20, 'x'));
  CheckRefused(Records(files.Write("t", packed)), {}, StatusCode::kDataLoss, "copy the file again");
  FeedOptions options;
  options.memory_limit_bytes = 30;
  CheckRefused(Records(files.Write("t", File(kExamples)), {}), options, StatusCode::kResourceExhausted, "raise it");
}

TEST_CASE("tfrecord: a record is parsed only when what it makes fits", "[data]") {
  const TestFiles files;
  FeedOptions options;
  options.memory_limit_bytes = int64_t{8} << 20;
  const auto refused = [&](const std::string& record) {
    CheckRefused(Records(files.Write("t", Gzip(RecordBytes(record)))), options, StatusCode::kResourceExhausted,
                 "byte 0 of the decompressed data: record 0");
  };

  // Strings of nothing: two bytes of the file each, and a string in memory.
  tf::Example strings = MakeExample("abcd", {}, {0});
  for (int i = 0; i < 1 << 20; ++i)
    (*strings.mutable_features()->mutable_feature())["image"].mutable_bytes_list()->add_value();
  refused(strings.SerializeAsString());
  // Fields that nobody knows, and one name again and again, of which a map keeps the last.
  std::string unknown, names;
  for (int i = 0; i < 1 << 20; ++i) unknown += "\x50\x01";
  for (int i = 0; i < 1 << 20; ++i) names += std::string("\x0a\0", 2);
  refused(unknown);
  refused("\x0a" + std::string("\x80\x80\x80\x01") + names);
  // Numbers of one byte each.
  tf::Example numbers = MakeExample("abcd", {}, {0});
  for (int i = 0; i < 2 << 20; ++i)
    (*numbers.mutable_features()->mutable_feature())["label"].mutable_int64_list()->add_value(1);
  refused(numbers.SerializeAsString());
  // One long string is what it is.
  CHECK(MustOpen(
            Records(files.Write("t", RecordBytes(MakeExample(std::string(1 << 20, 'x'), {}, {0}).SerializeAsString()))),
            options)
            ->num_samples() == 1);
}

TEST_CASE("tfrecord: every truncation and every flipped bit is found", "[data]") {
  const TestFiles files;
  const std::string good = File(kExamples);
  const size_t first = RecordBytes(kExamples[0].SerializeAsString()).size();
  job::DataFiles records = Records(files.directory() + "/t");
  records.set_format(job::DataFiles::FORMAT_TFRECORD);
  for (size_t size = 0; size < good.size(); ++size) {
    INFO("cut to " << size << " bytes");
    files.Write("t", good.substr(0, size));
    // A file that ends with a record is whole.
    CHECK(OpenDataSource(records, Classes(4)).ok() == (size == first));
  }
  for (size_t i = 0; i < good.size(); ++i) {
    INFO("byte " << i);
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    files.Write("t", bad);
    CHECK(OpenDataSource(records, Classes(4)).status().code() == StatusCode::kDataLoss);
  }
}

TEST_CASE("data: the format of a file that holds all is told by its content", "[data]") {
  const TestFiles files;
  const auto refused = [&](const std::string& bytes, const std::string& part) {
    CheckRefused(Records(files.Write("f", bytes), {}), {}, StatusCode::kInvalidArgument, part);
  };
  refused("", "neither an npz archive, a TFRecord file nor a CSV table");
  refused(std::string("\x89PNG\r\n\x1a\n", 8), "neither an npz archive");
  refused(IdxBytes(8, {1, 1}, "a"), "holds one array; name the file of its labels");
  refused(NpyBytes(NpyHeader("|u1", "(1,)"), "a"), "holds one array");
  refused("hello", "which column is the label");
}

}  // namespace
}  // namespace lockstep::worker
