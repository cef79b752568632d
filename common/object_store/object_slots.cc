#include "common/object_store/object_slots.h"

#include "absl/strings/str_cat.h"
#include "common/commit_log/slot_name.h"
#include "common/object_store/object_key.h"
#include "common/status/status_macros.h"

namespace lockstep {

std::string ObjectSlots::KeyOf(uint64_t number) const { return JoinKey(folder_, SlotName(number)); }

std::string ObjectSlots::Describe(uint64_t number) const { return store_.Describe(KeyOf(number)); }

absl::StatusOr<std::vector<uint64_t>> ObjectSlots::Newest(size_t limit) {
  std::vector<uint64_t> numbers;
  ListRequest request;
  request.prefix = JoinKey(folder_, "");
  while (numbers.size() < limit) {
    request.limit = limit - numbers.size();
    LS_ASSIGN_OR_RETURN(const Listing listing, store_.List(request));
    for (const ListedObject& object : listing.objects) {
      const auto number = SlotOfName(absl::string_view(object.key).substr(request.prefix.size()));
      if (number.has_value()) numbers.push_back(*number);
    }
    if (!listing.more || listing.objects.empty()) break;
    request.start_after = listing.objects.back().key;  // others' objects had taken room
  }
  return numbers;
}

absl::StatusOr<std::string> ObjectSlots::Get(uint64_t number) {
  absl::StatusOr<std::string> bytes = store_.Get(KeyOf(number), kMaxBytes);
  if (absl::IsResourceExhausted(bytes.status())) return absl::DataLossError(bytes.status().message());
  return bytes;
}

absl::Status ObjectSlots::Create(uint64_t number, absl::string_view bytes) {
  return store_.Put(KeyOf(number), bytes, PutCondition::kIfAbsent);
}

absl::Status ObjectSlots::Remove(uint64_t number) { return store_.Delete(KeyOf(number)); }

}  // namespace lockstep
