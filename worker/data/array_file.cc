#include "worker/data/array_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/array_header.h"
#include "worker/data/byte_source.h"

namespace lockstep::worker {
namespace {

void SwapBytes(absl::Span<std::byte> bytes, size_t size) {
  for (size_t i = 0; i + size <= bytes.size(); i += size) std::reverse(bytes.begin() + i, bytes.begin() + i + size);
}

absl::StatusOr<ArrayHeader> ReadHeader(job::DataFiles::Format format, ByteSource& source) {
  Magic magic;
  LS_RETURN_IF_ERROR(source.Read(absl::MakeSpan(magic), "its first four bytes"));
  switch (format) {
    case job::DataFiles::FORMAT_IDX:
      return ReadIdxHeader(magic, source);
    case job::DataFiles::FORMAT_NPY:
      if (!IsNpyMagic(magic)) return source.Bad(0, "no npy file: expected \\x93NUMPY");
      return ReadNpyHeader(source);
    default:
      break;
  }
  if (IsNpyMagic(magic)) return ReadNpyHeader(source);
  if (IsIdxMagic(magic)) return ReadIdxHeader(magic, source);
  return source.Bad(0, "neither an IDX nor an npy file (a wrong magic number)");
}

}  // namespace

std::string ArrayFile::At(int64_t offset) const {
  return absl::StrCat(path, ": byte ", offset, compressed ? " of the decompressed data: " : ": ");
}

absl::StatusOr<ArrayFile> ReadArrayFile(const std::string& path, job::DataFiles::Format format,
                                        int64_t memory_limit_bytes, Pulse* pulse) {
  LS_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, pulse));
  return ReadArray(source, format, memory_limit_bytes);
}

absl::StatusOr<ArrayFile> ReadArray(ByteSource& source, job::DataFiles::Format format, int64_t memory_limit_bytes) {
  LS_ASSIGN_OR_RETURN(const ArrayHeader header, ReadHeader(format, source));
  const auto bytes = CheckedByteSize(header.dtype, header.shape);
  if (!bytes.ok()) {
    return source.Bad(4, absl::StrCat("shape ", ShapeString(header.shape), ": ", bytes.status().message()));
  }
  if (*bytes == 0) {
    return source.Bad(4, absl::StrCat("an array of shape ", ShapeString(header.shape), " holds no sample"));
  }
  if (*bytes > memory_limit_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(source.name(), ": shape ", ShapeString(header.shape), " of ",
                                                     DTypeName(header.dtype), " needs ", *bytes, " bytes and ",
                                                     memory_limit_bytes, " are left; raise data.memory"));
  }
  // A header can promise anything: nothing is allocated that the file cannot hold.
  if (*bytes > source.MostBytes()) {
    return absl::DataLossError(absl::StrCat(source.At(source.offset()), "the header announces ", *bytes,
                                            " bytes of elements, more than the file can hold; copy the file again"));
  }
  ArrayFile file;
  file.path = source.name();
  file.data_offset = source.offset();
  file.compressed = source.compressed();
  LS_ASSIGN_OR_RETURN(file.array, Tensor::Create(header.dtype, header.shape));
  LS_RETURN_IF_ERROR(source.Read(file.array.bytes(), "its elements"));
  LS_RETURN_IF_ERROR(source.ExpectEnd());
  const size_t size = static_cast<size_t>(DTypeSize(header.dtype));
  if (header.big_endian && size > 1) SwapBytes(file.array.bytes(), size);
  return file;
}

}  // namespace lockstep::worker
