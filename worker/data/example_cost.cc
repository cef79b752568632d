#include "worker/data/example_cost.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace lockstep::worker {
namespace {

// Where a length-delimited field stands.
enum class Part { kExample, kFeatures, kEntry, kFeature, kBytesList, kFloatList, kInt64List };

constexpr int64_t kPerField = 96;   // a message, a string, an entry of a map or of the unknown fields
constexpr int64_t kPerNumber = 16;  // eight bytes in a list that grows by doubling

bool SkipVarint(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool Skip(absl::string_view* bytes, size_t count) {
  if (bytes->size() < count) return false;
  bytes->remove_prefix(count);
  return true;
}

struct Step {
  Part from;
  uint64_t field;
  Part to;
};
constexpr std::array kSteps = {Step{Part::kExample, 1, Part::kFeatures},  Step{Part::kFeatures, 1, Part::kEntry},
                               Step{Part::kEntry, 2, Part::kFeature},     Step{Part::kFeature, 1, Part::kBytesList},
                               Step{Part::kFeature, 2, Part::kFloatList}, Step{Part::kFeature, 3, Part::kInt64List}};

// Adds the cost of one message; false when it is malformed. As deep as kSteps leads.
bool AddCost(absl::string_view bytes, Part part, int64_t* cost) {
  while (!bytes.empty()) {
    uint64_t tag = 0;
    uint64_t value = 0;
    if (!SkipVarint(&bytes, &tag)) return false;
    *cost += kPerField;
    switch (tag & 7) {
      case 0:
        if (!SkipVarint(&bytes, &value)) return false;
        continue;
      case 1:
        if (!Skip(&bytes, 8)) return false;
        continue;
      case 5:
        if (!Skip(&bytes, 4)) return false;
        continue;
      case 2:
        break;
      default:
        continue;  // a group: its fields are counted as if they stood here
    }
    if (!SkipVarint(&bytes, &value) || value > bytes.size()) return false;
    const absl::string_view inner = bytes.substr(0, value);
    bytes.remove_prefix(value);
    const auto* step = std::find_if(kSteps.begin(), kSteps.end(),
                                    [&](const Step& s) { return s.from == part && s.field == tag >> 3; });
    if (step != kSteps.end()) {
      if (!AddCost(inner, step->to, cost)) return false;
    } else if (part == Part::kInt64List && tag >> 3 == 1) {
      *cost += kPerNumber *
               std::count_if(inner.begin(), inner.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    } else {
      *cost += static_cast<int64_t>(inner.size());  // a string, floats, what nobody knows
    }
  }
  return true;
}

}  // namespace

int64_t ExampleCost(absl::string_view bytes) {
  int64_t cost = 0;
  static_cast<void>(AddCost(bytes, Part::kExample, &cost));
  return cost;
}

}  // namespace lockstep::worker
