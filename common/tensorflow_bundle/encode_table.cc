#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/tensorflow_bundle/table.h"
#include "common/tensorflow_bundle/table_layout.h"
#include "common/tensorflow_bundle/varint.h"

namespace lockstep {
namespace {

size_t SharedPrefix(absl::string_view a, absl::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t shared = 0;
  while (shared < most && a[shared] == b[shared]) ++shared;
  return shared;
}

class BlockBuilder {
 public:
  explicit BlockBuilder(int restart_interval) : restart_interval_(restart_interval) {}

  void Add(absl::string_view key, absl::string_view value) {
    size_t shared = 0;
    if (since_restart_ == restart_interval_) {
      restarts_.push_back(static_cast<uint32_t>(bytes_.size()));
      since_restart_ = 0;
    } else {
      shared = SharedPrefix(last_key_, key);
    }
    AppendVarint(shared, bytes_);
    AppendVarint(key.size() - shared, bytes_);
    AppendVarint(value.size(), bytes_);
    absl::StrAppend(&bytes_, key.substr(shared), value);
    last_key_ = std::string(key);
    ++since_restart_;
  }

  bool empty() const { return bytes_.empty(); }
  size_t size() const { return bytes_.size() + 4 * (restarts_.size() + 1); }
  const std::string& last_key() const { return last_key_; }

  // The block's content; it begins anew.
  std::string Take() {
    for (const uint32_t restart : restarts_) AppendFixed32(restart, bytes_);
    AppendFixed32(static_cast<uint32_t>(restarts_.size()), bytes_);
    std::string content = std::move(bytes_);
    *this = BlockBuilder(restart_interval_);
    return content;
  }

 private:
  int restart_interval_;
  int since_restart_ = 0;
  std::string bytes_;
  std::string last_key_;
  std::vector<uint32_t> restarts_ = {0};
};

// Appends a block and what follows each; returns where it lies.
BlockHandle AppendBlock(const std::string& content, std::string& file) {
  const BlockHandle handle{file.size(), content.size()};
  file += content;
  file.push_back(static_cast<char>(kNotCompressed));
  AppendFixed32(MaskCrc32c(Crc32c(absl::string_view(file).substr(handle.offset))), file);
  return handle;
}

// A key that is not before `last` and is before `next`: a short one where that is easy.
std::string Separator(const std::string& last, const std::string& next) {
  const size_t at = SharedPrefix(last, next);
  if (at == last.size() || at == next.size()) return last;
  const auto byte = static_cast<uint8_t>(last[at]);
  if (byte + 1 >= static_cast<uint8_t>(next[at])) return last;
  return last.substr(0, at) + static_cast<char>(byte + 1);
}

// A key that is not before `last`.
std::string Successor(const std::string& last) {
  for (size_t i = 0; i < last.size(); ++i) {
    const auto byte = static_cast<uint8_t>(last[i]);
    if (byte != 0xff) return last.substr(0, i) + static_cast<char>(byte + 1);
  }
  return last;
}

}  // namespace

std::string EncodeTable(const Table& table, size_t block_bytes) {
  std::string file;
  BlockBuilder data(kRestartInterval), index(1);
  for (auto entry = table.begin(); entry != table.end(); ++entry) {
    data.Add(entry->first, entry->second);
    const auto next = std::next(entry);
    // What is long by itself begins a block.
    const bool long_next = next != table.end() && next->first.size() + next->second.size() >= 2 * block_bytes;
    if (next != table.end() && data.size() < block_bytes && !long_next) continue;
    const std::string last = data.last_key();
    const BlockHandle handle = AppendBlock(data.Take(), file);
    index.Add(next == table.end() ? Successor(last) : Separator(last, next->first), EncodeHandle(handle));
  }
  const BlockHandle meta = AppendBlock(BlockBuilder(kRestartInterval).Take(), file);
  const BlockHandle blocks = AppendBlock(index.Take(), file);
  std::string footer = EncodeHandle(meta) + EncodeHandle(blocks);
  footer.resize(kFooterBytes - sizeof(kTableMagic));
  AppendFixed32(static_cast<uint32_t>(kTableMagic), footer);
  AppendFixed32(static_cast<uint32_t>(kTableMagic >> 32), footer);
  return file + footer;
}

}  // namespace lockstep
