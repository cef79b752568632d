#include "worker/data/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

// What is read between two beats of the pulse.
constexpr size_t kGzipPieceBytes = size_t{8} << 20;

// A file through zlib, which passes on what is not gzipped.
class GzipStream : public ByteStream {
 public:
  explicit GzipStream(gzFile file) : file_(file) {}
  ~GzipStream() override { gzclose(file_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  absl::StatusOr<size_t> ReadSome(absl::Span<std::byte> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const int got = gzread(file_, out.data() + done, static_cast<unsigned>(out.size() - done));
      int code = Z_OK;
      const char* message = gzerror(file_, &code);
      if (got < 0 || (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)) {
        return absl::DataLossError(absl::StrCat("cannot be read: ", message, "; copy the file again"));
      }
      done += static_cast<size_t>(got);
      // A gzip stream that stops before its end is told by this code, after all that could be read of it.
      if (code == Z_BUF_ERROR) {
        return absl::DataLossError("the compressed data ends too early; copy the file again");
      }
      if (got == 0) break;
    }
    return done;
  }

 private:
  gzFile file_;
};

}  // namespace

absl::StatusOr<ByteSource> ByteSource::Open(const std::string& path, Pulse* pulse) {
  // Not blocking: the open of a pipe would wait for a writer before it can be refused.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("data file ", path, " cannot be opened"));
  struct stat info;
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(descriptor);
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a file"));
  }
  gzFile file = gzdopen(descriptor, "rb");
  if (file == nullptr) {
    close(descriptor);
    return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory to read it"));
  }
  gzbuffer(file, 1 << 17);
  const bool compressed = gzdirect(file) == 0;
  return ByteSource(path, std::make_unique<GzipStream>(file), info.st_size, compressed, pulse);
}

ByteSource::ByteSource(std::string name, std::unique_ptr<ByteStream> stream, int64_t stored_bytes, bool compressed,
                       Pulse* pulse)
    : name_(std::move(name)),
      stream_(std::move(stream)),
      stored_bytes_(std::min(stored_bytes, int64_t{1} << 50)),
      compressed_(compressed),
      pulse_(pulse) {}

std::string ByteSource::At(int64_t offset) const {
  return absl::StrCat(name_, ": byte ", offset, compressed_ ? " of the decompressed data: " : ": ");
}

absl::Status ByteSource::Bad(int64_t offset, absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(At(offset), message));
}

absl::StatusOr<size_t> ByteSource::ReadSome(absl::Span<std::byte> out) {
  const NowDoing reading("reading ", NoteTail(name_));
  size_t done = 0;
  while (done < out.size()) {
    const absl::Span<std::byte> piece = out.subspan(done, std::min(out.size() - done, kGzipPieceBytes));
    const absl::StatusOr<size_t> got = stream_->ReadSome(piece);
    if (!got.ok()) return absl::Status(got.status().code(), absl::StrCat(At(offset_), got.status().message()));
    done += *got;
    offset_ += static_cast<int64_t>(*got);
    AdvancePulse(pulse_, *got);
    if (*got < piece.size()) break;
  }
  return done;
}

absl::Status ByteSource::Read(absl::Span<std::byte> out, absl::string_view what) {
  LS_ASSIGN_OR_RETURN(const size_t got, ReadSome(out));
  if (got == out.size()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(At(offset_), "the file ends in ", what, ", ", out.size() - got, " of ",
                                          out.size(), " bytes are missing; copy the file again"));
}

absl::Status ByteSource::ExpectEnd() {
  std::byte more;
  LS_ASSIGN_OR_RETURN(const size_t got, ReadSome(absl::MakeSpan(&more, 1)));
  if (got == 0) return absl::OkStatus();
  return Bad(offset_ - 1, "the elements that the header announces end here, and more bytes follow");
}

}  // namespace lockstep::worker
