#include "common/net/raw_chunk.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <array>
#include <cstdint>
#include <vector>

#include "common/digest/crc32c.h"

namespace lockstep {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

constexpr char kUploadShare[] = "/lockstep.proto.Session/UploadShare";

// Both chunks have one wire form.
static_assert(int{proto::ShareChunk::kDataFieldNumber} == int{proto::FetchChunk::kDataFieldNumber});
static_assert(int{proto::ShareChunk::kCrc32CFieldNumber} == int{proto::FetchChunk::kCrc32CFieldNumber});

// What comes before the data.
grpc::Slice HeadOf(uint64_t size) {
  std::array<uint8_t, 16> head;
  uint8_t* end = WireFormatLite::WriteTagToArray(proto::ShareChunk::kDataFieldNumber,
                                                 WireFormatLite::WIRETYPE_LENGTH_DELIMITED, head.data());
  end = CodedOutputStream::WriteVarint64ToArray(size, end);
  return grpc::Slice(head.data(), static_cast<size_t>(end - head.data()));
}

// What comes behind it.
grpc::Slice TailOf(uint32_t crc32c) {
  std::array<uint8_t, 8> tail;
  const uint8_t* const end =
      WireFormatLite::WriteFixed32ToArray(proto::ShareChunk::kCrc32CFieldNumber, crc32c, tail.data());
  return grpc::Slice(tail.data(), static_cast<size_t>(end - tail.data()));
}

grpc::Slice Referring(absl::string_view bytes, const std::shared_ptr<const void>& owner) {
  const auto drop = [](void* held) { delete static_cast<std::shared_ptr<const void>*>(held); };
  // A slice has no type for bytes that nobody changes.
  return grpc::Slice(const_cast<char*>(bytes.data()), bytes.size(), drop, new std::shared_ptr<const void>(owner));
}

}  // namespace

grpc::ByteBuffer RawChunk(absl::Span<const absl::string_view> pieces, const std::shared_ptr<const void>& owner) {
  uint64_t size = 0;
  uint32_t crc32c = 0;
  std::vector<grpc::Slice> slices(1);
  for (const absl::string_view piece : pieces) {
    size += piece.size();
    crc32c = Crc32c(piece, crc32c);
    slices.push_back(Referring(piece, owner));
  }
  slices.front() = HeadOf(size);
  slices.push_back(TailOf(crc32c));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::ByteBuffer RawChunk(const proto::ShareChunk& chunk) {
  const grpc::Slice slice(chunk.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> BeginRawUpload(const std::shared_ptr<grpc::Channel>& channel,
                                                                     grpc::ClientContext& context,
                                                                     proto::UploadReply& reply) {
  const grpc::internal::RpcMethod method(kUploadShare, grpc::internal::RpcMethod::CLIENT_STREAMING, channel);
  return std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>>(
      grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(channel.get(), method, &context, &reply));
}

}  // namespace lockstep
