#include "common/checkpoint_format/safetensors.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/strict_json.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep {
namespace {

using Catch::Contains;

std::string LittleEndian(uint64_t value) {
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

// A file with this header and as much data; returns the status of opening it.
absl::Status Open(const std::string& json, size_t data_bytes) {
  MemoryStorage storage;
  REQUIRE(WriteNewFile(storage, "f", LittleEndian(json.size()) + json + std::string(data_bytes, 'd'), Access::kShared)
              .ok());
  return SafetensorsReader::Open(storage, "f").status();
}

absl::Status OpenRaw(const std::string& bytes) {
  MemoryStorage storage;
  REQUIRE(WriteNewFile(storage, "f", bytes, Access::kShared).ok());
  return SafetensorsReader::Open(storage, "f").status();
}

std::string Entry(const std::string& name, const std::string& shape, const std::string& offsets,
                  const std::string& dtype = "\"F32\"") {
  return absl::StrCat("\"", name, "\":{\"dtype\":", dtype, ",\"shape\":", shape, ",\"data_offsets\":", offsets, "}");
}

TEST_CASE("safetensors: what is written is read back", "[safetensors]") {
  const std::vector<TensorSpec> specs = {{"b", DType::kI64, {}}, {"a", DType::kF32, {2, 2}}, {"c", DType::kF32, {0}}};
  const std::string header = EncodeSafetensorsHeader(specs).value();
  MemoryStorage storage;
  REQUIRE(WriteNewFile(storage, "f", header + "12345678ABCDEFGHIJKLMNOP", Access::kShared).ok());

  const auto reader = SafetensorsReader::Open(storage, "f");

  REQUIRE(reader.status() == absl::OkStatus());
  CHECK(header.size() % 8 == 0);
  REQUIRE(reader->header().entries.size() == 3);
  CHECK(reader->Find("a")->spec == specs[1]);
  CHECK(reader->Find("nothing") == nullptr);
  char out[4];
  CHECK(reader->Read(*reader->Find("a"), 6, absl::MakeSpan(out)).ok());
  CHECK(std::string(out, 4) == "GHIJ");
  CHECK(reader->Read(*reader->Find("a"), 13, absl::MakeSpan(out)).code() == absl::StatusCode::kOutOfRange);
  CHECK(reader->Read(*reader->Find("a"), ~uint64_t{0}, absl::MakeSpan(out)).code() == absl::StatusCode::kOutOfRange);
}

TEST_CASE("safetensors: tensors go by alignment, then by name", "[safetensors]") {
  const std::vector<TensorSpec> specs = {
      {"z", DType::kF32, {1}}, {"m", DType::kU8, {1}}, {"a", DType::kF32, {1}}, {"q", DType::kI64, {}}};
  CHECK(SafetensorsOrder(specs) == std::vector<int>{3, 2, 0, 1});
  CHECK_FALSE(EncodeSafetensorsHeader(specs).ok());
}

TEST_CASE("safetensors: a name that readers would refuse is not written", "[safetensors]") {
  for (const std::string& name :
       {std::string(), std::string("__metadata__"), std::string("a\0b", 3), std::string("\xff")}) {
    CHECK(EncodeSafetensorsHeader({{{name, DType::kU8, {1}}}}).status().code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK_FALSE(EncodeSafetensorsHeader({{{"a", DType::kU8, {1}}, {"a", DType::kU8, {1}}}}).ok());
  CHECK_FALSE(EncodeSafetensorsHeader({{{"a", DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}}}}).ok());
}

TEST_CASE("safetensors: legal oddities are read", "[safetensors]") {
  CHECK(Open("{}", 0).ok());
  CHECK(Open("{}   ", 0).ok());
  CHECK(Open("{" + Entry("a", "[]", "[0,4]") + "}", 4).ok());
  CHECK(Open("{" + Entry("e", "[0,7]", "[0,0]") + "," + Entry("a", "[1]", "[0,4]") + "}", 4).ok());
  CHECK(Open("{\"__metadata__\":{\"k\":\"v\"}," + Entry("a", "[1]", "[0,4]") + "}", 4).ok());
}

TEST_CASE("safetensors: a broken frame is refused before anything is allocated", "[safetensors]") {
  CHECK_THAT(std::string(OpenRaw("1234567").message()), Contains("7 bytes"));
  CHECK_THAT(std::string(OpenRaw(LittleEndian(kMaxSafetensorsHeaderBytes + 1) + "{}").message()),
             Contains("at most 100000000"));
  CHECK_THAT(std::string(OpenRaw(LittleEndian(~uint64_t{0}) + "{}").message()), Contains("at most 100000000"));
  CHECK_THAT(std::string(OpenRaw(LittleEndian(3) + "{}").message()), Contains("announces a header of 3 bytes"));
  CHECK_THAT(std::string(OpenRaw(LittleEndian(0)).message()), Contains("begin with '{'"));
  CHECK_THAT(std::string(OpenRaw(LittleEndian(3) + " {}").message()), Contains("begin with '{'"));
}

TEST_CASE("safetensors: every malformed header is refused with its reason", "[safetensors]") {
  struct Case {
    std::string json;
    size_t data;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {"{", 0, "malformed JSON"},
      {"{\"\xff\":1}", 0, "malformed JSON"},
      {"{" + Entry("a", "[1]", "[0,4]") + "," + Entry("a", "[1]", "[4,8]") + "}", 8, "the key 'a' is there twice"},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
       "'dtype' is there twice"},
      {"{" + Entry("a", "[1]", "[4,8]") + "}", 8, "expected it to begin at 0"},
      {"{" + Entry("a", "[1]", "[0,4]") + "," + Entry("b", "[1]", "[8,12]") + "}", 12, "expected it to begin at 4"},
      {"{" + Entry("a", "[2]", "[0,8]") + "," + Entry("b", "[1]", "[4,8]") + "}", 8, "'b' lies at [4, 8)"},
      {"{" + Entry("a", "[1]", "[0,4]") + "," + Entry("b", "[1]", "[0,4]") + "}", 4, "expected it to begin at 4"},
      {"{" + Entry("a", "[1]", "[0,4]") + "}", 5, "the tensors end at 4, the data at 5"},
      {"{" + Entry("a", "[1]", "[0,4]") + "}", 3, "the tensors end at 4, the data at 3"},
      {"{}", 1, "the tensors end at 0, the data at 1"},
      {"{" + Entry("a", "[2]", "[0,4]") + "}", 4, "F32[2] takes 8"},
      {"{" + Entry("a", "[4294967296,4294967296,2]", "[0,0]") + "}", 0, "not a valid safetensors file"},
      {"{" + Entry("a", "[2305843009213693952,2]", "[0,0]") + "}", 0, "not a valid safetensors file"},
      {"{" + Entry("a", "[18446744073709551615]", "[0,0]") + "}", 0, "2^63"},
      {"{" + Entry("a", "[18446744073709551616]", "[0,0]") + "}", 0, "no integer"},
      {"{" + Entry("a", "[-1]", "[0,0]") + "}", 0, "a negative number"},
      {"{" + Entry("a", "[1.0]", "[0,4]") + "}", 4, "no integer"},
      {"{" + Entry("a", "[[1]]", "[0,4]") + "}", 4, "array"},
      {"{" + Entry("a", "1", "[0,4]") + "}", 4, "number"},
      {"{" + Entry("a", "[1]", "[0]") + "}", 4, "lacks"},
      {"{" + Entry("a", "[1]", "[0,4,8]") + "}", 4, "more than two"},
      {"{" + Entry("a", "[1]", "[4,0]") + "}", 4, "[4, 0)"},
      {"{" + Entry("a", "[1]", "[0,4]", "\"F33\"") + "}", 4, "unknown dtype 'F33'"},
      {"{" + Entry("a", "[1]", "[0,4]", "7") + "}", 4, "number"},
      {"{" + Entry("a", "[1]", "[0,4]", "null") + "}", 4, "null"},
      {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "lacks"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, "number where none belongs"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":{}}}", 4, "object where none belongs"},
      {"{\"a\":7}", 0, "number"},
      {"{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "cannot name a tensor"},
      {"{" + Entry("a\\u0000b", "[1]", "[0,4]") + "}", 4, "cannot name a tensor"},
      {"{\"__metadata__\":{\"k\":1}}", 0, "number"},
      {"{\"__metadata__\":{\"k\":{}}}", 0, "object"},
      {"{\"__metadata__\":[]}", 0, "array"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
      {"{} {}", 0, "malformed JSON"},
      {"[]", 0, "begin with '{'"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.json);
    const absl::Status status = Open(c.json, c.data);
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(status.message()), Contains(c.reason) && Contains("memory:/f"));
  }
}

TEST_CASE("safetensors: deep nesting is refused, not followed", "[safetensors]") {
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100000; ++i) deep += "[";
  CHECK(Open(deep, 0).code() == absl::StatusCode::kDataLoss);
  // Arrays that hold objects count as deep as they are, whatever lies between.
  const auto nested = [](int levels) {
    std::string json;
    for (int i = 0; i < levels; ++i) json += "{\"a\":[[[";
    json += "0";
    for (int i = 0; i < levels; ++i) json += "]]]}";
    return CheckStrictJson(json);
  };
  CHECK(nested(16).ok());
  CHECK_FALSE(nested(17).ok());
}

TEST_CASE("safetensors: no prefix and no single flipped bit of a header opens as something else", "[safetensors]") {
  const std::string good =
      EncodeSafetensorsHeader({{{"a.weight", DType::kF32, {2, 3}}, {"b", DType::kF32, {1}}}}).value();
  const std::string data(28, 'd');
  REQUIRE(OpenRaw(good + data).ok());

  for (size_t cut = 0; cut < good.size() + data.size(); ++cut) CHECK_FALSE(OpenRaw((good + data).substr(0, cut)).ok());
  int opened = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      opened += OpenRaw(bad + data).ok() ? 1 : 0;
    }
  }
  CHECK(opened <
        200);  // flips within names, in metadata and of dtypes of equal size are other valid files: digests catch them
}

}  // namespace
}  // namespace lockstep
