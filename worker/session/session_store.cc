#include "worker/session/session_store.h"

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {

absl::Status SessionStore::Set(absl::string_view key, absl::string_view bytes) {
  LS_RETURN_IF_ERROR(entries_.Set(key, bytes));
  send_(std::string(key), std::string(bytes));
  return absl::OkStatus();
}

void SessionStore::Deliver(absl::string_view key, absl::string_view bytes) {
  const absl::Status status = entries_.Set(key, bytes);
  if (!status.ok()) LS_LOG(debug, "rendezvous key ", key, ": ", status.message());
}

}  // namespace lockstep::worker
