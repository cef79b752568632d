// Indexes of TensorFlow checkpoints, blocks of such an index with the checksum that they need, graphs of objects, and
// state files. What is accepted can be written, and reads back as it was.
#include "common/digest/crc32c.h"
#include "common/tensorflow_bundle/bundle_index.h"
#include "common/tensorflow_bundle/checkpoint_state.h"
#include "common/tensorflow_bundle/table.h"
#include "common/tensorflow_bundle/variable_names.h"
#include "common/tensorflow_bundle/varint.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

using lockstep::AppendFixed32;
using lockstep::AppendVarint;

void TryIndex(const std::string& bytes) {
  const auto index = lockstep::ParseBundleIndex(bytes, "f");
  if (!index.ok()) {
    LS_CHECK(!index.status().message().empty(), "a refusal says why");
    return;
  }
  const auto names = lockstep::VariableNames::OfNames(*index);
  if (names.ok()) {
    for (const auto& variable : names->variables()) {
      LS_CHECK(variable.entry < index->entries.size(), "a name is one of an entry");
    }
  }
  for (const lockstep::BundleEntry& entry : index->entries) {
    LS_CHECK(index->Find(entry.key) == &entry, "an entry is found by its key");
    if (entry.partitioned) return;  // which is not written
  }
  const auto again = lockstep::ParseBundleIndex(lockstep::EncodeBundleIndex(*index), "f");
  LS_CHECK(again.ok() && again->entries == index->entries, "it reads back as it was");
}

std::string Block(const std::string& content) {
  std::string block = content + '\0';
  AppendFixed32(lockstep::MaskCrc32c(lockstep::Crc32c(block)), block);
  return block;
}

// A file with this block of data, which its checksum and its index go with.
std::string FileOf(const std::string& content) {
  const std::string empty("\0\0\0\0\1\0\0\0", 8);
  std::string place, index, footer;
  AppendVarint(0, place);
  AppendVarint(content.size(), place);
  index = std::string("\0\1", 2) + static_cast<char>(place.size()) + "k" + place + empty;
  const std::string data = Block(content), meta = Block(empty);
  for (const size_t number : {data.size(), empty.size(), data.size() + meta.size(), index.size()}) {
    AppendVarint(number, footer);
  }
  footer.resize(40);
  AppendFixed32(0x8b80fb57, footer);
  AppendFixed32(0xdb477524, footer);
  return data + meta + Block(index) + footer;
}

void TryGraph(const std::string& bytes) {
  const auto graph = lockstep::ObjectGraph::Parse(bytes);
  if (!graph.ok()) return;
  for (const char* name : {"features.0.weight", "model.a", ".", ""}) {
    const auto found = graph->Find(name);
    LS_CHECK(!found.has_value() || *found < graph->variables().size(), "what is found is a variable");
  }
  lockstep::BundleIndex index;
  std::map<std::string, int> keys;
  for (const auto& variable : graph->variables()) keys.emplace(variable.key, 1);
  for (const auto& [key, type] : keys) index.entries.push_back({.key = key, .type = type});
  const auto names = lockstep::VariableNames::OfObjects(index, bytes);
  if (!names.ok()) return;
  for (const auto& variable : names->variables()) {
    const auto found = names->FindSecondName(variable.name);
    LS_CHECK(!found.has_value() || *found < names->variables().size(), "a second name is one of a variable");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input = lockstep::fuzz::Text(data, size);
  TryIndex(input);
  TryIndex(FileOf(input));
  TryGraph(input);
  const auto state = lockstep::ParseCheckpointState(input);
  LS_CHECK(!state.ok() || !state->empty(), "a state names a checkpoint");
  return 0;
}
