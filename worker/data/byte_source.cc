#include "worker/data/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

// What is read between two beats of the pulse.
constexpr size_t kPieceBytes = size_t{8} << 20;

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
  ByteSource source(path, file);
  source.file_size_ = std::min<int64_t>(info.st_size, int64_t{1} << 50);
  source.compressed_ = gzdirect(file) == 0;
  source.pulse_ = pulse;
  return source;
}

void ByteSource::Close::operator()(gzFile_s* file) const { gzclose(file); }

std::string ByteSource::At(int64_t offset) const {
  return absl::StrCat(path_, ": byte ", offset, compressed_ ? " of the decompressed data: " : ": ");
}

absl::Status ByteSource::Bad(int64_t offset, absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(At(offset), message));
}

absl::StatusOr<size_t> ByteSource::ReadSome(absl::Span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const unsigned wanted = static_cast<unsigned>(std::min<size_t>(out.size() - done, kPieceBytes));
    const int got = gzread(file_.get(), out.data() + done, wanted);
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)) {
      return absl::DataLossError(absl::StrCat(At(offset_), "cannot be read: ", message, "; copy the file again"));
    }
    done += static_cast<size_t>(got);
    offset_ += got;
    AdvancePulse(pulse_, static_cast<uint64_t>(got));
    // A gzip stream that stops before its end is told by this code, after all that could be read of it.
    if (code == Z_BUF_ERROR) {
      return absl::DataLossError(absl::StrCat(At(offset_), "the compressed data ends too early; copy the file again"));
    }
    if (got == 0) break;
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
