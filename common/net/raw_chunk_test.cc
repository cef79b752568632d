#include "common/net/raw_chunk.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/digest/crc32c.h"

namespace lockstep {
namespace {

std::string Flat(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  REQUIRE(buffer.Dump(&slices).ok());
  std::string flat;
  for (const grpc::Slice& slice : slices) flat.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return flat;
}

}  // namespace

TEST_CASE("raw chunk: both chunk messages read it as the data and its CRC", "[net]") {
  const std::string bytes(300000, 'x');
  const absl::string_view all = bytes;
  const std::vector<std::vector<absl::string_view>> cuts = {
      {}, {""}, {"a"}, {all}, {all.substr(0, 1), all.substr(1, 127), all.substr(128)}, {"ab", "", "c"}};
  for (const std::vector<absl::string_view>& pieces : cuts) {
    const std::string wanted = absl::StrJoin(pieces, "");

    const std::string wire = Flat(RawChunk(pieces, nullptr));

    proto::ShareChunk share;
    proto::FetchChunk fetch;
    REQUIRE(share.ParseFromString(wire));
    REQUIRE(fetch.ParseFromString(wire));
    CHECK(share.kind_case() == proto::ShareChunk::kData);
    CHECK(share.data() == wanted);
    CHECK(fetch.data() == wanted);
    CHECK(share.crc32c() == Crc32c(wanted));
    CHECK(fetch.crc32c() == Crc32c(wanted));
  }
}

TEST_CASE("raw chunk: its data is not copied, and its owner lives as long as gRPC holds it", "[net]") {
  auto owner = std::make_shared<const std::string>(100000, 'y');
  const std::weak_ptr<const std::string> alive = owner;
  const char* const at = owner->data();
  std::vector<grpc::Slice> slices;
  {
    const grpc::ByteBuffer chunk = RawChunk({absl::string_view(*owner)}, owner);
    owner.reset();
    CHECK_FALSE(alive.expired());

    REQUIRE(chunk.Dump(&slices).ok());
    REQUIRE(slices.size() == 3);
    CHECK(reinterpret_cast<const char*>(slices[1].begin()) == at);
  }
  CHECK_FALSE(alive.expired());

  slices.clear();
  CHECK(alive.expired());
}

TEST_CASE("raw chunk: a header is what protobuf makes of it", "[net]") {
  proto::ShareChunk chunk;
  chunk.mutable_header()->set_share(3);
  chunk.mutable_header()->set_leaf_digests(std::string(64, 'd'));

  CHECK(Flat(RawChunk(chunk)) == chunk.SerializeAsString());
}

}  // namespace lockstep
