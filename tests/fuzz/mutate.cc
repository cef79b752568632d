#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <optional>

namespace lockstep::fuzz {
namespace {

constexpr size_t kLargest = size_t{1} << 16;

std::string Number(Dice& dice) {
  const uint64_t value = dice.EdgeNumber();
  if (dice.Below(4) == 0) return std::to_string(static_cast<int64_t>(value));
  std::string bytes;
  const size_t count = size_t{1} << dice.Below(4);
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
  if (dice.Below(2) == 0) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

std::string Piece(Dice& dice, const std::string& from) {
  if (from.empty()) return "";
  const size_t at = dice.Below(from.size());
  return from.substr(at, 1 + dice.Below(std::min<size_t>(from.size() - at, 64)));
}

}  // namespace

void ChangeBytes(Dice& dice, const std::vector<std::string>& corpus, std::string& bytes) {
  if (bytes.empty()) {
    bytes = Number(dice);
    return;
  }
  const size_t at = dice.Below(bytes.size());
  switch (dice.Below(8)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << dice.Below(8)));
      return;
    case 1:
      bytes[at] = static_cast<char>(dice.Below(256));
      return;
    case 2: {
      const std::string number = Number(dice);
      bytes.replace(at, number.size(), number);
      return;
    }
    case 3:
      bytes.erase(at, 1 + dice.Below(16));
      return;
    case 4:
      bytes.insert(at, Piece(dice, bytes));
      return;
    case 5: {
      const std::string piece = Piece(dice, corpus[dice.Below(corpus.size())]);
      bytes.replace(at, piece.size(), piece);
      return;
    }
    case 6:
      bytes.insert(at, Number(dice));
      return;
    default:
      // Rarely: little is left to look at afterwards.
      if (dice.Below(4) == 0) bytes.resize(at);
      return;
  }
}

std::string Mutant(const std::vector<std::string>& corpus, uint64_t seed, uint64_t run,
                   const StructuredMutator* structured) {
  Dice dice(seed * 0x9e3779b97f4a7c15 + run);
  std::string bytes = corpus[dice.Below(corpus.size())];
  const size_t changes = 1 + dice.Below(8);
  // After a change of bytes little is left of a message.
  const bool by_bytes = structured == nullptr || dice.Once(8);
  for (size_t i = 0; i < changes; ++i) {
    std::optional<std::string> changed;
    if (!by_bytes) {
      changed = dice.Once(8) ? structured->Cross(bytes, corpus[dice.Below(corpus.size())], dice)
                             : structured->Change(bytes, dice);
    }
    if (changed.has_value() && changed->size() <= kLargest) {
      bytes = *std::move(changed);
    } else {
      ChangeBytes(dice, corpus, bytes);
    }
  }
  if (bytes.size() > kLargest) bytes.resize(kLargest);
  return bytes;
}

}  // namespace lockstep::fuzz
