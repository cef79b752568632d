#include "worker/collectives/sockets/call_words.h"

#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

uint64_t DigestOf(const Call& call) {
  uint64_t digest = 14695981039346656037u;  // FNV-1a, by numbers
  const auto add = [&](int64_t number) { digest = (digest ^ static_cast<uint64_t>(number)) * 1099511628211u; };
  for (const int64_t size : call.blocks) add(size);
  for (const ExactRun& run : call.runs) {
    add(run.begin);
    add(run.size);
    add(run.exponent);
  }
  return digest;
}

}  // namespace

CallWords CallWords::Of(const Call& call) {
  return {.step = call.tag.step,
          .attempt = call.tag.attempt,
          .kind = static_cast<uint32_t>(call.kind),
          .root = call.root,
          .elements = call.integers.size() + call.addends.size() + call.floats.size(),
          .bytes = call.bytes.size(),
          .blocks = DigestOf(call)};
}

std::string CallWords::Name() const {
  Call call;
  call.kind = static_cast<CallKind>(kind);
  return absl::StrCat(call.KindName(), " of step ", step, ", attempt ", attempt, ", over ", elements, " elements and ",
                      bytes, " bytes");
}

}  // namespace lockstep::worker
