#include "common/tensorflow_bundle/bundle_index.h"

#include <catch2/catch.hpp>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/tensorflow_bundle/table.h"
#include "protos/tensorflow_bundle.pb.h"

namespace lockstep {
namespace {

using Catch::Contains;

const BundleIndex kIndex = {
    .shards = 2,
    .entries = {{.key = "a", .type = 1, .shape = {2, 3}, .shard = 1, .offset = 5, .size = 24, .crc32c = 77},
                {.key = "b", .type = kTensorflowString, .shape = {}, .size = 9},
                {.key = "c", .type = 14, .shape = {0, 3}}}};

// The index with its header or the entry "a" changed.
std::string Changed(const std::function<void(tf::BundleHeader&)>& header,
                    const std::function<void(tf::BundleEntry&)>& entry) {
  Table table = ParseTable(EncodeBundleIndex(kIndex), "x").value();
  tf::BundleHeader of_all;
  REQUIRE(of_all.ParseFromString(table.at("")));
  header(of_all);
  table[""] = of_all.SerializeAsString();
  tf::BundleEntry of_a;
  REQUIRE(of_a.ParseFromString(table.at("a")));
  entry(of_a);
  table["a"] = of_a.SerializeAsString();
  return EncodeTable(table);
}

std::string Refusal(const std::string& bytes, absl::StatusCode code = absl::StatusCode::kDataLoss) {
  const absl::Status status = ParseBundleIndex(bytes, "x.index").status();
  CHECK(status.code() == code);
  CHECK_THAT(std::string(status.message()), Contains("x.index"));
  return std::string(status.message());
}

std::string OfHeader(const std::function<void(tf::BundleHeader&)>& header) {
  return Changed(header, [](tf::BundleEntry&) {});
}
std::string OfEntry(const std::function<void(tf::BundleEntry&)>& entry) {
  return Changed([](tf::BundleHeader&) {}, entry);
}

TEST_CASE("bundle index: what was written is read", "[tensorflow]") {
  const absl::StatusOr<BundleIndex> read = ParseBundleIndex(EncodeBundleIndex(kIndex), "x");
  REQUIRE(read.status() == absl::OkStatus());
  CHECK(read->shards == 2);
  CHECK(read->entries == kIndex.entries);
  REQUIRE(read->Find("b") != nullptr);
  CHECK(read->Find("b")->key == "b");
  CHECK(read->Find("bb") == nullptr);
}

TEST_CASE("bundle index: a size that is not the tensor's and a place that cannot be are damage", "[tensorflow]") {
  CHECK_THAT(Refusal(OfEntry([](tf::BundleEntry& a) { a.set_size(20); })), Contains("20 bytes for F32[2, 3]"));
  CHECK_THAT(Refusal(OfEntry([](tf::BundleEntry& a) { a.set_offset(-1); })), Contains("24 bytes at -1"));
  CHECK_THAT(Refusal(OfEntry([](tf::BundleEntry& a) { a.set_offset(INT64_MAX - 1); })), Contains("24 bytes at"));
  CHECK_THAT(Refusal(OfEntry([](tf::BundleEntry& a) { a.set_shard_id(2); })), Contains("data file 2 of 2"));
  CHECK_THAT(Refusal(OfEntry([](tf::BundleEntry& a) { a.set_shard_id(-1); })), Contains("data file -1"));
  CHECK_THAT(Refusal(OfEntry([](tf::BundleEntry& a) { a.mutable_shape()->mutable_dim(0)->set_size(-2); })),
             Contains("impossible shape"));
  CHECK_THAT(Refusal(OfEntry([](tf::BundleEntry& a) {
               for (tf::TensorShape::Dim& dim : *a.mutable_shape()->mutable_dim()) dim.set_size(INT64_MAX);
             })),
             Contains("impossible shape"));
  CHECK_THAT(Refusal(OfEntry([](tf::BundleEntry& a) { a.mutable_shape()->set_unknown_rank(true); })),
             Contains("no shape"));
  CHECK_THAT(Refusal(OfHeader([](tf::BundleHeader& header) { header.set_num_shards(0); })), Contains("0 data files"));
  CHECK_THAT(Refusal(EncodeTable({{"a", ""}})), Contains("no header"));
  CHECK_THAT(Refusal(EncodeTable({{"", "\x0f"}})), Contains("malformed"));
  CHECK_THAT(Refusal(EncodeTable({{"", "\x08\x01"}, {"a", "\x0f"}})), Contains("entry of 'a'"));
}

TEST_CASE("bundle index: a shape of very many dimensions is refused before objects are made of it", "[tensorflow]") {
  std::string dims;
  for (int i = 0; i < 1 << 19; ++i) dims += std::string("\x12\0", 2);
  tf::BundleEntry entry;
  REQUIRE(entry.mutable_shape()->ParseFromString(dims));
  const std::string file = EncodeTable({{"", "\x08\x01"}, {"a", entry.SerializeAsString()}});
  CHECK_THAT(Refusal(file, absl::StatusCode::kInvalidArgument), Contains("entry of 'a'") && Contains("at most"));
}

TEST_CASE("bundle index: other machines and later formats are refused by name", "[tensorflow]") {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  CHECK_THAT(Refusal(OfHeader([](tf::BundleHeader& h) { h.set_endianness(tf::BundleHeader::BIG); }), kInvalid),
             Contains("big-endian"));
  CHECK_THAT(Refusal(OfHeader([](tf::BundleHeader& h) { h.mutable_version()->set_min_consumer(2); }), kInvalid),
             Contains("version 2"));
}

TEST_CASE("bundle index: a partitioned variable is told, and its place does not count", "[tensorflow]") {
  const auto read = ParseBundleIndex(OfEntry([](tf::BundleEntry& a) {
                                       a.add_slices();
                                       a.set_size(0);
                                       a.set_shard_id(9);
                                     }),
                                     "x");
  REQUIRE(read.status() == absl::OkStatus());
  CHECK(read->Find("a")->partitioned);
  CHECK_FALSE(read->Find("b")->partitioned);
}

TEST_CASE("bundle index: every type of ours has a number of TensorFlow's, and back", "[tensorflow]") {
  for (int number = 1; number <= 15; ++number) {
    const DType dtype = DTypeFromNumber(number).value();
    CHECK(FromTensorflowType(ToTensorflowType(dtype)) == dtype);
  }
  CHECK_FALSE(FromTensorflowType(8).has_value());
  CHECK(TensorflowTypeName(8) == "complex64");
  CHECK(TensorflowTypeName(99) == "type 99");
}

TEST_CASE("bundle index: data files are called as TensorFlow calls them", "[tensorflow]") {
  CHECK(DataFileName("dir/ck-7", 0, 1) == "dir/ck-7.data-00000-of-00001");
  CHECK(DataFileName("ck", 12, 345) == "ck.data-00012-of-00345");
}

}  // namespace
}  // namespace lockstep
