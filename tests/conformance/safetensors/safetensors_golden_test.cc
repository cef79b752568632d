// Our files against those of the reference implementation (make_golden.py), byte for byte and read back.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/checkpoint_format/safetensors.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"

namespace lockstep {
namespace {

const std::vector<TensorSpec> kTensors = {
    {"conv1.weight", DType::kF32, {2, 1, 3, 3}},
    {"conv1.bias", DType::kF32, {2}},
    {"empty", DType::kF32, {0, 4}},
    {"lockstep.step", DType::kI64, {}},
    {"lockstep.exponent.conv1.weight", DType::kI32, {}},
    {"half", DType::kF16, {3}},
    {"double", DType::kF64, {2}},
    {"mask", DType::kBool, {5}},
    {"bytes", DType::kU8, {3}},
    {"signed", DType::kI8, {2}},
    {"short", DType::kI16, {2, 2}},
    {"unsigned", DType::kU64, {1}},
    {"odd \"name\"\\\n\xc3\xbc\xe2\x82\xac", DType::kU32, {2}},
};

template <typename T>
std::string Ramp(int64_t count, int modulo) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(i % modulo);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

std::string Values(const TensorSpec& spec) {
  const int64_t count = NumElements(spec.shape);
  switch (spec.dtype) {
    case DType::kF64:
      return Ramp<double>(count, 100);
    case DType::kF32:
      return Ramp<float>(count, 100);
    case DType::kI64:
    case DType::kU64:
      return Ramp<int64_t>(count, 100);
    case DType::kI32:
    case DType::kU32:
      return Ramp<int32_t>(count, 100);
    case DType::kI16:
      return Ramp<int16_t>(count, 100);
    case DType::kBool:
      return Ramp<int8_t>(count, 2);
    case DType::kF16:
      return std::string("\x00\x00\x00\x3c\x00\x40", 6);  // 0, 1, 2
    default:
      return Ramp<int8_t>(count, 100);
  }
}

std::unique_ptr<LocalStorage> Folder() { return LocalStorage::Open("tests/conformance/safetensors").value(); }

TEST_CASE("safetensors: our file is the reference writer's, byte for byte", "[conformance]") {
  const auto storage = Folder();
  std::vector<TensorSpec> ordered;
  std::string data;
  for (const int i : SafetensorsOrder(kTensors)) {
    ordered.push_back(kTensors[i]);
    data += Values(kTensors[i]);
  }

  const auto header = EncodeSafetensorsHeader(ordered);

  REQUIRE(header.ok());
  CHECK(*header + data == ReadWholeFile(*storage, "golden.safetensors", 1 << 20).value());
}

TEST_CASE("safetensors: the reference writer's file reads back under every name", "[conformance]") {
  const auto storage = Folder();

  const auto reader = SafetensorsReader::Open(*storage, "golden.safetensors");

  REQUIRE(reader.status() == absl::OkStatus());
  CHECK(reader->header().metadata.at("format") == "pt");
  CHECK(reader->header().entries.size() == kTensors.size());
  for (const TensorSpec& spec : kTensors) {
    const SafetensorsEntry* entry = reader->Find(spec.name);
    REQUIRE(entry != nullptr);
    CHECK(entry->spec == spec);
    std::string bytes(entry->end - entry->begin, '\0');
    REQUIRE(reader->Read(*entry, 0, absl::MakeSpan(bytes.data(), bytes.size())).ok());
    CHECK(bytes == Values(spec));
  }
}

}  // namespace
}  // namespace lockstep
