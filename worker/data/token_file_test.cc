#include "worker/data/token_file.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "worker/data/data_source.h"
#include "worker/data/test_files.h"

namespace lockstep::worker {
namespace {

using absl::StatusCode;

job::DataFiles Tokens(const std::string& path, int64_t sequence_length) {
  job::DataFiles files;
  files.set_tokens(path);
  files.set_sequence_length(sequence_length);
  return files;
}

std::string TextFile(const std::string& text) {
  return TokenFileHeader(static_cast<int64_t>(text.size())) + BytesAsTokens(text);
}

std::string WithWord(std::string bytes, size_t word, int32_t value) {
  std::memcpy(bytes.data() + 4 * word, &value, 4);
  return bytes;
}

std::vector<int64_t> Read(const DataSource& source, int field, const std::vector<int64_t>& indices) {
  std::vector<int64_t> out(indices.size() * static_cast<size_t>(NumElements(source.fields()[0].shape)));
  REQUIRE(source.Read(field, indices, {reinterpret_cast<std::byte*>(out.data()), out.size() * 8}).ok());
  return out;
}

void CheckRefused(const absl::Status& status, StatusCode code, const std::string& part) {
  INFO(status);
  CHECK(status.code() == code);
  CHECK_THAT(std::string(status.message()), Catch::Contains(part));
}

TEST_CASE("tokens: a sample is a run of tokens, its labels the same run one further", "[data]") {
  TestFiles files;
  FeedOptions options;
  options.label_classes = 256;

  const auto source = OpenDataSource(Tokens(files.Write("t.bin", TextFile("abcdefghijkl")), 4), options);

  INFO(source.status());
  REQUIRE(source.ok());
  CHECK((*source)->num_samples() == 2);
  CHECK((*source)->fields() == std::vector<TensorSpec>{{"inputs", DType::kI64, {4}}, {"labels", DType::kI64, {4}}});
  CHECK(Read(**source, 0, {1, 0}) == std::vector<int64_t>{'e', 'f', 'g', 'h', 'a', 'b', 'c', 'd'});
  CHECK(Read(**source, 1, {1, 0}) == std::vector<int64_t>{'f', 'g', 'h', 'i', 'b', 'c', 'd', 'e'});
}

TEST_CASE("tokens: the last token of the file is a label when it fills a sample", "[data]") {
  TestFiles files;
  const auto source = OpenDataSource(Tokens(files.Write("t.bin", TextFile("abcde")), 2), FeedOptions{});
  REQUIRE(source.ok());
  CHECK((*source)->num_samples() == 2);
  CHECK(Read(**source, 1, {1}) == std::vector<int64_t>{'d', 'e'});
}

TEST_CASE("tokens: files of uint32 tokens, plain or gzipped, give what they hold", "[data]") {
  TestFiles files;
  std::string bytes = WithWord(WithWord(TokenFileHeader(3), 0, 20240801), 1, 7);
  bytes += Bytes<uint32_t>({7, 100000, 128255});
  FeedOptions options;
  options.label_classes = 128256;

  const auto plain = OpenDataSource(Tokens(files.Write("t.bin", bytes), 2), options);
  const auto packed = OpenDataSource(Tokens(files.Write("t.bin.gz", Gzip(bytes)), 2), options);

  REQUIRE(plain.ok());
  REQUIRE(packed.ok());
  CHECK(Read(**plain, 0, {0}) == std::vector<int64_t>{7, 100000});
  CHECK(Read(**packed, 1, {0}) == std::vector<int64_t>{100000, 128255});
  CHECK((*plain)->content_hash() == (*packed)->content_hash());
}

TEST_CASE("tokens: every token must be one of the model's classes, also the first and those left over", "[data]") {
  TestFiles files;
  FeedOptions options;
  options.label_classes = 'x';
  const auto status = [&](const std::string& text) {
    return OpenDataSource(Tokens(files.Write("t.bin", TextFile(text)), 2), options).status();
  };
  CHECK(status("abcd").ok());
  CheckRefused(status("xbcd"), StatusCode::kInvalidArgument,
               "t.bin: byte 1024: token 0 is 120, the model has the classes 0 to 119");
  CheckRefused(status("abcx"), StatusCode::kInvalidArgument, "t.bin: byte 1030: token 3 is 120");
}

TEST_CASE("tokens: a header that is none, or announces what is not there, is an error that names its byte", "[data]") {
  TestFiles files;
  const auto status = [&](const std::string& bytes, int64_t limit = 1 << 20) {
    FeedOptions options;
    options.memory_limit_bytes = limit;
    return OpenDataSource(Tokens(files.Write("t.bin", bytes), 4), options).status();
  };
  const std::string good = TextFile("abcdefgh");
  CheckRefused(status(WithWord(good, 0, 1)), StatusCode::kInvalidArgument, "byte 0: no token file");
  CheckRefused(status(WithWord(good, 1, 2)), StatusCode::kInvalidArgument, "byte 4: a token file of version 2");
  CheckRefused(status(WithWord(good, 2, -1)), StatusCode::kInvalidArgument, "byte 8: the header announces -1 tokens");
  CheckRefused(status(WithWord(good, 2, 0)), StatusCode::kInvalidArgument, "byte 8: the file holds 0 tokens");
  CheckRefused(status(TextFile("abcd")), StatusCode::kInvalidArgument, "one sample takes 5");
  CheckRefused(status(WithWord(good, 2, 0x7fffffff)), StatusCode::kResourceExhausted, "raise data.memory");
  CheckRefused(status(WithWord(good, 2, 0x7fffffff), int64_t{1} << 40), StatusCode::kDataLoss,
               "more than the file can hold");
  CheckRefused(status(WithWord(good, 2, 7)), StatusCode::kInvalidArgument, "byte 1038: the elements that the header");
  for (size_t size = 0; size < good.size(); ++size) {
    INFO("cut to " << size << " bytes");
    CHECK(status(good.substr(0, size)).code() == StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace lockstep::worker
