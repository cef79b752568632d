// Safetensors files, and headers alone: a changed length hides what a changed header would do. Every tensor of what is
// accepted can be read.
#include "common/checkpoint_format/safetensors.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

void Try(const std::string& bytes) {
  lockstep::MemoryStorage storage;
  LS_CHECK(lockstep::WriteNewFile(storage, "f", bytes, lockstep::Access::kShared).ok(), "the file can be written");
  const auto reader = lockstep::SafetensorsReader::Open(storage, "f");
  if (!reader.ok()) {
    LS_CHECK(!reader.status().message().empty(), "a refusal says why");
    return;
  }
  for (const lockstep::SafetensorsEntry& entry : reader->header().entries) {
    std::string out(entry.end - entry.begin, '\0');
    LS_CHECK(reader->Read(entry, 0, absl::MakeSpan(out.data(), out.size())).ok(), "its bytes are there");
    LS_CHECK(reader->Find(entry.spec.name) != nullptr, "it is found by its name");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input = lockstep::fuzz::Text(data, size);
  Try(input);
  if (size <= 8) return 0;
  // The header as long as it is, and behind it what the length says.
  const std::string json = input.substr(8);
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(json.size() >> (8 * i));
  Try(length + json + std::string(static_cast<uint8_t>(input[1]), 'd'));
  return 0;
}
