// Chunks of shares on the wire, whose data is sent from where it lies: the messages that protobuf would make copy it
// twice, into themselves and into what gRPC sends. ShareChunk and FetchChunk of protos/session.proto have one form.
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

// The wire form of a chunk whose data is `pieces`, one after another, with their CRC-32C. The bytes stay as they are
// while `owner` lives, which is dropped once gRPC has sent them, on any thread.
grpc::ByteBuffer RawChunk(absl::Span<const absl::string_view> pieces, const std::shared_ptr<const void>& owner);

// The wire form of a chunk with a header.
grpc::ByteBuffer RawChunk(const proto::ShareChunk& chunk);

// Begins Session.UploadShare for chunks in their wire form. `channel`, `context` and `reply` outlive the stream.
std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> BeginRawUpload(const std::shared_ptr<grpc::Channel>& channel,
                                                                     grpc::ClientContext& context,
                                                                     proto::UploadReply& reply);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_RAW_CHUNK_H_
