// Reads one member of a zip archive: inflates it and checks its size and checksum.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_DATA_ZIP_STREAM_H_
#define LOCKSTEP_WORKER_DATA_ZIP_STREAM_H_

#include <cstdint>
#include <memory>

#include "common/storage/storage.h"
#include "worker/data/byte_source.h"

namespace lockstep::worker {

struct ZipExtent {
  int64_t offset = 0;  // in the file
  int64_t stored_bytes = 0;
  int64_t size = 0;  // inflated
  uint32_t crc = 0;
  bool deflated = false;
};

// Its ReadSome returns DataLoss at the end when size or checksum differ. REQUIRES: the extent lies in the file.
std::unique_ptr<ByteStream> MakeZipStream(std::shared_ptr<const ReadableFile> file, const ZipExtent& extent);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_ZIP_STREAM_H_
