#include "common/digest/random_secret.h"

#include <openssl/rand.h>

#include "absl/strings/escaping.h"

namespace lockstep {

absl::StatusOr<std::string> RandomSecretHex(int bytes) {
  std::string raw(bytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(raw.data()), bytes) != 1) {
    return absl::UnavailableError("the system gives no random bytes for a secret");
  }
  return absl::BytesToHexString(raw);
}

}  // namespace lockstep
