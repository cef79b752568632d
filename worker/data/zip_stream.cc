#include "worker/data/zip_stream.h"

#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kZipPieceBytes = 1 << 17;

class ZipStream : public ByteStream {
 public:
  ZipStream(std::shared_ptr<const ReadableFile> file, const ZipExtent& extent)
      : file_(std::move(file)), extent_(extent) {
    // Negative: neither a zlib nor a gzip header.
    if (extent_.deflated) LS_CHECK(inflateInit2(&inflate_, -MAX_WBITS) == Z_OK, "zlib starts");
  }
  ~ZipStream() override {
    if (extent_.deflated) inflateEnd(&inflate_);
  }
  ZipStream(const ZipStream&) = delete;
  ZipStream& operator=(const ZipStream&) = delete;

  absl::StatusOr<size_t> ReadSome(absl::Span<std::byte> out) override {
    size_t done = 0;
    while (done < out.size() && !ended_) {
      if (unread_.empty()) LS_RETURN_IF_ERROR(Fetch());
      LS_ASSIGN_OR_RETURN(const size_t got, extent_.deflated ? Inflate(out.subspan(done)) : Copy(out.subspan(done)));
      crc_ =
          static_cast<uint32_t>(crc32(crc_, reinterpret_cast<const Bytef*>(out.data() + done), static_cast<uInt>(got)));
      done += got;
      produced_ += static_cast<int64_t>(got);
      if (produced_ > extent_.size) return Lost(absl::StrCat("more than the ", extent_.size, " bytes announced"));
      if (ended_) LS_RETURN_IF_ERROR(CheckEnd());
    }
    return done;
  }

 private:
  absl::Status Lost(absl::string_view message) const {
    return absl::DataLossError(absl::StrCat("the packed data is corrupt: ", message, "; copy the file again"));
  }

  // The next bytes of the file, none when all were read.
  absl::Status Fetch() {
    const int64_t count = std::min(kZipPieceBytes, extent_.stored_bytes - fetched_);
    piece_.resize(static_cast<size_t>(count));
    if (count > 0) {
      LS_RETURN_IF_ERROR(file_->ReadAt(static_cast<uint64_t>(extent_.offset + fetched_), absl::MakeSpan(piece_)));
    }
    fetched_ += count;
    unread_ = absl::string_view(piece_.data(), piece_.size());
    return absl::OkStatus();
  }

  size_t Copy(absl::Span<std::byte> out) {
    const size_t count = std::min(out.size(), unread_.size());
    std::copy_n(unread_.begin(), count, reinterpret_cast<char*>(out.data()));
    unread_.remove_prefix(count);
    ended_ = unread_.empty() && fetched_ == extent_.stored_bytes;
    return count;
  }

  absl::StatusOr<size_t> Inflate(absl::Span<std::byte> out) {
    inflate_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(unread_.data()));
    inflate_.avail_in = static_cast<uInt>(unread_.size());
    inflate_.next_out = reinterpret_cast<Bytef*>(out.data());
    inflate_.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&inflate_, Z_NO_FLUSH);
    const size_t got = out.size() - inflate_.avail_out;
    const size_t taken = unread_.size() - inflate_.avail_in;
    unread_.remove_prefix(taken);
    if (code == Z_STREAM_END) {
      if (!unread_.empty() || fetched_ != extent_.stored_bytes) return Lost("it ends before its stored size");
      ended_ = true;
      return got;
    }
    if (code != Z_OK && code != Z_BUF_ERROR) return Lost(inflate_.msg == nullptr ? "zlib refuses it" : inflate_.msg);
    if (got == 0 && taken == 0 && fetched_ == extent_.stored_bytes) return Lost("it has no end");
    return got;
  }

  absl::Status CheckEnd() const {
    if (produced_ != extent_.size) {
      return Lost(absl::StrCat(produced_, " bytes instead of the ", extent_.size, " announced"));
    }
    return crc_ == extent_.crc ? absl::OkStatus() : Lost("its checksum is another");
  }

  std::shared_ptr<const ReadableFile> file_;
  const ZipExtent extent_;
  z_stream inflate_{};
  std::vector<char> piece_;
  absl::string_view unread_;
  int64_t fetched_ = 0;
  int64_t produced_ = 0;
  uint32_t crc_ = 0;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> MakeZipStream(std::shared_ptr<const ReadableFile> file, const ZipExtent& extent) {
  return std::make_unique<ZipStream>(std::move(file), extent);
}

}  // namespace lockstep::worker
