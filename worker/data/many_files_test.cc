// A data set in several files, named by a pattern.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "worker/data/test_containers.h"
#include "worker/data/test_files.h"
#include "worker/data/test_reading.h"
#include "worker/data/token_file.h"

namespace lockstep::worker {
namespace {

using absl::StatusCode;

FeedOptions ClassesOf(int64_t classes) {
  FeedOptions options;
  options.label_classes = classes;
  return options;
}

job::DataFiles Named(const TestFiles& files, const std::string& inputs, const std::string& labels = "") {
  job::DataFiles named;
  named.set_inputs(files.directory() + "/" + inputs);
  if (!labels.empty()) named.set_labels(files.directory() + "/" + labels);
  return named;
}

std::string Bytes8(const std::string& elements) {
  return IdxBytes(8, {static_cast<uint32_t>(elements.size())}, elements);
}

std::string Rows(const std::string& elements) {
  return IdxBytes(8, {static_cast<uint32_t>(elements.size() / 2), 2}, elements);
}

TEST_CASE("many files: a pattern is all files that match, in the order of their names, as if they were one", "[data]") {
  const TestFiles files;
  files.Write("x-2.idx", Rows("\5\6"));
  files.Write("x-10.idx", Rows("\1\2\3\4"));
  files.Write("y-2.idx", Bytes8("\1"));
  files.Write("y-10.idx", Bytes8(std::string("\2\0", 2)));
  files.Write("all", Rows("\1\2\3\4\5\6"));
  files.Write("labels", Bytes8(std::string("\2\0\1", 3)));

  const auto source = MustOpen(Named(files, "x-*.idx", "y-*.idx"), ClassesOf(3));

  CHECK(source->num_samples() == 3);
  CHECK(AllOf<float>(*source, "inputs") == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(AllOf<int64_t>(*source, "labels") == std::vector<int64_t>{2, 0, 1});
  CHECK(source->content_hash() == MustOpen(Named(files, "all", "labels"), ClassesOf(3))->content_hash());
}

TEST_CASE("many files: a file that is called like a pattern is that file", "[data]") {
  const TestFiles files;
  files.Write("x[1].idx", Rows("\1\2"));
  files.Write("x1.idx", Rows("\3\4"));
  FeedOptions options;
  options.labels = Labels::kNone;

  CHECK(AllOf<float>(*MustOpen(Named(files, "x[1].idx", "gone-*"), options), "inputs") == std::vector<float>{1, 2});
}

TEST_CASE("many files: archives, tables and records go together field by field", "[data]") {
  const TestFiles files;
  const auto archive = [](const std::vector<float>& x, const std::vector<int32_t>& labels) {
    const std::string rows = std::to_string(labels.size());
    return ZipBytes(
        {{"x.npy", NpyBytes(NpyHeader("<f4", "(" + rows + ",)"), Bytes<float>(x)), true, false},
         {"labels.npy", NpyBytes(NpyHeader("<i4", "(" + rows + ",)"), Bytes<int32_t>(labels)), true, false}},
        "");
  };
  files.Write("1.npz", archive({1, 2}, {0, 1}));
  files.Write("2.npz", archive({3}, {1}));
  // Whole numbers in one table, others in the next.
  files.Write("1.csv", "a,label\n1,0\n");
  files.Write("2.csv", "a,label\n2.5,1\n3,1\n");
  files.Write("1.rec", RecordBytes(MakeExample("ab", {1}, {0}).SerializeAsString()));
  files.Write("2.rec", RecordBytes(MakeExample("cd", {2}, {1}).SerializeAsString()));

  const auto archives = MustOpen(Named(files, "*.npz"), ClassesOf(2));
  CHECK(AllOf<float>(*archives, "inputs") == std::vector<float>{1, 2, 3});
  CHECK(AllOf<int64_t>(*archives, "labels") == std::vector<int64_t>{0, 1, 1});
  const auto tables = MustOpen(Named(files, "?.csv"), ClassesOf(2));
  CHECK(AllOf<float>(*tables, "inputs") == std::vector<float>{1, 2.5f, 3});
  CHECK(AllOf<int64_t>(*tables, "labels") == std::vector<int64_t>{0, 1, 1});
  job::DataFiles records = Named(files, "[12].rec");
  records.add_input_fields("image");
  CHECK(AllOf<float>(*MustOpen(records, ClassesOf(2)), "inputs") == std::vector<float>{97, 98, 99, 100});
}

TEST_CASE("many files: tokens go on from one file to the next", "[data]") {
  const TestFiles files;
  files.Write("1.bin", TokenFileHeader(5) + BytesAsTokens("abcde"));
  files.Write("2.bin", TokenFileHeader(4) + BytesAsTokens("fghi"));
  job::DataFiles tokens;
  tokens.set_tokens(files.directory() + "/*.bin");
  tokens.set_sequence_length(4);

  const auto source = MustOpen(tokens, ClassesOf(256));

  CHECK(source->num_samples() == 2);
  CHECK(AllOf<int64_t>(*source, "inputs") == std::vector<int64_t>{97, 98, 99, 100, 101, 102, 103, 104});
  CHECK(AllOf<int64_t>(*source, "labels") == std::vector<int64_t>{98, 99, 100, 101, 102, 103, 104, 105});
  tokens.set_sequence_length(9);
  CheckRefused(tokens, ClassesOf(256), StatusCode::kInvalidArgument, "hold 9 tokens, too few for one sample");
}

TEST_CASE("many files: what does not go together is refused by the file's name", "[data]") {
  const TestFiles files;
  files.Write("x1", Rows("\1\2"));
  files.Write("x2", Rows("\1\2"));
  files.Write("x3", IdxBytes(8, {1, 3}, "\1\2\3"));
  files.Write("y1", Bytes8("\1"));
  files.Write("y2", Bytes8("\7"));

  CheckRefused(Named(files, "x?", "y?"), ClassesOf(3), StatusCode::kInvalidArgument, "/x? are 3 files, ");
  CheckRefused(Named(files, "z*", "y1"), ClassesOf(3), StatusCode::kNotFound, "/z*: no file matches the pattern");
  CheckRefused(Named(files, "x[23]", "y?"), ClassesOf(8), StatusCode::kInvalidArgument,
               "/x3: has inputs U8[3] per sample, ");
  // The place of a wrong element is that in its own file.
  CheckRefused(Named(files, "x[12]", "y?"), ClassesOf(3), StatusCode::kInvalidArgument, "/y2: byte 8: ");
  FeedOptions little = ClassesOf(8);
  little.memory_limit_bytes = 4;
  CheckRefused(Named(files, "x[12]", "y?"), little, StatusCode::kResourceExhausted, "/x2");
}

}  // namespace
}  // namespace lockstep::worker
