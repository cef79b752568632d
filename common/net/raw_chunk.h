// Chunks of shares in wire form, whose data is sent from where it lies in memory. Protobuf messages would copy the data
// twice: into the message, and into the buffer that gRPC sends. ShareChunk and FetchChunk of protos/session.proto have
// the same wire form.
//
// Threading: immutable; all functions are thread-safe.
#ifndef LOCKSTEP_COMMON_NET_RAW_CHUNK_H_
#define LOCKSTEP_COMMON_NET_RAW_CHUNK_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "protos/session.pb.h"

namespace lockstep {

// The wire form of a chunk whose data is `pieces`, one after another, with their CRC-32C. `owner` keeps the bytes alive
// and unchanged; it is released, on any thread, once gRPC has sent them.
grpc::ByteBuffer RawChunk(absl::Span<const absl::string_view> pieces, const std::shared_ptr<const void>& owner);

// The wire form of a chunk with a header.
grpc::ByteBuffer RawChunk(const proto::ShareChunk& chunk);

// Begins Session.UploadShare for chunks in their wire form. `channel`, `context` and `reply` outlive the stream.
std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> BeginRawUpload(const std::shared_ptr<grpc::Channel>& channel,
                                                                     grpc::ClientContext& context,
                                                                     proto::UploadReply& reply);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_RAW_CHUNK_H_
